"""Graph fusion of tables in blocks ends with the labels of one process; what is not available there is refused."""

from dataclasses import dataclass
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import zarr
from sklearn.base import clone

from kernelweave import (
    GraphFusionClustering,
    KernelError,
    ParameterError,
    ViewWarning,
    load_model,
    save_model,
)
from kernelweave.backends.neighbor_index import index_bytes
from kernelweave.estimators.graph import fusion_memory
from kernelweave.kernels import chunked_neighbors
from kernelweave.kernels.neighbors import cells_bytes, least_tile_bytes
from kernelweave.kernels.representations import FEW_COLUMNS
from tests.dask_clusters import two_views

N = 240
K = 4
CHUNKS = (1, 90, 1, 60, 88)
OTHER = (100, 139, 1)

A, B = two_views(N, K, distance=4.0)
WIDE = np.abs(np.hstack([A, B, A])) * (np.arange(N) % 29 > 0)[:, None]  # values >= 0, some rows empty
TIED = np.round(A)
DATA = {
    "one table": A,
    "two views": {"a": A, "b": B},
    "empty rows": {"wide": WIDE, "b": B},
    "ties": {"tied": TIED, "b": np.round(B)},
}


def lazy(table, rows=CHUNKS):
    return da.from_array(table, chunks=(rows, table.shape[1]))


def lazy_data(data):
    if not isinstance(data, dict):
        return lazy(data)
    first, *others = data
    return {first: lazy(data[first]), **{name: lazy(data[name], OTHER) for name in others}}


def assert_equal_fits(model, expected):
    """Compare all that both fits say."""
    np.testing.assert_array_equal(model.labels_, expected.labels_)
    np.testing.assert_allclose(model.affinity_.toarray(), expected.affinity_.toarray(), atol=1e-10)
    np.testing.assert_allclose(model.view_weights_, expected.view_weights_, rtol=1e-8)
    np.testing.assert_allclose(model.view_agreement_, expected.view_agreement_, rtol=1e-8)
    assert (model.n_clusters_, model.verdict_) == (expected.n_clusters_, expected.verdict_)
    assert (model.representations_, model.warnings_) == (expected.representations_, expected.warnings_)
    fitted = {name for name in vars(expected) if name.endswith("_")}
    assert fitted - {"observed_"} <= set(vars(model))


@pytest.mark.filterwarnings("ignore::kernelweave.ViewWarning")
@pytest.mark.parametrize("name", DATA)
def test_blocks_end_with_the_labels_of_one_table(name, monkeypatch):
    monkeypatch.setattr(chunked_neighbors, "TRAVELLING_ROWS", 80)
    data = DATA[name]
    model = GraphFusionClustering(K, n_init=3, random_state=0)
    expected = clone(model).fit(data)
    model.fit(lazy_data(data))
    assert_equal_fits(model, expected)
    assert model.neighbor_recall_.tolist() == [1.0] * len(model.view_names_)
    assert model.communication_["blocks"] == len(CHUNKS)
    np.testing.assert_array_equal(model.predict(data), expected.labels_)
    promised = model.predict(lazy_data(data))
    assert isinstance(promised, da.Array)
    np.testing.assert_array_equal(promised.compute(), expected.labels_)


def test_the_number_of_clusters_and_the_judgement_of_views_are_those_of_one_table():
    noise = np.random.default_rng(5).standard_normal((N, 3))
    data = {"a": A, "b": B, "noise": noise}
    model = GraphFusionClustering(n_init=3, random_state=0)
    with pytest.warns(ViewWarning, match="'noise' shows no groups"):
        expected = clone(model).fit(data)
    with pytest.warns(ViewWarning, match="'noise' shows no groups"):
        model.fit(lazy_data(data))
    assert model.n_clusters_ == K
    assert_equal_fits(model, expected)


