"""Fits of tables in blocks end with the labels of one process, wherever the blocks lie and however they are cut."""

import pickle
import subprocess
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from kernelweave import (
    ConvergenceWarning,
    ConvexMixture,
    GlobalKernelKMeans,
    GraphFusionClustering,
    KernelError,
    KernelKMeans,
    KMedoids,
    MinMaxKernelKMeans,
    MinMaxKMeans,
    MultiViewKernelKMeans,
    ParameterError,
    ViewError,
    config_context,
    get_config,
    save_model,
)
from kernelweave.backends.blocks.opened import Opened
from kernelweave.inputs.arrays import chunks as chunks_module
from kernelweave.inputs.arrays.chunks import FileRows, as_chunks
from kernelweave.kernels import chunked
from tests.command_server import programs
from tests.dask_clusters import Client, await_workers, local_cluster, two_views

N = 300
K = 4
CHUNKS = (1, 120, 1, 70, 108)
OTHER = (150, 149, 1)

# Runs of MinMax are cut short here.
pytestmark = pytest.mark.filterwarnings("ignore:.*max_iter:kernelweave.ConvergenceWarning")


A, B = two_views(N, K, distance=2.0)
VIEWS = {"a": A, "b": B}
WEIGHTS = np.random.default_rng(1).uniform(0.5, 2.0, N) * (np.arange(N) % 17 > 0)
NAMES = [f"x{j}" for j in range(A.shape[1])]
SEED = {"n_init": 2, "random_state": 0}
SHORT = {"n_init": 1, "max_iter": 12, "random_state": 0}

SINGLE = {
    "linear": KernelKMeans(K, kernel="linear", **SEED),
    "cosine": KernelKMeans(K, kernel="cosine", **SEED),
    "rbf": KernelKMeans(K, **SEED),
    "rbf, median": KernelKMeans(K, kernel_params={"gamma": "median"}, **SEED),
    "rbf, sigma": KernelKMeans(K, kernel_params={"sigma": 2.0}, init="random", **SEED),
    "laplacian": KernelKMeans(K, kernel="laplacian", init="random_partition", **SEED),
    "poly": KernelKMeans(K, kernel="poly", kernel_params={"degree": 2}, **SEED),
    "nystroem": KernelKMeans(K, approximation="nystroem", n_components=50, **SEED),
    "random features": KernelKMeans(K, approximation="random_features", n_components=50, **SEED),
    "minmax start": KernelKMeans(K, kernel="linear", init="minmax", n_init=1, random_state=0),
    "given start": KernelKMeans(K, kernel="linear", init=np.arange(N) % K),
    "minmax": MinMaxKMeans(K, **SHORT),
    "minmax, refined": MinMaxKMeans(K, refine=True, **SHORT),
    "minmax, centres": MinMaxKMeans(K, init=A[:K], max_iter=12),
    "kernel minmax": MinMaxKernelKMeans(K, **SHORT),
    "kernel minmax, linear": MinMaxKernelKMeans(K, kernel="linear", refine=True, **SHORT),
}
SEVERAL = {
    "linear views": MultiViewKernelKMeans(K, kernel="linear", random_state=0),
    "linear views, fewer for the start": MultiViewKernelKMeans(K, kernel="linear", init_size=100, random_state=0),
    "p auto": MultiViewKernelKMeans(K, kernel="linear", p="auto", init="k-means++", **SEED),
    "nystroem views": MultiViewKernelKMeans(K, approximation="nystroem", n_components=40, random_state=0),
    "mixed kernels": MultiViewKernelKMeans(K, kernel=["linear", "cosine"], init="k-means++", **SEED),
    "rbf views": MultiViewKernelKMeans(K, kernel="rbf", random_state=0),
    "features and pairs": MultiViewKernelKMeans(K, kernel=["linear", "laplacian"], init="k-means++", **SEED),
}
MODELS = SINGLE | SEVERAL


@pytest.fixture(scope="module")
def two_workers(tmp_path_factory):
    with local_cluster(2, tmp_path_factory.mktemp("two")) as client:
        yield client


