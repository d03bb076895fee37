import os
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from kernelweave.datasets import list_benchmarks, load_benchmark
from kernelweave.foundation.errors import DataError

DATA = os.environ.get("KERNELWEAVE_DATA")
NAMES = list_benchmarks(DATA) if DATA and Path(DATA).is_dir() else []
needs_data = pytest.mark.skipif(not NAMES, reason="KERNELWEAVE_DATA names no directory with benchmark files")


@pytest.fixture
def store(tmp_path):
    """Write arrays to a file of a fresh data directory; return the directory."""

    def write(name, **arrays):
        path = tmp_path / f"{name}.npz"
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(path, **arrays)
        return tmp_path

    return write


def sparse_parts(key, matrix):
    csr = sparse.csr_array(matrix)
    arrays = {"data": csr.data, "indices": csr.indices, "indptr": csr.indptr, "shape": np.array(csr.shape)}
    return {f"{key}_{suffix}": array for suffix, array in arrays.items()}


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32, np.float64])
def test_single_view_becomes_float64(store, dtype):
    root = store("set/set", X=np.array([[0, 1], [2, 200]], dtype=dtype), y=np.array([0, 1], dtype=np.int32))
    bunch = load_benchmark("set", data_dir=root)
    assert bunch.data.dtype == np.float64
    assert bunch.data.tolist() == [[0, 1], [2, 200]]
    assert bunch.target.dtype == np.int64
    assert "views" not in bunch
    assert "target_names" not in bunch


def test_annotations_are_read(store):
    root = store(
        "faces",
        X=np.zeros((3, 6)),
        y=np.array([0, 1, 1]),
        classes=np.array(["ann", "bob"]),
        is_test=np.array([False, False, True]),
        image_shape=np.array([2, 3]),
        feature_names=np.array(list("abcdef")),
    )
    bunch = load_benchmark("faces", data_dir=root)
    assert bunch.target_names.tolist() == ["ann", "bob"]
    assert bunch.is_test.tolist() == [False, False, True]
    assert bunch.image_shape == (2, 3)
    assert bunch.feature_names == list("abcdef")
    assert bunch.DESCR == "faces: 3 samples; 6 features; 2 classes."


def test_views_are_named_in_the_order_of_the_file(store):
    views = {f"view_{i}": np.full((2, i + 1), i, dtype=np.uint8) for i in range(11)}
    root = store("many", view_names=np.array([f"v{i}" for i in range(11)]), **views)
    bunch = load_benchmark("many", data_dir=root)
    assert list(bunch.views) == [f"v{i}" for i in range(11)]
    assert [view.shape[1] for view in bunch.views.values()] == list(range(1, 12))
    assert all(view.dtype == np.float64 for view in bunch.views.values())


def test_views_without_names_are_numbered(store):
    root = store("plain", view_0=np.ones((2, 1)), view_1=np.ones((2, 2)))
    assert list(load_benchmark("plain", data_dir=root).views) == ["view_0", "view_1"]


def test_repeated_and_blank_view_names_are_made_unique(store):
    views = {f"view_{i}": np.full((2, 1), i) for i in range(4)}
    root = store("twins", view_names=np.array(["text", "text", "", "text_1"]), **views)
    loaded = load_benchmark("twins", data_dir=root).views
    assert list(loaded) == ["text", "text_1", "view_2", "text_1_3"]
    assert [view[0, 0] for view in loaded.values()] == [0, 1, 2, 3]


def test_sparse_single_view_is_rebuilt(store):
    dense = np.array([[0.0, 2.0, 0.0], [1.0, 0.0, 0.0]])
    bunch = load_benchmark("text", data_dir=store("text", **sparse_parts("X", dense), y=np.array([0, 1])))
    assert isinstance(bunch.data, sparse.csr_array)
    assert np.array_equal(bunch.data.toarray(), dense)


def test_sparse_and_dense_views_stand_side_by_side(store):
    dense = np.array([[0.0, 2.0], [1.0, 0.0]])
    root = store("mixed", **sparse_parts("view_0", dense.astype(np.int8)), view_1=dense)
    views = load_benchmark("mixed", data_dir=root).views
    assert np.array_equal(views["view_0"].toarray(), views["view_1"])
    assert views["view_0"].dtype == np.float64


