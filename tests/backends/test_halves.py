"""Solvers run on data that are never in one place, and end where they end on one machine."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from kernelweave.backends import Backend, get_backend
from kernelweave.kernels.dense import DenseKernel
from kernelweave.kernels.features import FeatureKernel
from kernelweave.kernels.transforms import DegreeKernel, ScaledKernel
from kernelweave.kernels.weighted_sum import CompositeKernel, composite
from kernelweave.solvers.kmeans.global_search import global_kernel_kmeans
from kernelweave.solvers.kmeans.kernel_kmeans import kernel_kmeans
from kernelweave.solvers.kmeans.minmax import minmax_kmeans
from kernelweave.solvers.kmeans.multi_view_kernel_kmeans import multi_view_kernel_kmeans
from kernelweave.solvers.kmeans.starts import INITS, start_labels
from kernelweave.solvers.spectral.eigenvectors import spectrum
from kernelweave.solvers.spectral.kernel_spectral import kernel_spectral
from kernelweave.solvers.spectral.multi_view_spectral import multi_view_spectral
from tests.backends.halves import HalvesBackend
from tests.backends.watched_blocks import WatchedBlocks
from tests.torch_devices import needs_torch

N = 97
MIDDLE = 38
K = 4
SEEDS = range(4)


def data(seed):
    rng = np.random.default_rng(seed)
    truth = rng.integers(K, size=N)
    X = 2.5 * rng.standard_normal((K, 3))[truth] + rng.standard_normal((N, 3))
    Y = 2.0 * rng.standard_normal((K, 5))[truth] + rng.standard_normal((N, 5))
    return X, Y, rng.uniform(0.5, 2.0, N) * (rng.random(N) < 0.95)


def gaussian(X, gamma=0.2):
    return np.exp(-gamma * ((X[:, None] - X[None]) ** 2).sum(axis=2))


def indefinite(X):
    rng = np.random.default_rng(3)
    noise = rng.standard_normal((N, N))
    return gaussian(X) + 0.15 * (noise + noise.T)


KERNELS = {
    "matrix": lambda X, home: DenseKernel(home(gaussian(X)), **home.options),
    "float32": lambda X, home: DenseKernel(home(gaussian(X).astype(np.float32), np.float32), **home.options),
    "indefinite": lambda X, home: DenseKernel(home(indefinite(X)), **home.options),
    "features": lambda X, home: FeatureKernel(home(X), **home.options),
    "scaled": lambda X, home: ScaledKernel(DenseKernel(home(gaussian(X)), **home.options), 3.0),
    "by degrees": lambda X, home: DegreeKernel(DenseKernel(home(gaussian(X)), psd=True, **home.options)),
    "sum": lambda X, home: CompositeKernel(
        [DenseKernel(home(gaussian(X)), **home.options), FeatureKernel(home(X), **home.options)], [0.8, 0.1]
    ),
}
kernels = pytest.mark.parametrize("make", KERNELS.values(), ids=KERNELS.keys())


class Home:
    """Where the data of a case live: on the host, in halves or in blocks."""

    def __init__(self, backend):
        self.backend = backend
        self.options = {"backend": backend}

    def __call__(self, values, dtype=np.float64):
        return self.backend.array(values, dtype)


def watched_torch():
    needs_torch()
    from tests.backends.watched_torch import WatchedTorch

    return WatchedTorch()


ELSEWHERE = {
    "halves": lambda: HalvesBackend(N, MIDDLE),
    "blocks": lambda: WatchedBlocks([1, 37, 1, 1, 56, 1]),
    "torch": watched_torch,
}


@pytest.fixture(params=ELSEWHERE)
def homes(request):
    """Return what makes two homes: the host, and one whose data are never in one place."""
    return lambda: (Home(get_backend("numba")), Home(ELSEWHERE[request.param]()))


def test_the_backend_has_every_verb_that_these_solvers_use_and_hands_out_no_array_of_all_samples():
    verbs = {name for name in dir(Backend) if not name.startswith("_")}
    tiled = {name for name in verbs if name.startswith(("tiled", "filled", "asymmetry", "candidate_gains_of"))}
    of_absence = {"take", "add_to_samples", "sum_of_pairs", "add_to_pairs"}  # views that lack samples are in one place
    assert {name for name in verbs if not hasattr(HalvesBackend, name)} == tiled | of_absence | {"assign_by_size"}
    backend = HalvesBackend(N, MIDDLE)
    whole = backend.array(np.ones(N))
    with pytest.raises(AssertionError, match="on the host"):
        np.asarray(whole)
    with pytest.raises(AssertionError, match="met one in halves"):
        whole + np.ones(N)
    with pytest.raises(AssertionError, match="handed out"):
        backend.at(whole, np.arange(N))


@kernels
@pytest.mark.parametrize("init", [init for init in INITS if init != "random_partition"])
def test_starts_are_the_same_labels(make, init, homes):
    X, _, weights = data(0)
    results = []
    for home in homes():
        op = make(X, home)
        results.append(start_labels(op, init, weights, K, np.random.default_rng(1)))
    np.testing.assert_array_equal(*results)


@kernels
@pytest.mark.parametrize("seed", SEEDS)
def test_kernel_kmeans_visits_the_same_partitions(make, seed, homes):
    X, _, weights = data(seed)
    labels = np.random.default_rng(seed).integers(K + 2, size=N)
    here, there = homes()
    one, other = (kernel_kmeans(make(X, home), labels, weights, n_clusters=K + 2) for home in (here, there))
    np.testing.assert_array_equal(other.labels, one.labels)
    np.testing.assert_allclose(other.history, one.history, rtol=1e-10)
    np.testing.assert_allclose(other.scatter, one.scatter, atol=1e-9)
    assert (other.converged, other.rose) == (one.converged, one.rose)
    assert there.backend.hosted == [(N,)], "Labels reach the host once, at the end."
    assert there.backend.largest <= (K + 2) ** 2 + 3 * (K + 2)


@kernels
def test_empty_clusters_and_equal_centres_are_handled_alike(make, homes):
    X, _, weights = data(1)
    X = np.repeat(X[:12], 9, axis=0)[:N]
    results = [kernel_kmeans(make(X, home), np.arange(N) % 3, weights, n_clusters=9) for home in homes()]
    np.testing.assert_array_equal(results[1].labels, results[0].labels)
    np.testing.assert_allclose(results[1].totals, results[0].totals)


def test_a_step_that_would_raise_the_objective_is_cut_back_alike(homes):
    rose = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        noise = rng.standard_normal((N, N))
        matrix = noise + noise.T
        labels = rng.integers(3, size=N)
        one, other = (
            kernel_kmeans(DenseKernel(home(matrix), **home.options), labels, np.ones(N), n_clusters=3)
            for home in homes()
        )
        np.testing.assert_array_equal(other.labels, one.labels)
        rose += one.rose
    assert rose, "No case met a rising step; the test shows nothing."


@pytest.mark.parametrize("name", [name for name in KERNELS if name != "indefinite"])  # variances are positive
@pytest.mark.parametrize("seed", SEEDS)
def test_minmax_ends_in_the_same_partition(name, seed, homes):
    X, _, weights = data(seed)
    labels = np.random.default_rng(seed).integers(K, size=N)
    one, other = (minmax_kmeans(KERNELS[name](X, home), labels, weights, n_clusters=K) for home in homes())
    np.testing.assert_array_equal(other.labels, one.labels)
    np.testing.assert_allclose(other.history, one.history, rtol=1e-9)
    np.testing.assert_allclose(other.cluster_weights, one.cluster_weights, rtol=1e-9)
    assert (other.p, other.collapsed, other.circling) == (one.p, one.collapsed, one.circling)


@pytest.mark.parametrize("name", ["matrix", "float32", "indefinite"])
def test_global_search_takes_the_same_candidates(name, homes):
    X, _, weights = data(2)
    one, other = (global_kernel_kmeans(KERNELS[name](X, home), weights, n_clusters=K, how="fast") for home in homes())
    for here, there in zip(one.stages, other.stages, strict=True):
        np.testing.assert_array_equal(there.labels, here.labels)


def test_exact_global_search_without_compiled_runs_ends_as_with_them(homes):
    X, _, weights = data(3)
    weights[np.arange(N) % 3 > 0] = 0.0  # there is a run from every sample of positive weight
    one, other = (
        global_kernel_kmeans(KERNELS["matrix"](X, home), weights, n_clusters=2, how="exact") for home in homes()
    )
    np.testing.assert_array_equal(other.stages[-1].labels, one.stages[-1].labels)


VIEWS = {
    "kernels": lambda X, Y, home: composite(
        [DenseKernel(home(gaussian(X)), **home.options), ScaledKernel(FeatureKernel(home(Y), **home.options), 0.05)],
        [0.5, 0.5],
    ),
    "features": lambda X, Y, home: composite(
        [FeatureKernel(home(X), **home.options), ScaledKernel(FeatureKernel(home(Y), **home.options), 0.5)], [0.5, 0.5]
    ),
}
views = pytest.mark.parametrize("make", VIEWS.values(), ids=VIEWS.keys())


@views
@pytest.mark.parametrize("p", [1.0, 1.5, 3.0, np.inf])
@pytest.mark.parametrize("seed", SEEDS)
def test_multi_view_kernel_kmeans_ends_in_the_same_partition_and_weights(make, p, seed, homes):
    X, Y, weights = data(seed)
    labels = np.random.default_rng(seed).integers(K, size=N)
    options = {"n_clusters": K, "p": p, "view_weights": np.full(2, 0.5)}
    here, there = homes()
    one, other = (multi_view_kernel_kmeans(make(X, Y, home), labels, weights, **options) for home in (here, there))
    np.testing.assert_array_equal(other.labels, one.labels)
    np.testing.assert_allclose(other.view_weights, one.view_weights, rtol=1e-9)
    np.testing.assert_allclose(other.view_scatters, one.view_scatters, rtol=1e-9)
    np.testing.assert_allclose(other.history, one.history, rtol=1e-9)
    assert there.backend.hosted == [(N,)]


@views
@pytest.mark.parametrize("seed", SEEDS)
def test_multi_view_spectral_has_the_same_weights_eigenvalues_and_clusters(make, seed, homes):
    X, Y, weights = data(seed)
    weights = np.maximum(weights, 0.1)
    results = []
    for home in homes():
        op = make(X, Y, home)
        totals = op.view_traces(home(weights))
        relaxed = multi_view_spectral(
            spectrum(op, weights), totals, n_vectors=K, p=2.0, view_weights=np.full(2, 0.5), tol=1e-9
        )
        embedding = relaxed.embedding()
        rows = FeatureKernel(embedding, **home.options)
        start = start_labels(rows, "k-means++", weights, K, np.random.default_rng(0))
        results.append((relaxed, kernel_kmeans(rows, start, weights, n_clusters=K).labels))
        if not isinstance(embedding, np.ndarray):
            assert type(relaxed.sources()) is type(embedding)
            assert set(home.backend.hosted) == {(N,)}
    (one, labels), (other, again) = results
    np.testing.assert_allclose(other.view_weights, one.view_weights, atol=1e-5)
    np.testing.assert_allclose(other.eigenvalues, one.eigenvalues, rtol=1e-5)
    np.testing.assert_allclose(other.view_scatters, one.view_scatters, rtol=1e-4)
    assert adjusted_rand_score(labels, again) == 1.0


@pytest.mark.parametrize("name", ["matrix", "scaled"])
@pytest.mark.parametrize("seed", SEEDS)
def test_kernel_spectral_clustering_has_the_same_scores(name, seed, homes):
    X, _, _ = data(seed)
    here, there = homes()
    one, other = (kernel_spectral(KERNELS[name](X, home), K - 1) for home in (here, there))
    np.testing.assert_allclose(other.eigenvalues, one.eigenvalues, rtol=1e-7)
    assert there.backend.hosted == []
    scores = there.backend.host(other.scores)
    signs = np.sign((scores * one.scores).sum(axis=0))
    np.testing.assert_allclose(scores * signs, one.scores, atol=1e-5 * np.abs(one.scores).max())