def lazy(table, rows=CHUNKS, columns=None):
    return da.from_array(table, chunks=(rows, table.shape[1] if columns is None else columns))


def data_of(name):
    return A if name in SINGLE else VIEWS


def lazy_data(name):
    return lazy(A) if name in SINGLE else {"a": lazy(A), "b": lazy(B, OTHER)}


_FITTED: dict[str, Any] = {}


def in_one_process(name):
    """Return the model fitted on arrays in memory, once."""
    if name not in _FITTED:
        _FITTED[name] = clone(MODELS[name]).fit(data_of(name))
    return _FITTED[name]


def assert_equal_fits(model, expected):
    """Compare all that both fits say."""
    assert type(model.labels_) is np.ndarray
    assert model.labels_.dtype == expected.labels_.dtype
    np.testing.assert_array_equal(model.labels_, expected.labels_)
    np.testing.assert_allclose(model.objective_, expected.objective_, rtol=1e-9)
    np.testing.assert_allclose(model.objective_path_, expected.objective_path_, rtol=1e-9)
    np.testing.assert_allclose(model.cluster_variances_, expected.cluster_variances_, rtol=1e-8)
    assert (model.n_iter_, model.converged_) == (expected.n_iter_, expected.converged_)
    fitted = {name for name in vars(expected) if name.endswith("_")}
    assert fitted - {"observed_"} <= set(vars(model))


# Labels


@pytest.mark.parametrize("name", MODELS)
def test_blocks_in_this_process_end_with_the_labels_of_one_table(name):
    expected = in_one_process(name)
    model = clone(MODELS[name]).fit(lazy_data(name))
    assert_equal_fits(model, expected)
    data = data_of(name)
    np.testing.assert_array_equal(model.predict(data), expected.predict(data))
    np.testing.assert_allclose(model.transform(data), expected.transform(data), atol=1e-8)
    np.testing.assert_array_equal(model.predict(lazy_data(name)).compute(), expected.predict(data))
    if name in SEVERAL:
        np.testing.assert_allclose(model.view_weights_, expected.view_weights_, rtol=1e-9)
        assert model.view_names_ == expected.view_names_


# Every round to processes takes some milliseconds, so that these fits make few steps.
FEW = {"max_iter": 2, "n_init": 1}


def assert_equal_on_workers(client, names):
    """Fit on the workers and in this process."""
    for name in names:
        expected = clone(MODELS[name]).set_params(**FEW).fit(data_of(name))
        with config_context(client=client):
            model = clone(expected).fit(lazy_data(name))
        assert_equal_fits(model, expected)
        told = model.communication_
        assert told["workers"] == len(client.nthreads())
        assert told["blocks"] == len(CHUNKS)
        assert min(told["rounds"], told["bytes_sent"], told["bytes_received"]) > 0


def test_two_workers_end_with_the_labels_of_one_process(two_workers):
    assert_equal_on_workers(two_workers, ["linear", "rbf", "nystroem", "minmax", "kernel minmax"])
    assert_equal_on_workers(two_workers, ["linear views", "rbf views"])


def test_four_workers_end_with_the_labels_of_one_process(two_workers):
    two_workers.cluster.scale(4)
    try:
        await_workers(two_workers, 4)
        assert_equal_on_workers(two_workers, ["linear", "rbf", "linear views"])
    finally:
        two_workers.cluster.scale(2)
        await_workers(two_workers, 2)


def test_arrays_in_memory_are_spread_over_the_workers_of_the_settings(two_workers):
    frame = pd.DataFrame(A, columns=NAMES)
    views = [slice(0, 2), slice(2, 5)]
    cases = [("linear", frame, {}), ("linear views", [A, B], {}), ("linear views", A, {"views": views})]
    for name, data, changes in cases:
        expected = clone(MODELS[name]).set_params(**FEW, **changes).fit(data)
        with config_context(client=two_workers):
            model = clone(expected).fit(data)
        assert_equal_fits(model, expected)
        assert model.communication_["bytes_sent"] > A.nbytes
        assert getattr(model, "view_names_", None) == getattr(expected, "view_names_", None)
        assert model.predict(data).tolist() == expected.predict(data).tolist()