def test_files_and_data_frames_end_with_the_labels_of_one_table(tmp_path):
    model = GraphFusionClustering(K, n_init=3, check_views=False, random_state=0)
    expected = clone(model).fit([A, B]).labels_
    np.save(tmp_path / "a.npy", A)
    mapped = np.load(tmp_path / "a.npy", mmap_mode="r")
    small = clone(model).set_params(memory_limit=3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fusion_memory, "NEIGHBOR_BYTES", 1)
        np.testing.assert_array_equal(small.fit([mapped, zarr.array(B, chunks=(50, 3))]).labels_, expected)
    frames = [dd.from_pandas(pd.DataFrame(table).add_prefix("x"), npartitions=3) for table in (A, B)]
    np.testing.assert_array_equal(clone(model).fit(frames).labels_, expected)


@pytest.mark.parametrize("X", [[A, B], [lazy(A), lazy(B)]], ids=["in memory", "in blocks"])
def test_approximate_neighbours_are_measured_and_keep_the_clusters(X):
    exact = GraphFusionClustering(K, n_init=3, check_views=False, random_state=0).fit([A, B])
    model = clone(exact).set_params(neighbor_search="approximate").fit(X)
    assert model.neighbor_recall_.shape == (2,)
    assert model.neighbor_recall_.min() >= 0.95
    np.testing.assert_array_equal(model.labels_, exact.labels_)


def test_a_search_that_misses_neighbours_is_warned_of(monkeypatch):
    monkeypatch.setattr("kernelweave.estimators.graph.fusion_views.measured_recall", lambda *args: 0.5)
    model = GraphFusionClustering(K, n_init=3, neighbor_search="approximate", random_state=0)
    with pytest.warns(ViewWarning, match=r"view 'X' found only 50% of the nearest ones(.|\n)*'exact'"):
        model.fit(A)
    assert model.neighbor_recall_.tolist() == [0.5]
    assert "50%" in model.warnings_[0]


def test_graphs_have_no_recall_and_kernels_all_of_it():
    links = (np.abs(np.subtract.outer(np.arange(N), np.arange(N))) < 3).astype(float)
    types = {"a": "auto", "kernel": "kernel", "links": "graph"}
    views = {"a": A, "kernel": A @ A.T, "links": links}
    settings = {"check_views": False, "n_init": 2, "random_state": 0}
    model = GraphFusionClustering(K, view_types=types, neighbor_search="approximate", **settings).fit(views)
    np.testing.assert_array_equal(model.neighbor_recall_ >= 0.95, [True, True, False])
    assert np.isnan(model.neighbor_recall_[2])


def test_models_of_blocks_are_saved_and_loaded(tmp_path):
    model = GraphFusionClustering(K, n_init=3, check_views=False, neighbor_search="exact", random_state=0)
    save_model(model.fit([lazy(A), lazy(B)]), tmp_path / "model.kw")
    loaded = load_model(tmp_path / "model.kw")
    np.testing.assert_array_equal(loaded.predict([A[:20] + 0.1, B[:20]]), model.predict([A[:20] + 0.1, B[:20]]))
    assert loaded.get_params()["neighbor_search"] == "exact"
    assert loaded.neighbor_recall_.tolist() == [1.0, 1.0]


# Refusals


@dataclass
class Fault:
    match: str
    X: Any
    settings: Any


