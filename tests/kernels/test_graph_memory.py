"""Graphs of neighbours within a limit of memory: the peak, the results, and what is refused before it is there."""

import re

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.neighbors import NearestNeighbors

from kernelweave import KernelKMeans, MultiViewKernelKMeans
from kernelweave.estimators.shared.single_kernel import room_for_search
from kernelweave.foundation.errors import ParameterError
from kernelweave.kernels.graph import GraphKernel
from kernelweave.kernels.spec.fitting import fit_kernel
from kernelweave.kernels.spec.neighbors import nearest
from tests.peak_memory import peak_of

pytestmark = pytest.mark.filterwarnings(
    "ignore:The kernel .*is not positive semidefinite", "ignore:The best run stopped at max_iter"
)

N = 1200  # all distances take 11 MiB


def cloud(n=N, d=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    X[np.arange(n), np.arange(n) % 3] += 6.0
    return X


def sparse_cloud(n=N):
    return sp.random_array((n, 300), density=0.05, format="csr", rng=np.random.default_rng(0))


def mib(X):
    return (X.data.nbytes + X.indices.nbytes + X.indptr.nbytes if sp.issparse(X) else X.nbytes) / 2**20


def model(kernel, limit, n_clusters=3, **params):
    options = {"n_init": 1, "max_iter": 3, "random_state": 0, "memory_limit": limit}
    return KernelKMeans(n_clusters, kernel=kernel, kernel_params=params, **options)


@pytest.fixture(scope="module", autouse=True)
def _warm():
    """What is imported and compiled at first use is not counted."""
    for kernel in ("nearest_neighbors", "self_tuning"):
        for X in (cloud(), sparse_cloud(60)):
            model(kernel, 1, metric="cosine").fit(X).predict(X)


@pytest.mark.parametrize(
    ("kernel", "X", "metric"),
    [
        ("nearest_neighbors", cloud(), "cosine"),
        ("nearest_neighbors", sparse_cloud(), "cosine"),
        ("nearest_neighbors", sparse_cloud(), "euclidean"),
        ("self_tuning", cloud(), "cosine"),
        ("self_tuning", sparse_cloud(), "euclidean"),
    ],
)
def test_searches_without_a_tree_keep_to_the_limit(kernel, X, metric):
    limit = 4
    fitted, peak = peak_of(lambda: model(kernel, limit, metric=metric).fit(X))
    assert peak < 1.15 * (mib(X) + limit)
    np.testing.assert_array_equal(fitted.labels_, model(kernel, 2048, metric=metric).fit(X).labels_)


def test_small_limits_find_the_same_neighbours_and_ties():
    grid = np.stack(np.meshgrid(*[np.arange(9.0)] * 3), axis=-1).reshape(-1, 3)
    for metric, X in (
        ("euclidean", grid),
        ("manhattan", grid),
        ("cosine", grid + 1),
        ("euclidean", sp.csr_array(grid)),
    ):
        index = NearestNeighbors(n_neighbors=9, metric=metric).fit(X)
        ample = nearest(index, X)
        tight = nearest(index, X, 0.01)
        np.testing.assert_array_equal(np.sort(tight[1], axis=1), np.sort(ample[1], axis=1))
        np.testing.assert_allclose(tight[0], ample[0], rtol=1e-9, atol=1e-7)


def test_the_search_leaves_room_for_what_it_returns():
    X = cloud(6000, 3)
    index = NearestNeighbors(n_neighbors=100).fit(X)
    (distances, neighbors), peak = peak_of(lambda: nearest(index, X, 10))
    assert distances.shape == neighbors.shape == (6000, 100)
    assert peak < 1.15 * 10


@pytest.mark.parametrize("weights", ["connectivity", "self_tuning"])
def test_new_samples_near_an_outlier_do_not_list_all_pairs(weights):
    X = cloud()
    X[0] = 1e6  # its neighbourhood reaches everywhere
    new = np.vstack([cloud(seed=1), X[:50]])
    limit = 4
    fitted = model("nearest_neighbors", limit, weights=weights).fit(X)
    labels, peak = peak_of(lambda: fitted.predict(new))
    assert peak < 1.15 * (mib(new) + limit)
    ample = model("nearest_neighbors", 2048, weights=weights).fit(X)
    np.testing.assert_array_equal(labels, ample.predict(new))
    np.testing.assert_allclose(fitted.transform(new), ample.transform(new), atol=1e-9)


@pytest.mark.parametrize("symmetrize", ["mean", "max"])
@pytest.mark.parametrize("weights", ["connectivity", "self_tuning"])
def test_pieces_of_rows_are_those_of_the_whole(weights, symmetrize):
    X = np.vstack([cloud(300, 3), np.zeros((30, 3))])  # more copies than neighbours
    new = np.vstack([cloud(200, 3, seed=1), X[100:], X[:3]])
    params = {"weights": weights, "symmetrize": symmetrize}
    wholly, in_pieces = (
        fit_kernel(X, "nearest_neighbors", params, memory_limit=limit).cross(new).A for limit in (2048, 0.5)
    )
    assert in_pieces.has_sorted_indices
    np.testing.assert_array_equal(in_pieces.toarray(), wholly.toarray())
    graph = fit_kernel(X, "nearest_neighbors", params).operator().A.toarray()
    np.testing.assert_array_equal(wholly.toarray()[200:400], graph[100:300])


def test_a_graph_that_is_too_large_is_refused_before_the_search():
    X = cloud(3000)
    error, peak = peak_of(lambda: model("nearest_neighbors", 16, n_neighbors=200).fit(X))
    assert peak < 1
    message = r"take 27\.6 MiB, more than memory_limit=16. Raise it to 28, use fewer neighbours .*: ([\d,]+) samples"
    fitting = int(re.search(message, str(error)).group(1).replace(",", ""))
    fitted, peak = peak_of(lambda: model("nearest_neighbors", 16, n_neighbors=200).fit(X[:fitting]))
    assert peak < 1.15 * (mib(X[:fitting]) + 16)
    assert len(fitted.labels_) == fitting
    with pytest.raises(ParameterError, match=f"{fitting:,} samples would fit"):
        model("nearest_neighbors", 16, n_neighbors=200).fit(X[: fitting + 1])
    assert model("nearest_neighbors", 28, n_neighbors=200).fit(X).labels_.shape == (3000,)


def test_graphs_of_views_share_the_limit():
    X = cloud(1000)
    options = {"kernel": "nearest_neighbors", "kernel_params": {"n_neighbors": 100}, "init": "random", "max_iter": 2}
    with pytest.raises(ParameterError, match=r"2 graphs of 100 neighbours of each of 1,000 samples take 8.09 MiB"):
        MultiViewKernelKMeans(3, memory_limit=7, **options).fit([X, X])
    MultiViewKernelKMeans(3, memory_limit=9, random_state=0, **options).fit([X, X])


def test_an_index_of_approximate_neighbours_counts():
    X = cloud(3000, d=200)
    assert model("nearest_neighbors", 6).fit(X).labels_.shape == (3000,)
    message = r"take ([\d.]+) MiB, more than memory_limit=6\. .*: ([\d,]+) samples would fit"
    with pytest.raises(ParameterError, match=message) as error:
        model("nearest_neighbors", 6, neighbor_search="approximate").fit(X)
    taken, fitting = re.search(message, str(error.value)).groups()
    edges = 4 * 12 * 11 * 3000 / 2**20  # three graphs and their transpose, eleven edges of twelve bytes per sample
    index = 3000 * (2 * 4 * 200 + 152) / 2**20  # rows of single precision, on the way and inside, and links
    assert float(taken) == pytest.approx((edges + mib(X) + index) / 1.1, rel=0.01)
    few = X[: int(fitting.replace(",", ""))]
    assert len(model("nearest_neighbors", 6, neighbor_search="approximate").fit(few).labels_) == len(few)


@pytest.mark.parametrize(
    ("X", "metric", "moved"),
    [(cloud(d=200), "euclidean", True), (cloud(d=200), "cosine", False), (sparse_cloud(), "euclidean", False)],
)
def test_samples_that_were_moved_are_kept_and_count(X, metric, moved):
    fitted = fit_kernel(X, "nearest_neighbors", {"metric": metric})
    kept = mib(X) if moved else 0.0
    assert fitted.kept_mib == kept
    graph = fitted.operator()
    beside_nothing = room_for_search([fit_kernel(np.eye(2), "linear")], [graph], 3, 10)
    counted = max(0.0, kept - 1.0)  # a tenth of the limit is free
    assert room_for_search([fitted], [graph], 3, 10) == pytest.approx(beside_nothing - counted)


def test_new_samples_that_are_too_many_are_refused():
    X = cloud(500)
    fitted = model("nearest_neighbors", 2, n_neighbors=20).fit(X)
    error, peak = peak_of(lambda: fitted.predict(cloud(20_000, seed=1)))
    assert peak < 1.15 * (20_000 * 6 * 8 / 2**20 + 2)
    fitting = int(re.search(r"memory_limit=2. .* about ([\d,]+) would fit", str(error)).group(1).replace(",", ""))
    assert 1000 < fitting < 20_000
    fitted.predict(cloud(fitting // 2, seed=1))


def test_steps_of_a_solver_make_no_copy_of_the_graph():
    A = sp.random_array((2000, 2000), density=0.1, format="csr", rng=np.random.default_rng(0))
    A = sp.csr_array((A.data - 0.7, A.indices.astype(np.int32), A.indptr.astype(np.int32)), shape=A.shape)
    graph = GraphKernel(A)
    labels = np.arange(2000) % 3
    for work in (
        graph.scale,
        lambda: graph.block(slice(None), np.arange(3)),
        lambda: graph.cluster_sums(labels, np.ones(2000), 3),
    ):
        assert peak_of(work)[1] < 0.5  # of 4.6 MiB
    assert graph.scale() == pytest.approx(np.abs(A.data).max())


@pytest.mark.parametrize("kernel", ["nearest_neighbors", "self_tuning"])
def test_a_limit_above_the_default_is_passed_on_as_it_is(kernel):
    model = KernelKMeans(3, kernel=kernel, memory_limit=4096, random_state=0).fit(cloud(60))
    endless = fit_kernel(cloud(60), kernel, memory_limit=np.inf)
    for kept, limit in ((model._model.kernel, 4096), (endless, np.inf)):
        assert (kept.graph if kernel == "nearest_neighbors" else kept.formula).memory_limit == limit