def test_collections_are_computed_with_the_default_client(two_workers):
    expected = clone(SINGLE["linear"]).set_params(**FEW).fit(A)
    with Client(two_workers.cluster):
        model = clone(expected).fit(lazy(A))
    assert model.communication_["bytes_sent"] > 0
    assert_equal_fits(model, expected)


def test_answers_can_be_computed_on_workers(two_workers):
    model = in_one_process("linear views")
    answer = two_workers.compute(model.predict(lazy_data("linear views")))
    assert answer.result().tolist() == model.labels_.tolist()


@settings(max_examples=20, deadline=None, derandomize=True)
@given(st.lists(st.integers(1, N - 1), max_size=12, unique=True), st.sampled_from(["linear", "rbf", "linear views"]))
def test_any_cuts_give_the_labels_of_one_process(cuts, name):
    edges = [0, *sorted(cuts), N]
    rows = tuple(np.diff(edges).tolist())
    data = lazy(A, rows) if name in SINGLE else [lazy(A, rows), lazy(B)]
    model = clone(MODELS[name]).fit(data)
    assert model.labels_.tolist() == in_one_process(name).labels_.tolist()
    assert model.communication_["blocks"] == len(rows)


def test_large_chunks_are_cut(monkeypatch):
    monkeypatch.setattr(chunks_module, "BLOCK_BYTES", 8 * A.shape[1] * 50)
    model = clone(SINGLE["linear"]).fit(lazy(A))
    assert model.communication_["blocks"] == 1 + 3 + 1 + 2 + 3
    assert_equal_fits(model, in_one_process("linear"))


def test_sums_of_all_pairs_may_travel_in_several_parts(monkeypatch):
    monkeypatch.setattr("kernelweave.backends.blocks.backend.SOURCE_ROWS", 64)
    assert_equal_fits(clone(SINGLE["rbf"]).fit(lazy(A)), in_one_process("rbf"))


# Kinds of tables


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.uint8, bool])
def test_numbers_of_any_kind(dtype):
    table = A.astype(dtype) if dtype is np.float32 else np.where(A > 0, 2.0 * A, 0.0).astype(dtype)
    expected = clone(SINGLE["linear"]).fit(table)
    model = clone(SINGLE["linear"]).fit(lazy(table))
    np.testing.assert_array_equal(model.labels_, expected.labels_)
    np.testing.assert_array_equal(model.predict(table), expected.predict(table))


@pytest.mark.parametrize("name", ["linear", "rbf"])
def test_samples_far_from_the_origin_are_moved_to_their_mean(name):
    far = A + 1e7  # squares of such numbers would leave two digits of the distances
    assert_equal_fits(clone(MODELS[name]).fit(lazy(far)), clone(MODELS[name]).fit(far))


def test_chunks_of_columns_and_empty_chunks():
    model = clone(SINGLE["linear"]).fit(lazy(A, (0, 100, 0, 200), (2, 3)))
    assert_equal_fits(model, in_one_process("linear"))
    assert model.communication_["blocks"] == 2


def test_weights():
    for name in ("linear", "rbf", "minmax", "linear views"):
        expected = clone(MODELS[name]).fit(data_of(name), sample_weight=WEIGHTS)
        model = clone(MODELS[name]).fit(lazy_data(name), sample_weight=WEIGHTS)
        assert_equal_fits(model, expected)


def test_views_in_lists_with_different_chunks_and_tables_in_memory():
    expected = clone(SEVERAL["linear views"]).fit([A, B])
    for views in ([lazy(A), lazy(B, OTHER)], (lazy(A), B), [pd.DataFrame(A), lazy(B, OTHER)]):
        model = clone(SEVERAL["linear views"]).fit(views)
        assert model.labels_.tolist() == expected.labels_.tolist()
        assert model.view_names_ == expected.view_names_
        assert model.predict([A, B]).tolist() == expected.predict([A, B]).tolist()
    alone = clone(SEVERAL["linear views"]).fit(lazy(A))
    assert alone.view_names_ == clone(SEVERAL["linear views"]).fit(A).view_names_
    assert alone.predict(A).tolist() == alone.labels_.tolist()