COUNTS = (np.random.default_rng(0).random((N, 30)) < 0.05).astype(float)
HOLES = np.where(np.arange(N)[:, None] == 7, np.nan, A)
FAULTS = {
    "counts": Fault(r"view 'X' is mostly zeros(.|\n)*view_types='table'", lazy(COUNTS), {}),
    "kernel": Fault(r"view 'view_1' is named 'kernel'", [lazy(A), lazy(B)], {"view_types": ["table", "kernel"]}),
    "absent samples": Fault(r"contains NaN \(row 7, column 0\)", lazy(HOLES), {"missing": "drop"}),
    "columns as views": Fault(r"views= divides the columns", lazy(A), {"views": [[0, 1], [2]]}),
    "too many clusters": Fault(r"n_clusters=300", lazy(A), {"n_clusters": 300}),
    "room": Fault(r"memory_limit=0.1(.|\n)*n_neighbors(.|\n)*at most \d+ and predict", lazy(A), {"memory_limit": 0.1}),
    "room in memory": Fault(r"memory_limit=0.1(.|\n)*at most \d+ and predict", A, {"memory_limit": 0.1}),
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=list(FAULTS))
def test_what_cannot_be_had_is_refused(fault):
    with pytest.raises(ParameterError, match=fault.match):
        GraphFusionClustering(K, random_state=0).set_params(**fault.settings).fit(fault.X)


def test_cells_are_refused_in_blocks_and_other_searches_named(monkeypatch):
    monkeypatch.setattr(fusion_memory, "EXACT_LIMIT", 100)
    with pytest.raises(ParameterError, match=r"neighbor_search='auto'(.|\n)*240(.|\n)*'approximate'(.|\n)*'exact'"):
        GraphFusionClustering(K, random_state=0).fit(lazy(A))


def test_training_samples_that_do_not_fit_are_not_kept_and_predict_says_so(monkeypatch):
    monkeypatch.setattr(fusion_memory, "NEIGHBOR_BYTES", 1)
    monkeypatch.setattr(fusion_memory, "EIGEN_NUMBERS", 1)
    model = GraphFusionClustering(K, n_init=2, check_views=False, memory_limit=0.03, random_state=0)
    model.fit(lazy(np.hstack([A, A, A])))
    assert len(model.labels_) == N
    with pytest.raises(KernelError, match="exceed memory_limit"):
        model.predict(np.hstack([A, A, A])[:3])


@pytest.mark.parametrize(
    ("room", "fitting"),
    [(2500, 125), (2019, 40), (1999, 39), (549, 10), (81, 9), (80, 8), (0, 0)],  # 101 samples would take 2,020 bytes
)
def test_a_refusal_names_the_largest_number_of_samples_that_fits(room, fitting, monkeypatch):
    monkeypatch.setattr(fusion_memory, "SMALL", 10)
    monkeypatch.setattr(fusion_memory, "EXACT_LIMIT", 100)

    def needed(n):
        return n**2 if n <= 10 else 50 * n if n <= 100 else 20 * n

    with pytest.raises(ParameterError, match=f"at most {fitting} and predict the others: {fitting} samples would fit"):
        fusion_memory.check_room_here(needed, room / 2**20, 1000)
    if fitting:
        fusion_memory.check_room_here(needed, room / 2**20, fitting)


def test_room_for_cells_is_counted_beyond_the_exact_search(monkeypatch):
    monkeypatch.setattr(fusion_memory, "EXACT_LIMIT", 100)
    exact = fusion_memory.search_bytes(5000, [30, 10], 15, "exact")
    assert fusion_memory.search_bytes(100, [30, 10], 15, "auto") == fusion_memory.search_bytes(100, [30], 15, "exact")
    assert fusion_memory.search_bytes(5000, [30, 10], 15, "auto") == cells_bytes(5000, 30, 15)
    assert exact == least_tile_bytes(5000) < cells_bytes(5000, 30, 15)
    assert cells_bytes(5000, 30, 80) - cells_bytes(5000, 30, 60) > 20 * 5000 * 4  # rounds keep as many as are wanted


def test_indexes_of_all_representations_are_counted_together():
    few = fusion_memory.search_bytes(5000, [FEW_COLUMNS - 1], 15, "approximate")
    both = fusion_memory.search_bytes(5000, [FEW_COLUMNS - 1, FEW_COLUMNS], 15, "approximate")
    assert few == index_bytes(5000, FEW_COLUMNS - 1)
    assert both - few == 2 * index_bytes(5000, FEW_COLUMNS)
