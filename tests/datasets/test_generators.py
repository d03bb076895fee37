import numpy as np
import pytest

from kernelweave import datasets

GENERATORS = {
    "two rings": datasets.make_two_rings,
    "ten rings": lambda **seed: datasets.make_ten_rings(n_inner=20, n_outer=20, **seed),
    "corrupted views": datasets.make_corrupted_views,
    "two-view toy": datasets.make_two_view_toy,
    "synth 1": datasets.make_mvksc_synth1,
    "synth 2": datasets.make_mvksc_synth2,
}

generators = pytest.mark.parametrize("make", GENERATORS.values(), ids=GENERATORS)


def stacked(made):
    """All numbers of a data set in one matrix, labels last."""
    if isinstance(made, tuple):
        return np.column_stack(made)
    return np.column_stack([*made.views.values(), made.target])


@generators
def test_the_same_seed_gives_the_same_data(make):
    assert np.array_equal(stacked(make(random_state=7)), stacked(make(random_state=7)))


@generators
def test_another_seed_gives_other_data(make):
    assert not np.array_equal(stacked(make(random_state=7)), stacked(make(random_state=8)))


@generators
def test_global_random_state_is_neither_used_nor_changed(make):
    np.random.seed(0)  # noqa: NPY002
    first, state = stacked(make(random_state=3)), np.random.get_state()[1].copy()  # noqa: NPY002
    np.random.seed(1)  # noqa: NPY002
    assert np.array_equal(first, stacked(make(random_state=3)))
    make()
    np.random.seed(0)  # noqa: NPY002
    assert np.array_equal(state, np.random.get_state()[1])  # noqa: NPY002


@generators
@pytest.mark.parametrize("source", [np.random.default_rng, np.random.RandomState])
def test_generator_objects_advance_and_reproduce(make, source):
    first, again = source(5), source(5)
    one, two = stacked(make(random_state=first)), stacked(make(random_state=first))
    assert not np.array_equal(one, two)
    assert np.array_equal(one, stacked(make(random_state=again)))


@generators
def test_values_are_finite_and_labels_are_integers_from_zero(make):
    made = make(random_state=0)
    y = made[1] if isinstance(made, tuple) else made.target
    assert np.isfinite(stacked(made)).all()
    assert np.issubdtype(y.dtype, np.integer)
    assert np.array_equal(np.unique(y), np.arange(y.max() + 1))


def test_public_names_are_pinned():
    assert sorted(datasets.__all__) == [
        "fetch",
        "list_benchmarks",
        "load_benchmark",
        "load_edge_list",
        "load_graphml",
        "load_market_graph",
        "load_metis",
        "load_multiview_digits",
        "make_corrupted_views",
        "make_mvksc_synth1",
        "make_mvksc_synth2",
        "make_ten_rings",
        "make_tissue_image",
        "make_two_rings",
        "make_two_view_toy",
        "pixel_features",
        "standardize",
        "unit_rows",
    ]
    assert all(hasattr(datasets, name) for name in datasets.__all__)