def test_data_frames_and_parquet_files(tmp_path):
    frame = pd.DataFrame(A, columns=NAMES)
    table = dd.from_pandas(frame, npartitions=4)
    table.to_parquet(tmp_path / "table")
    for read in (table, dd.read_parquet(tmp_path / "table")):
        model = clone(SINGLE["linear"]).fit(read)
        assert model.feature_names_in_.tolist() == NAMES
        assert model.n_features_in_ == len(NAMES)
        assert_equal_fits(model, in_one_process("linear"))
        assert model.predict(frame).tolist() == model.labels_.tolist()
        assert model.predict(read).compute().tolist() == model.labels_.tolist()
        with pytest.raises(ValueError, match="feature names"):
            model.predict(frame.rename(columns={"x0": "z"}))


def test_arrays_of_unknown_length_are_measured_and_left_as_they_are():
    table = lazy(A)
    some = table[table[:, 0] > 0]
    expected = clone(SINGLE["linear"]).fit(A[A[:, 0] > 0])
    assert clone(SINGLE["linear"]).fit(some).labels_.tolist() == expected.labels_.tolist()
    assert np.isnan(some.shape[0])


def test_zarr_arrays(tmp_path):
    stored = zarr.create_array(str(tmp_path / "table.zarr"), shape=A.shape, chunks=(64, 2), dtype=A.dtype)
    stored[:] = A
    for limit in (2048, 1e-4):
        model = clone(SINGLE["linear"]).set_params(memory_limit=limit).fit(stored)
        assert_equal_fits(model, in_one_process("linear"))
        assert model.communication_["bytes_sent"] == 0


def mapped(tmp_path, table, order="C"):
    path = tmp_path / f"table {order}.npy"
    np.save(path, np.asarray(table, order=order))
    return np.load(path, mmap_mode="r")


def test_mapped_files_are_read_by_their_name_and_copies_are_not(tmp_path):
    table = mapped(tmp_path, A)
    _, (chunks,) = as_chunks(table)
    assert {type(load) for load in chunks.loaders} == {FileRows}
    np.testing.assert_array_equal(np.concatenate([load() for load in chunks.loaders]), A)
    _, (part,) = as_chunks(table[7:])
    np.testing.assert_array_equal(np.concatenate([load() for load in part.loaders]), A[7:])
    copied = np.load(table.filename, mmap_mode="c")
    copied[0] = 5.0
    _, (changed,) = as_chunks(copied)
    np.testing.assert_array_equal(changed.loaders[0]()[0], np.full(A.shape[1], 5.0))


def test_only_the_rows_of_a_block_travel():
    _, (chunks,) = as_chunks(np.resize(A, (3000, A.shape[1])))
    load = replace(chunks.loaders[0], lo=100, hi=110)
    sent = pickle.dumps(load)
    assert len(sent) < 2 * 10 * A.shape[1] * 8
    np.testing.assert_array_equal(pickle.loads(sent)(), load())


def test_mapped_views_count_together(tmp_path):
    views = [mapped(tmp_path, A), mapped(tmp_path, B, "F")]
    limit = (A.nbytes + B.nbytes) / 2**20
    assert not chunks_module.is_chunked(views, limit)
    assert chunks_module.is_chunked(views, 0.99 * limit)
    assert not chunks_module.is_chunked([A, B], -1.0)


def test_blocks_of_one_chunk_compute_it_once(monkeypatch):
    monkeypatch.setattr(chunks_module, "BLOCK_BYTES", 8 * A.shape[1] * 30)
    computed = []

    def rows(block):
        computed.append(len(block))
        return block

    table = da.from_array(A, chunks=(150, -1)).map_blocks(rows, dtype=A.dtype, meta=np.empty((0, 0)))
    _, (chunks,) = as_chunks(table)
    computed.clear()
    with ThreadPoolExecutor(4) as pool:
        parts = list(pool.map(lambda load: load(), chunks.loaders))
    np.testing.assert_array_equal(np.concatenate(parts), A)
    assert len(parts) == 10
    assert computed == [150, 150]


