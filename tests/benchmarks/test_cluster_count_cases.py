"""The cases are what they say: else a rule would be blamed or praised for nothing."""

import numpy as np
import pytest
from scipy import sparse

from benchmarks import cluster_count_cases as known

OF_TABLES = {**known.RECIPES["synthetic"], **known.RECIPES["warnings"], "omics": known.omics}
WITH_CLUSTERS = [name for name in OF_TABLES if "k open" not in name]


def dense(X):
    return X.toarray() if sparse.issparse(X) else X


def one_scale(X, columns):
    """Return the columns a careful person would compare: shares of a count, all else in standard deviations."""
    X = dense(X)[:, columns]
    if X.size and X.min() >= 0 and np.array_equal(X, np.rint(X)):
        shares = np.sqrt(X / np.maximum(X.sum(axis=1, keepdims=True), 1.0))
        return shares / np.sqrt(shares.var(axis=0).mean())
    return X / X.std(axis=0)


def nearest_has_same_label(X, labels):
    distances = (X**2).sum(axis=1) - 2.0 * X @ X.T
    np.fill_diagonal(distances, np.inf)
    return np.mean(labels[distances.argmin(axis=1)] == labels)


def fingerprint(case):
    blocks = case.views if case.graph is None else [case.graph]
    return [dense(block) for block in blocks]


def test_the_groups_have_their_numbers_of_cases():
    counts = {group: len(recipes) for group, recipes in known.RECIPES.items()}
    assert counts == {"synthetic": 67, "null": 24, "graph": 18, "warnings": 24}


@pytest.mark.parametrize("name", WITH_CLUSTERS)
def test_samples_of_one_cluster_are_nearest_to_each_other_in_the_informative_columns(name):
    case = OF_TABLES[name](1)
    pairs = zip(case.views, case.informative, strict=True)
    X = np.hstack([one_scale(view, columns) for view, columns in pairs if len(columns)])
    assert nearest_has_same_label(X, case.labels) >= 0.9


@pytest.mark.parametrize("name", WITH_CLUSTERS)
def test_truth_and_sizes_are_as_the_name_says(name):
    case = OF_TABLES[name](0)
    sizes = np.bincount(case.labels)
    assert f"k={case.n_clusters}, n={len(case.labels)}, " in case.name
    assert f"d={'+'.join(str(X.shape[1]) for X in case.views)}" in case.name
    assert len(sizes) == case.n_clusters
    assert {X.shape[0] for X in case.views} == {case.n_samples} == {len(case.labels)}
    assert all(np.isfinite(dense(X)).all() for X in case.views)
    if "sizes" not in case.name and case.group != "omics":
        assert sizes.max() - sizes.min() <= 1
    assert sizes.min() >= 25
    assert sizes.max() / sizes.min() <= 5.1


def test_synthetic_cases_cover_what_they_should():
    cases = list(known.synthetic_cases(0))
    widths = [X.shape[1] for case in cases for X in case.views]
    assert {case.n_clusters for case in cases} == set(range(2, 13))
    assert {len(case.views) for case in cases} == {1, 2, 3, 4}
    assert (min(widths), max(widths)) == (2, 2000)
    assert (min(case.n_samples for case in cases), max(case.n_samples for case in cases)) == (150, 1500)


@pytest.mark.parametrize("group", ["null", "noise"])
def test_nulls_have_one_cluster_and_finite_values(group):
    cases = list(known.null_cases(0)) if group == "null" else [known.noise(seed) for seed in range(len(known.NOISE))]
    for case in cases:
        assert case.n_clusters == 1
        assert not case.labels.any()
        assert f"n={case.n_samples}, d={'+'.join(str(X.shape[1]) for X in case.views)}" in case.name
        assert all(np.isfinite(dense(X)).all() for X in case.views)
        assert 100 <= case.n_samples <= (1500 if group == "null" else 400)


def test_following_draws_of_noise_have_different_shapes():
    shapes = [known.noise(seed).name.split(": ")[1].split(",")[0] for seed in range(2 * len(known.NOISE))]
    assert shapes == [name for name, _, _ in known.NOISE] * 2