def test_kernels_keep_their_shape(store):
    K = np.stack([np.eye(3), 2 * np.eye(3)])
    bunch = load_benchmark("kernels", data_dir=store("kernels", K=K, y=np.array([0, 1, 1])))
    assert np.array_equal(bunch.kernels, K)


PATH_GRAPH = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])


def test_graph_from_adjacency_lists(store):
    csr = sparse.csr_array(PATH_GRAPH)
    root = store("graph", indptr=csr.indptr, indices=csr.indices, n=np.int64(3), m=np.int64(2))
    graph = load_benchmark("graph", data_dir=root).graph
    assert isinstance(graph, sparse.csr_array)
    assert np.array_equal(graph.toarray(), PATH_GRAPH)


def test_graph_from_edges_is_symmetric_with_unit_weights_and_keeps_loops(store):
    edges = np.array([[0, 1], [1, 0], [1, 2], [3, 3]], dtype=np.int32)
    bunch = load_benchmark("g", data_dir=store("g", edges=edges, n=np.int64(5), node_ids=np.arange(10, 15)))
    expected = np.zeros((5, 5))
    expected[:3, :3], expected[3, 3] = PATH_GRAPH, 1
    assert np.array_equal(bunch.graph.toarray(), expected)
    assert bunch.node_ids.tolist() == [10, 11, 12, 13, 14]
    assert bunch.DESCR == "g: 5 samples; a graph of 3 edges."


def test_names_with_folder_without_folder_and_with_suffix_are_the_same(store):
    root = store("webkb/webkb_203", X=np.eye(2))
    for name in ("webkb_203", "webkb/webkb_203", "webkb/webkb_203.npz", "webkb_203.npz"):
        assert load_benchmark(name, data_dir=root).name == "webkb/webkb_203"


def test_listed_names_are_short_unless_shared(store):
    for name in ("a/one", "b/one", "b/two", "three"):
        root = store(name, X=np.eye(2))
    assert list_benchmarks(root) == ["a/one", "b/one", "three", "two"]
    assert all(load_benchmark(name, data_dir=root).data.shape == (2, 2) for name in list_benchmarks(root))
    with pytest.raises(DataError, match=r"shared by a/one, b/one"):
        load_benchmark("one", data_dir=root)


def test_unknown_name_suggests_the_closest(store):
    store("pendigits/pendigits", X=np.eye(2))
    with pytest.raises(DataError, match=r"'pendigit' among 2 files: did you mean 'pendigits'"):
        load_benchmark("pendigit", data_dir=store("optdigits/optdigits", X=np.eye(2)))
    with pytest.raises(DataError, match="list_benchmarks"):
        load_benchmark("zzz", data_dir=store("wine/wine", X=np.eye(2)))


def test_files_outside_the_directory_cannot_be_reached(store, tmp_path):
    store("secret", X=np.eye(2))
    store("inside/open", X=np.eye(2))
    with pytest.raises(DataError, match="no benchmark named"):
        load_benchmark("../secret", data_dir=tmp_path / "inside")


def test_environment_variable_names_the_directory(store, monkeypatch):
    monkeypatch.setenv("KERNELWEAVE_DATA", str(store("wine", X=np.eye(2))))
    assert list_benchmarks() == ["wine"]
    assert load_benchmark("wine").data.shape == (2, 2)