def test_a_draw_of_a_start_reads_the_table_once(tmp_path, monkeypatch):
    reads = []
    load = Opened._loaded

    def counted(opened):
        if opened._rows is None:
            reads.append(len(opened))
        return load(opened)

    monkeypatch.setattr(Opened, "_loaded", counted)
    monkeypatch.setattr(chunks_module, "BLOCK_BYTES", 8 * A.shape[1] * 20)
    table = mapped(tmp_path, np.repeat(A, 5, axis=0))
    options = {"kernel": "linear", "n_init": 1, "memory_limit": 0.01, "random_state": 0}

    def passes(k):
        reads.clear()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            KernelKMeans(k, max_iter=1, **options).fit(table)
        return sum(reads) / len(table)

    assert passes(8) - passes(3) == pytest.approx(5.0, abs=0.5), "One pass for each draw, and the blocks of drawn rows."


@pytest.mark.filterwarnings("ignore:The model has labels, but it cannot be saved:UserWarning")
@pytest.mark.parametrize("name", ["linear", "rbf", "nystroem", "kernel minmax"])
def test_mapped_files_beyond_memory_are_streamed(name, tmp_path, monkeypatch):
    monkeypatch.setattr(chunks_module, "BLOCK_BYTES", 8 * A.shape[1] * 70)
    watched = []
    make = chunked.BlocksBackend
    monkeypatch.setattr(
        chunked, "BlocksBackend", lambda places, **options: watched.append(make(places, **options)) or watched[-1]
    )
    model = clone(SINGLE[name]).set_params(memory_limit=1e-4)
    wide = []
    close = chunked.Here.close

    def look(places):
        kept = [value for values in places._shard.values.values() for value in values.values()]
        wide.extend(value.shape for value in kept if isinstance(value, np.ndarray))
        close(places)

    monkeypatch.setattr(chunked.Here, "close", look)
    model.fit(mapped(tmp_path, A))
    np.testing.assert_array_equal(model.labels_, in_one_process(name).labels_)
    assert watched[0].places.streams
    assert model.communication_["blocks"] == 5
    assert all(len(shape) < 2 or K in shape for shape in wide), "Neither samples nor features are kept."


def test_mapped_files_in_either_order_parts_of_them_and_small_ones(tmp_path):
    model = clone(SINGLE["linear"]).set_params(memory_limit=1e-4)
    for order in "CF":
        assert model.fit(mapped(tmp_path, A, order)).labels_.tolist() == in_one_process("linear").labels_.tolist()
    whole = mapped(tmp_path, A)
    for part in (whole[100:], whole[:, 1:4], whole[::2]):
        expected = clone(SINGLE["linear"]).fit(np.array(part))
        assert model.fit(part).labels_.tolist() == expected.labels_.tolist()
        assert "communication_" in vars(model)
    assert "communication_" not in vars(model.set_params(memory_limit=100).fit(whole))


# Bad input


def spoilt(value):
    table = A.copy()
    table[130, 2] = value
    return table


@dataclass(frozen=True)
class Fault:
    model: Any
    data: Any
    match: str
    kind: type = ParameterError