def test_most_neighbours_of_a_node_belong_to_its_block():
    for case in known.graph_cases(0):
        A = case.graph
        of_blocks = A @ np.eye(case.n_clusters)[case.labels]
        assert np.mean(of_blocks.argmax(axis=1) == case.labels) >= 0.95
        assert (A != A.T).nnz == 0
        assert not A.diagonal().any()
        assert (A.data == 1.0).all()
        assert (A.sum(axis=1) > 0).all()


def test_blocks_lie_well_above_the_threshold_of_detection():
    recipes = [recipe.keywords for recipe in known.RECIPES["graph"].values() if "strength" in recipe.keywords]
    assert len(recipes) == 14
    assert min(options["degree"] * options["strength"] ** 2 for options in recipes) >= 5.0


def test_the_links_of_a_block_model_have_the_stated_degree_and_strength():
    (name,) = (name for name in known.RECIPES["graph"] if name.startswith("blocks, k=4, n=1000"))
    case = known.RECIPES["graph"][name](3)
    ends = case.graph.tocoo()
    inside = np.mean(case.labels[ends.row] == case.labels[ends.col])
    assert case.graph.nnz / 1000 == pytest.approx(16, abs=0.6)
    assert inside == pytest.approx(0.65 + 0.35 / 4, abs=0.02)


def test_six_cases_call_for_each_warning():
    cases = list(known.warning_cases(0))
    main = [case.expected_warnings[0].kind for case in cases]
    assert {kind: main.count(kind) for kind in main} == {
        known.NO_GROUPS: 6,
        known.OWN_GROUPS: 6,
        known.ONE_VIEW: 6,
        known.NOT_TOGETHER: 6,
    }
    for case in cases:
        assert (case.n_clusters is None) == (case.expected_warnings[0].kind == known.NOT_TOGETHER)
        assert all(1 <= remark.view <= len(case.views) for remark in case.expected_warnings)


def test_a_view_of_noise_does_not_know_the_clusters():
    case = known.omics(2)
    assert [X.shape[1] for X in case.views] == [1500, 400, 10]
    shares = np.bincount(case.labels) / case.n_samples
    by_view = [nearest_has_same_label(X / X.std(axis=0), case.labels) for X in case.views]
    assert min(by_view[:2]) >= 0.95
    assert by_view[2] <= (shares**2).sum() + 0.12


def test_methylation_lies_between_zero_and_one():
    values = known.omics(0).views[1]
    assert 0.0 < values.min() < values.max() < 1.0


@pytest.mark.parametrize("group", ["synthetic", "null", "graph", "warnings", "omics", "noise"])
def test_the_seed_makes_the_case(group):
    recipes = list(known.RECIPES.get(group, {}).values())[::4] or [getattr(known, group)]
    period = len(known.NOISE) if group == "noise" else 1
    for recipe in recipes:
        first = recipe(0)
        again = recipe(0)
        other = recipe(period)
        assert first.name == again.name
        for a, b in zip(fingerprint(first), fingerprint(again), strict=True):
            np.testing.assert_array_equal(a, b)
        assert not any(np.array_equal(a, b) for a, b in zip(fingerprint(first), fingerprint(other), strict=False))


def test_labels_come_in_the_stated_ratio():
    sizes = np.bincount(known.draw_labels(np.random.default_rng(0), 700, 3, ratio=4.0))
    assert sizes.tolist() == [100, 200, 400]


def test_the_closest_centres_have_the_stated_distance():
    centres = known.draw_centres(np.random.default_rng(0), 6, 3, distance=7.0)
    assert known.pairwise(centres).min() == pytest.approx(7.0)


@pytest.mark.parametrize("kind", ["normal", "heavy", "heavy rows", "correlated"])
def test_noise_has_standard_deviation_one(kind):
    values = known.draw_noise(np.random.default_rng(0), 20_000, 5, kind)
    assert values.std() == pytest.approx(1.0, abs=0.05)