@pytest.mark.parametrize("call", [list_benchmarks, lambda: load_benchmark("wine")])
def test_missing_directory_says_how_to_set_it(call, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    monkeypatch.delenv("KERNELWEAVE_DATA", raising=False)
    with pytest.raises(DataError, match=r"data_dir=.*KERNELWEAVE_DATA"):
        call()
    monkeypatch.setenv("KERNELWEAVE_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(DataError, match=r"KERNELWEAVE_DATA='.*nowhere' is not a directory"):
        call()


def test_object_arrays_are_refused_because_nothing_is_unpickled(store):
    root = store("pickled", X=np.array([{"a": 1}, None], dtype=object))
    with pytest.raises(DataError, match=r"pickled\.npz cannot be read.*allow_pickle"):
        load_benchmark("pickled", data_dir=root)


def test_files_that_are_no_archives_are_refused(tmp_path):
    (tmp_path / "text.npz").write_text("not an archive")
    (tmp_path / "empty.npz").write_bytes(b"")
    np.save(tmp_path / "array.npy", np.eye(2))
    (tmp_path / "array.npy").rename(tmp_path / "array.npz")
    for name in ("text", "empty", "array"):
        with pytest.raises(DataError, match="cannot be read"):
            load_benchmark(name, data_dir=tmp_path)


@pytest.mark.parametrize(
    ("arrays", "complaint"),
    [
        ({"other": np.eye(2)}, "holds no data set"),
        ({"X": np.arange(3)}, "one row per sample"),
        ({"X": np.array([["a"]])}, "does not follow the format"),
        ({"X": np.eye(2), "y": np.arange(3)}, "disagree on the number of samples: data 2, target 3"),
        ({"view_0": np.eye(2), "view_1": np.eye(3)}, "disagree on the number of samples"),
        ({"view_0": np.eye(2), "view_names": np.array(["a", "b"])}, "1 views but 2 view_names"),
        ({"X_data": np.ones(1), "X_indices": np.zeros(1, int)}, "incomplete"),
        ({"K": np.eye(2)}, "n_kernels, n_samples, n_samples"),
        ({"indptr": np.array([0, 1, 1]), "indices": np.array([1])}, "not symmetric"),
        ({"edges": np.array([[0, 7]]), "n": np.int64(2)}, "does not follow the format"),
    ],
)
def test_malformed_files_are_refused(store, arrays, complaint):
    with pytest.raises(DataError, match=complaint):
        load_benchmark("bad", data_dir=store("bad", **arrays))


def matrices(bunch):
    return [bunch.data] if "data" in bunch else list(bunch.get("views", {}).values())


@needs_data
@pytest.mark.parametrize("name", NAMES)
def test_every_benchmark_loads_in_the_documented_form(name):
    bunch = load_benchmark(name, data_dir=DATA)
    for matrix in matrices(bunch):
        assert matrix.ndim == 2
        assert matrix.dtype == np.float64
    if "kernels" in bunch:
        assert np.allclose(bunch.kernels, bunch.kernels.transpose(0, 2, 1))
    if "graph" in bunch:
        assert set(bunch.graph.data.tolist()) == {1.0}
    if "target" in bunch:
        assert np.array_equal(np.unique(bunch.target), np.arange(bunch.target.max() + 1))
        assert len(bunch.get("target_names", np.unique(bunch.target))) == bunch.target.max() + 1
    assert bunch.DESCR.startswith(bunch.name)


@needs_data
@pytest.mark.parametrize(
    ("name", "shapes"),
    [
        ("pendigits", [(10992, 16)]),
        ("mfeat", [(2000, d) for d in (76, 216, 64, 240, 47, 6)]),
        ("tr11", [(414, 6429)]),
        ("reuters600", [(600, d) for d in (21531, 24892, 34251, 15506, 11547)]),
        ("mvkkm_synthetic", [(700, 2), (700, 2)]),
    ],
)
def test_known_benchmarks_have_their_published_shapes(name, shapes):
    if name not in NAMES:
        pytest.skip(f"{name} is not in the data directory")
    assert [matrix.shape for matrix in matrices(load_benchmark(name, data_dir=DATA))] == shapes


@needs_data
@pytest.mark.parametrize(("name", "nodes", "edges"), [("add32", 4960, 9462), ("ca_grqc", 5242, 14496)])
def test_known_graphs_have_their_published_sizes(name, nodes, edges):
    if name not in NAMES:
        pytest.skip(f"{name} is not in the data directory")
    graph = load_benchmark(name, data_dir=DATA).graph
    assert graph.shape == (nodes, nodes)
    assert (graph.nnz + np.count_nonzero(graph.diagonal())) / 2 == edges