LINEAR = SINGLE["linear"]
BOTH = SEVERAL["linear views"]
FAULTS = {
    "NaN": Fault(LINEAR, lazy(spoilt(np.nan)), r"X contains NaN \(row 130, column 2\)"),
    "infinity": Fault(LINEAR, lazy(spoilt(np.inf)), r"X contains infinity \(row 130, column 2\)"),
    "NaN in a view": Fault(BOTH, {"b": lazy(B), "a": lazy(spoilt(np.nan))}, r"'a' contains NaN \(row 130, column 2\)"),
    "text": Fault(LINEAR, lazy(A.astype(str)), "X holds values of type <U"),
    "text in a frame": Fault(
        LINEAR, dd.from_pandas(pd.DataFrame({"a": ["x", "y"], "b": [1.0, 2.0]}), npartitions=1), "holds values of type"
    ),
    "one dimension": Fault(LINEAR, da.from_array(A[:, 0]), "X has 1 dimensions"),
    "a series": Fault(LINEAR, dd.from_pandas(pd.Series(A[:, 0]), npartitions=2), "X has 1 dimensions"),
    "one sample": Fault(LINEAR, da.from_array(A[:1]), "1 sample"),
    "no samples": Fault(LINEAR, da.from_array(A[:0]), "0 sample"),
    "no features": Fault(LINEAR, da.zeros((10, 0)), "0 feature"),
    "views for one table": Fault(LINEAR, [lazy(A), lazy(B)], "several tables"),
    "different lengths": Fault(BOTH, {"a": lazy(A), "b": da.from_array(B[:-1])}, "'b' has 299 samples", ViewError),
    "no views": Fault(BOTH, {}, "no views", ViewError),
    "too many clusters": Fault(KernelKMeans(N + 1, kernel="linear"), lazy(A), "n_samples=300 should be >= n_clusters"),
    "sparse among views": Fault(BOTH, [lazy(A), sp.csr_array(B)], "Sparse"),
    "precomputed": Fault(KernelKMeans(K, kernel="precomputed"), lazy(A @ A.T), "'precomputed' is not available"),
    "callable": Fault(KernelKMeans(K, kernel=lambda X, Y: X @ Y.T), lazy(A), "kernels by name"),
    "neighbours": Fault(KernelKMeans(K, kernel="nearest_neighbors"), lazy(A), "'nearest_neighbors' is not available"),
    "dense storage": Fault(KernelKMeans(K, storage="dense"), lazy(A), "storage='dense'"),
    "dense linear": Fault(KernelKMeans(K, kernel="linear", storage="dense"), lazy(A), "storage='dense'"),
    "columns as views": Fault(clone(BOTH).set_params(views=[[0], [1]]), lazy(A), "views= divides"),
    "columns of views as views": Fault(
        clone(BOTH).set_params(views=[[0], [1]]), [lazy(A), lazy(B)], "drop it", ViewError
    ),
    "number of clusters": Fault(KernelKMeans("auto", kernel="rbf"), lazy(spoilt(np.nan)), "NaN"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_each_fault_has_its_error(name):
    fault = FAULTS[name]
    with pytest.raises(fault.kind, match=fault.match):
        clone(fault.model).fit(fault.data)


@pytest.mark.parametrize("search", ["exact", "approximate"])
def test_graph_fusion_on_workers_ends_with_the_labels_of_one_process(search, two_workers):
    model = GraphFusionClustering(K, neighbor_search=search, n_init=3, check_views=False, random_state=0)
    expected = clone(model).set_params(neighbor_search="exact").fit(VIEWS)
    with config_context(client=two_workers):
        spread = clone(model).fit({"a": lazy(A), "b": lazy(B, OTHER)})
        np.testing.assert_array_equal(clone(model).fit(VIEWS).labels_, expected.labels_)  # from memory to the workers
    np.testing.assert_array_equal(spread.labels_, expected.labels_)
    assert spread.neighbor_recall_.min() >= 0.95
    assert spread.communication_["workers"] == 2


def test_sparse_tables_are_not_spread_over_workers(two_workers):
    with config_context(client=two_workers):
        for model, data in ((LINEAR, sp.csr_array(A)), (BOTH, [sp.csr_array(A), B])):
            with pytest.raises(ParameterError, match="Sparse"):
                clone(model).fit(data)


@pytest.mark.parametrize("model", [GlobalKernelKMeans(K), ConvexMixture(K), KMedoids(K)])
def test_estimators_of_one_process_refuse_the_client_of_the_settings(model):
    refused = rf"{type(model).__name__} runs in one process"
    with config_context(client=object()), pytest.raises(ParameterError, match=refused):
        model.fit(A)


def test_settings_end_with_their_block_and_unknown_ones_are_refused():
    with config_context(client="one"):
        with config_context(client="two"):
            assert get_config().client == "two"
        assert get_config().client == "one"
    assert get_config().client is None
    with pytest.raises(TypeError, match="no setting clients"), config_context(clients=None):
        pass


# What is left after a fit


@pytest.mark.parametrize(
    "cls", [KernelKMeans, MinMaxKMeans, MinMaxKernelKMeans, MultiViewKernelKMeans, GraphFusionClustering]
)
def test_communication_is_documented(cls):
    assert "communication_ : dict" in cls.__doc__


WITHOUT_DASK = """
import sys
from pathlib import Path
import numpy as np
sys.modules["dask"] = None  # as if it were not installed
sys.modules["distributed"] = None
import kernelweave
for path in sorted(Path().glob("*.model")):
    model = kernelweave.load_model(path)
    data = dict(np.load("views.npz"))
    labels = model.predict(data if hasattr(model, "view_names_") else data["a"])
    assert labels.tolist() == model.labels_.tolist(), path
    print(path.stem)
"""


def test_a_saved_model_predicts_where_dask_is_not_installed(tmp_path):
    names = ["linear", "linear views", "minmax", "nystroem", "rbf"]
    np.savez(tmp_path / "views.npz", **VIEWS)
    for name in names:
        save_model(clone(MODELS[name]).fit(lazy_data(name)), tmp_path / f"{name}.model")
    command = [programs() / "python", "-c", WITHOUT_DASK]
    outcome = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert sorted(outcome.stdout.splitlines()) == names


@pytest.mark.parametrize("name", ["rbf", "kernel minmax"])
def test_training_samples_beyond_the_limit_are_not_kept_and_every_message_says_what_to_do(name, tmp_path):
    model = clone(MODELS[name]).set_params(memory_limit=0.001)
    remedy = r"exceed memory_limit\. Raise it, or use approximation='nystroem'"
    with pytest.warns(UserWarning, match=rf"cannot be saved and cannot predict: new samples .* {remedy}"):
        model.fit(lazy(A))
    np.testing.assert_array_equal(model.labels_, in_one_process(name).labels_)
    for method in (model.predict, model.transform):
        with pytest.raises(KernelError, match=remedy):
            method(A)
    with pytest.raises(ParameterError, match=rf"_model\.kernel cannot be saved\. After loading, .* {remedy}"):
        save_model(model, tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_a_second_fit_in_memory_leaves_nothing_of_the_first():
    model = clone(SINGLE["linear"]).fit(lazy(A))
    assert "communication_" in vars(model)
    model.fit(A)
    assert "communication_" not in vars(model)


def test_workers_keep_nothing_after_a_fit_nor_after_an_error(two_workers):
    def fits(dask_worker):
        return len(vars(dask_worker).get("_kernelweave_fits", {}))

    with config_context(client=two_workers):
        clone(SINGLE["linear"]).set_params(**FEW).fit(lazy(A))
        assert set(two_workers.run(fits).values()) == {0}
        for fault in (FAULTS["NaN"], FAULTS["too many clusters"], FAULTS["dense linear"]):
            with pytest.raises(ParameterError):
                clone(fault.model).fit(fault.data)
            assert set(two_workers.run(fits).values()) == {0}


def per_round(client, n):
    """Return the bytes of a round, sent and received, without the labels at the end."""
    rows = np.resize(A, (n, A.shape[1])) + 1e-3 * np.random.default_rng(0).standard_normal((n, A.shape[1]))
    with config_context(client=client):
        model = KernelKMeans(K, kernel="linear", n_init=1, max_iter=10, random_state=0)
        model.fit(da.from_array(rows, chunks=(n // 4, -1)))
    told = model.communication_
    assert told["blocks"] == 4
    assert 0 < told["bytes_of_a_round"] < told["bytes_sent"] + told["bytes_received"]
    means = told["bytes_sent"] / told["rounds"], (told["bytes_received"] - n) / told["rounds"]
    return *means, told["bytes_of_a_round"]


def test_bytes_of_a_round_do_not_grow_with_the_samples(two_workers):
    few = per_round(two_workers, 2_000)
    many = per_round(two_workers, 8_000)
    for more, less in zip(many, few, strict=True):
        assert more < 1.3 * less + 50
