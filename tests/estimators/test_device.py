"""Fits on a torch device: labels, objective and models are those of the usual way. By torch on the processor."""

import pickle
import re
import subprocess
import warnings
from contextlib import suppress

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import kernelweave as kw
from kernelweave import config_context, get_config
from kernelweave.backends import get_backend, get_device_backend
from kernelweave.kernels.dense import DenseKernel
from kernelweave.kernels.device import DeviceKernel
from kernelweave.kernels.observed_views import ObservedViews
from kernelweave.kernels.weighted_sum import composite
from kernelweave.partitions.observed import ObservedPartition
from kernelweave.solvers.kmeans.masked_multi_view import masked_multi_view_kernel_kmeans
from kernelweave.solvers.kmeans.multi_view_kernel_kmeans import multi_view_kernel_kmeans
from kernelweave.solvers.spectral import kernel_spectral
from kernelweave.solvers.spectral import masked_multi_view as masked_spectral
from tests.command_server import programs
from tests.estimators.discovery import for_estimators
from tests.strategies import generators
from tests.torch_devices import needs_torch

torch = needs_torch()

from kernelweave.backends.torch import TorchBackend, sparse  # noqa: E402 - only where torch is
from tests.backends.watched_torch import WatchedTorch  # noqa: E402

N, K = 90, 3


def table(seed=0, width=4):
    rng = np.random.default_rng(seed)
    return 3.0 * rng.standard_normal((K, width))[np.arange(N) % K] + rng.standard_normal((N, width))


def views():
    return [table(0), table(1, 3)]


ONE_VIEW = {
    "stored": kw.KernelKMeans(K, n_init=2, random_state=0),
    "never stored": kw.KernelKMeans(K, n_init=2, storage="blockwise", random_state=0),
    "laplacian": kw.KernelKMeans(K, kernel="laplacian", storage="blockwise", n_init=2, random_state=0),
    "polynomial": kw.KernelKMeans(K, kernel="poly", storage="blockwise", n_init=2, random_state=0),
    "linear": kw.KernelKMeans(K, kernel="linear", n_init=2, random_state=0),
    "cosine": kw.KernelKMeans(K, kernel="cosine", n_init=2, random_state=0),
    "chi2, computed here and placed": kw.KernelKMeans(K, kernel="chi2", n_init=2, random_state=0),
    "graph": kw.KernelKMeans(K, kernel="nearest_neighbors", n_init=2, random_state=0),
    "features of an approximation": kw.KernelKMeans(K, approximation="nystroem", n_init=2, random_state=0),
    "a number of clusters to find": kw.KernelKMeans("auto", n_init=2, random_state=0),
    "minmax": kw.MinMaxKMeans(K, n_init=2, random_state=0),
    "minmax in a feature space": kw.MinMaxKernelKMeans(K, n_init=2, random_state=0),
    "minmax, never stored": kw.MinMaxKernelKMeans(K, n_init=2, storage="blockwise", refine=True, random_state=0),
    "global search": kw.GlobalKernelKMeans(K),
    "global search, never stored": kw.GlobalKernelKMeans(K, storage="blockwise"),
    "exact global search": kw.GlobalKernelKMeans(K, search="exact"),
    "search by exemplars": kw.GlobalKernelKMeans(K, search="exemplars"),
    "exemplars, never stored": kw.GlobalKernelKMeans(K, search="exemplars", storage="blockwise"),
    "mixture": kw.ConvexMixture(K),
    "mixture by EM": kw.ConvexMixture(K, solver="em", divergence="kernel"),
    "mixture, refined": kw.ConvexMixture(K, refine="kernel_kmeans"),
    "kernel spectral": kw.KernelSpectralClustering(K, random_state=0),
}
SEVERAL = {
    "kernels": kw.MultiViewKernelKMeans(K, random_state=0),
    "kernels never stored": kw.MultiViewKernelKMeans(K, storage="blockwise", random_state=0),
    "linear": kw.MultiViewKernelKMeans(K, kernel="linear", p=2.0, random_state=0),
    "mixture": kw.MultiViewConvexMixture(K),
    "kernel spectral": kw.MultiViewKernelSpectralClustering(K, random_state=0),
    "spectral": kw.MultiViewSpectralClustering(K, n_init=2, random_state=0),
    "spectral, graphs": kw.MultiViewSpectralClustering(
        K, kernel="nearest_neighbors", normalize="degrees", n_init=2, random_state=0
    ),
    "spectral, linear": kw.MultiViewSpectralClustering(K, kernel="linear", n_init=2, random_state=0),
    "spectral, degrees, exponent chosen": kw.MultiViewSpectralClustering(
        K, normalize="degrees", p="auto", n_init=2, random_state=0
    ),
}


@pytest.fixture
def rough(monkeypatch):
    """Have partitions use sums in single precision, however few samples there are."""
    monkeypatch.setattr(DeviceKernel, "rough_from", 0)


def both(estimator, X):
    """Return a fit in the usual way and one on the device."""
    here = clone(estimator).fit(X)
    with config_context(device="cpu"):
        there = clone(estimator).fit(X)
    return here, there


def assert_same(here, there, X, rtol=1e-9):
    np.testing.assert_array_equal(there.labels_, here.labels_)
    assert type(there.labels_) is np.ndarray
    np.testing.assert_allclose(there.objective_, here.objective_, rtol=rtol)
    for name, value in vars(there).items():
        assert "torch" not in type(value).__module__, f"{name} lies on the device"
    np.testing.assert_array_equal(there.predict(X), here.predict(X))
    assert b"torch" not in pickle.dumps(there)


@pytest.mark.filterwarnings("ignore::kernelweave.NotPSDWarning")  # of the graph
@pytest.mark.parametrize("name", ONE_VIEW)
def test_a_fit_on_a_device_ends_with_the_labels_of_the_usual_way(name, rough):
    X = np.abs(table()) if name.startswith("chi2") else table()
    assert_same(*both(ONE_VIEW[name], X), X)


@pytest.mark.parametrize("name", SEVERAL)
def test_so_does_one_of_several_views(name, rough):
    here, there = both(SEVERAL[name], views())
    # Eigenvectors, and weights learnt from them, are searched until they change by less than tol = 1e-5.
    searched = name.startswith("spectral")
    assert_same(here, there, views(), rtol=1e-5 if searched else 1e-9)
    np.testing.assert_allclose(there.view_weights_, here.view_weights_, atol=1e-5 if searched else 1e-6)


def test_coupled_problems_that_are_not_small_are_solved_by_products_on_the_device(monkeypatch):
    monkeypatch.setattr(kernel_spectral, "SMALL", 20)
    products = []
    usual = TorchBackend.product

    def counted(backend, K, H):
        products.append(H.shape)
        return usual(backend, K, H)

    monkeypatch.setattr(TorchBackend, "product", counted)
    here, there = both(kw.MultiViewKernelSpectralClustering(K, random_state=0), views())
    assert_same(here, there, views())
    assert len(products) > 4


def test_a_kernel_matrix_is_placed_in_its_precision():
    X = table()
    S = np.exp(-0.1 * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    for dtype in (np.float64, np.float32):
        given = S.astype(dtype)
        assert_same(*both(kw.KernelKMeans(K, kernel="precomputed", n_init=2, random_state=0), given), given)


@pytest.mark.parametrize("weights", [np.linspace(0.0, 2.0, N), np.arange(N) % 2 + 1.0])
def test_weights_count_on_a_device(weights, rough):
    model = kw.KernelKMeans(K, storage="blockwise", n_init=2, random_state=0)
    here = clone(model).fit(table(), sample_weight=weights)
    with config_context(device="cpu"):
        there = clone(model).fit(table(), sample_weight=weights)
    assert_same(here, there, table())


@pytest.mark.parametrize("name", ["never stored", "laplacian", "minmax, never stored", "linear"])
def test_new_samples_get_the_same_labels_on_a_device(name):
    model = clone(ONE_VIEW[name]).fit(table())
    new = table(5)
    wanted = model.predict(new)
    with config_context(device="cpu"):
        np.testing.assert_array_equal(model.predict(new), wanted)
        np.testing.assert_allclose(model.transform(new), clone(ONE_VIEW[name]).fit(table()).transform(new), atol=1e-9)
    np.testing.assert_array_equal(model.predict(torch.tensor(new)), wanted)


def test_the_kernel_between_new_and_training_samples_is_computed_on_the_device(monkeypatch):
    model = clone(ONE_VIEW["never stored"]).fit(table())
    asked = []
    usual = DeviceKernel.cluster_sums

    def counted(op, *args):
        asked.append(op.shape)
        return usual(op, *args)

    monkeypatch.setattr(DeviceKernel, "cluster_sums", counted)
    with config_context(device="cpu"):
        model.predict(table(5)[:7])
    assert asked == [(7, N)]


# Samples that are absent from views


def with_gaps(blocks, mask):
    """Return views in which samples without a mark are absent: rows of NaN, of a kernel matrix columns, too."""
    gaps = []
    for v, block in enumerate(blocks):
        gap = block.copy()
        gap[~mask[:, v]] = np.nan
        gaps.append(gap)
    return gaps


def drawn_mask(rng, n, n_views, rate):
    """Return who is in which view: every sample is in one, and every view has half of the samples or more."""
    mask = rng.random((n, n_views)) >= rate
    mask[np.arange(n), rng.integers(n_views, size=n)] = True
    mask[: n // 2] = True
    return mask


ABSENT = {
    "kernels": kw.MultiViewKernelKMeans(K, random_state=0),
    "kernels never stored": kw.MultiViewKernelKMeans(K, storage="blockwise", random_state=0),
    "kernels, drawn starts": kw.MultiViewKernelKMeans(K, init="k-means++", n_init=2, random_state=0),
    "linear, exponent chosen": kw.MultiViewKernelKMeans(K, kernel="linear", p="auto", random_state=0),
    "cosine, search of some samples": kw.MultiViewKernelKMeans(K, kernel="cosine", init_size=40, random_state=0),
    "mixture": kw.MultiViewConvexMixture(K),
    "spectral": kw.MultiViewSpectralClustering(K, n_init=2, random_state=0),
    "spectral, never stored, degrees": kw.MultiViewSpectralClustering(
        K, storage="blockwise", normalize="degrees", n_init=2, random_state=0
    ),
    "spectral, linear": kw.MultiViewSpectralClustering(K, kernel="linear", n_init=2, random_state=0),
    "spectral, graphs": kw.MultiViewSpectralClustering(
        K, kernel="nearest_neighbors", normalize="degrees", n_init=2, random_state=0
    ),
    "spectral, a kernel and a graph": kw.MultiViewSpectralClustering(
        K, kernel=["rbf", "nearest_neighbors"], normalize="degrees", n_init=2, random_state=0
    ),
}


# Of more samples than these, eigenvectors are found by products on the device.
SMALL = [(name, small) for name in ABSENT for small in ((1200, 20) if name.startswith("spectral") else (1200,))]


@pytest.mark.parametrize(("name", "small"), SMALL)
def test_absent_samples_are_clustered_on_the_device_as_on_the_processor(name, small, monkeypatch):
    monkeypatch.setattr(masked_spectral, "SMALL", small)
    blocks = [table(0), table(1, 3)] if name.endswith("a graph") else [table(0), table(1, 3), table(2, 3)]
    blocks = with_gaps(blocks, drawn_mask(np.random.default_rng(4), N, len(blocks), 0.5))
    here, there = both(ABSENT[name], blocks)
    assert_same(here, there, blocks)
    np.testing.assert_allclose(there.view_weights_, here.view_weights_, rtol=1e-7)
    np.testing.assert_array_equal(there.predict([block[:9] for block in blocks]), here.predict(blocks)[:9])


def test_no_array_of_all_samples_comes_back_while_samples_move(monkeypatch):
    """One of labels at the end of a run: the rest is a matter of clusters."""
    backend = WatchedTorch()
    rng = np.random.default_rng(0)
    mask = drawn_mask(rng, N, 2, 0.4)
    features = [table(0), table(1, 3)]
    samples = tuple(np.flatnonzero(mask[:, v]) for v in range(2))
    operators = tuple(
        DenseKernel(backend.array(X[known] @ X[known].T), backend=backend)
        for X, known in zip(features, samples, strict=True)
    )
    labels = rng.integers(K, size=N)
    options = {"n_clusters": K, "p": 2.0, "view_weights": np.full(2, 0.5)}
    run = masked_multi_view_kernel_kmeans
    found = run(ObservedViews(operators, samples, N), labels, np.ones(N), **options)
    here = tuple(DenseKernel(X[known] @ X[known].T) for X, known in zip(features, samples, strict=True))
    wanted = run(ObservedViews(here, samples, N), labels, np.ones(N), **options)
    np.testing.assert_array_equal(found.labels, wanted.labels)
    np.testing.assert_allclose(found.history, wanted.history, rtol=1e-12)
    assert found.n_steps > 2
    assert backend.hosted == [(N,)]
    assert backend.largest <= K * K


@settings(max_examples=10, deadline=None)
@given(generators(), st.integers(12, 30), st.integers(1, 3), st.sampled_from([1.0, 2.0, 5.0]), st.booleans())
def test_generated_views_with_gaps_have_the_labels_of_the_processor(rng, n, n_views, p, weighted):
    k = int(rng.integers(1, 4))
    blocks = [rng.standard_normal((n, 2)) + 2.0 * rng.standard_normal((k, 2))[np.arange(n) % k] for _ in range(n_views)]
    mask = drawn_mask(rng, n, n_views, 0.5)
    weights = rng.integers(0, 3, size=n) + np.where(np.arange(n) < k, 1.0, 0.0) if weighted else None
    kernel = ("rbf", "linear")[int(rng.integers(2))]
    model = kw.MultiViewKernelKMeans(k, p=p, kernel=kernel, init=np.arange(n) % k, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a view decides alone, or that clusters follow absence
        here = clone(model).fit(with_gaps(blocks, mask), sample_weight=weights)
        with config_context(device="cpu"):
            there = clone(model).fit(with_gaps(blocks, mask), sample_weight=weights)
    np.testing.assert_array_equal(there.labels_, here.labels_)
    np.testing.assert_allclose(there.objective_, here.objective_, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(there.view_weights_, here.view_weights_, rtol=1e-6, atol=1e-9)


def test_with_everybody_in_every_view_a_run_there_is_that_of_complete_views():
    backend = get_device_backend("cpu")
    rng = np.random.default_rng(0)
    kernels = [DenseKernel(backend.array(X @ X.T), psd=True, backend=backend) for X in views()]
    everyone = np.arange(N)
    labels = rng.integers(K, size=N)
    options = {"n_clusters": K, "p": 2.0, "view_weights": np.full(2, 0.5)}
    observed = ObservedViews(tuple(kernels), (everyone, everyone), N)
    found = masked_multi_view_kernel_kmeans(observed, labels, np.ones(N), **options)
    wanted = multi_view_kernel_kmeans(composite(kernels, np.full(2, 0.5)), labels, np.ones(N), **options)
    np.testing.assert_array_equal(found.labels, wanted.labels)
    np.testing.assert_allclose(np.array(found.history) * N, wanted.history, rtol=1e-9)


def test_a_cluster_that_a_view_knows_nobody_of_and_one_without_members_are_treated_there_as_here():
    features = views()
    samples = (np.arange(N), np.arange(N // 2))
    labels = np.where(np.arange(N) < N // 2, np.arange(N) % 2, 2)  # the second view has nobody of cluster 2
    labels[3] = 4  # and nobody is in cluster 3
    parts = []
    for backend in (get_backend(), get_device_backend("cpu")):
        pairs = zip(features, samples, strict=True)
        kernels = tuple(DenseKernel(backend.array(X[known] @ X[known].T), backend=backend) for X, known in pairs)
        parts.append(ObservedPartition(ObservedViews(kernels, samples, N), labels, np.ones(N), 5, np.full(2, 0.5)))
    here, there = parts
    np.testing.assert_allclose(there.backend.host(there.costs()), here.costs(), rtol=1e-11)
    np.testing.assert_allclose(there.view_norms(), here.view_norms(), rtol=1e-12)
    np.testing.assert_allclose(there.scatter(), here.scatter(), rtol=1e-11)
    assert there.norms[3] == np.inf
    for found, wanted in ((there.nearest().labels, here.nearest().labels), (there.merged(), here.merged())):
        np.testing.assert_array_equal(there.backend.host(found), wanted)
    reseeded = there.reseeded(there.nearest())
    np.testing.assert_array_equal(there.backend.host(reseeded), here.reseeded(here.nearest()))
    moves = [part.moves_to(part.reseeded(part.nearest())) for part in parts]
    for part, step in zip(parts, moves, strict=True):
        part.move(step)
        assert not part.certain(0.0)
        assert not part.cut_back(part.backend.labels(labels), step, 0.0 * part.weights, -1.0)  # nothing is that good
    np.testing.assert_array_equal(there.host_labels(), labels)
    np.testing.assert_allclose(there.objective, here.objective, rtol=1e-11)


def test_clusters_whose_centres_coincide_in_all_views_are_merged_there_as_here():
    X = np.repeat(np.array([[0.0, 1.0], [2.0, 0.0]]), 4, axis=0)
    samples = (np.arange(8), np.arange(6))
    labels = np.array([0, 2, 0, 2, 1, 1, 3, 3])  # the second view has nobody of cluster 3
    for backend in (get_backend(), get_device_backend("cpu")):
        kernels = tuple(DenseKernel(backend.array(X[known] @ X[known].T), backend=backend) for known in samples)
        partition = ObservedPartition(ObservedViews(kernels, samples, 8), labels, np.ones(8), 4, np.full(2, 0.5))
        # The mean of the second view is not where cluster 1 is, so that 1 and 3 stay apart.
        assert backend.host(partition.merged()).tolist() == [0, 0, 0, 0, 1, 1, 3, 3]


WRONG = {
    "absent from all": lambda blocks: [np.where(np.arange(N)[:, None] == 7, np.nan, block) for block in blocks],
    "missing cells": lambda blocks: [np.where(np.arange(block.shape[1]) == 1, np.nan, block) for block in blocks],
    "a view without samples": lambda blocks: [blocks[0], np.full_like(blocks[1], np.nan)],
    "a view of equal samples": lambda blocks: [with_gaps(blocks, np.arange(N)[:, None] > [3, 3])[0], 0 * blocks[1] + 1],
    "not of one length": lambda blocks: [with_gaps(blocks, np.arange(N)[:, None] > [3, 3])[0], blocks[1][1:]],
    "infinite": lambda blocks: [with_gaps(blocks, np.arange(N)[:, None] > [3, 3])[0], blocks[1] + np.inf],
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_views_are_refused_there_as_here(name):
    blocks = WRONG[name](views())
    for cls in (kw.MultiViewKernelKMeans, kw.MultiViewSpectralClustering):
        with pytest.raises(ValueError, match=r"\w") as here:
            cls(K, random_state=0).fit(blocks)
        with config_context(device="cpu"), pytest.raises(type(here.value)) as there:
            cls(K, random_state=0).fit(blocks)
        rounding = r"(-?\d\.?\d*e-\d\d|0)(?=\. It shows)"  # what is left of a spread of nothing
        assert re.sub(rounding, "", str(there.value)) == re.sub(rounding, "", str(here.value))


def test_a_sum_of_kernels_above_the_limit_is_refused_there_as_here():
    blocks = with_gaps(views(), drawn_mask(np.random.default_rng(0), N, 2, 0.3))
    model = kw.MultiViewSpectralClustering(K, memory_limit=0.05)
    with config_context(device="cpu"), pytest.raises(ValueError, match=r"memory_limit=0\.05 is too small"):
        model.fit(blocks)


def test_views_of_which_one_has_no_way_there_stay_on_the_processor_together():
    blocks = [np.abs(view) for view in views()]
    model = kw.MultiViewKernelKMeans(K, kernel=["rbf", "chi2"], storage="blockwise", random_state=0)
    for given_blocks in (blocks, with_gaps(blocks, drawn_mask(np.random.default_rng(1), N, 2, 0.4))):
        here = clone(model).fit(given_blocks)
        with config_context(device="cpu"), pytest.warns(UserWarning, match="stay on") as said:
            there = clone(model).fit(given_blocks)
        np.testing.assert_array_equal(there.labels_, here.labels_)
        texts = [str(warning.message) for warning in said]
        assert [text.split(" stay on")[0] for text in texts] == [
            "Kernels of ChiSquared that are not stored",
            "All views",
        ]


# Sparse features


def words(seed=0, width=60, n=N):
    """Return sparse counts of three topics with words of their own."""
    rng = np.random.default_rng(seed)
    rates = np.where(rng.random((K, width)) < 0.25, 1.5, 0.05)[np.arange(n) % K]
    return sp.csr_array(rng.poisson(rates).astype(np.float64))


SPARSE = {
    "linear": kw.KernelKMeans(K, kernel="linear", n_init=2, random_state=0),
    "cosine": kw.KernelKMeans(K, kernel="cosine", n_init=2, random_state=0),
    "rbf": kw.KernelKMeans(K, n_init=2, random_state=0),
    "rbf, never stored": kw.KernelKMeans(K, storage="blockwise", n_init=2, random_state=0),
    "polynomial, never stored": kw.KernelKMeans(K, kernel="poly", storage="blockwise", n_init=2, random_state=0),
    "minmax": kw.MinMaxKMeans(K, n_init=2, random_state=0),
    "minmax by sizes": kw.KernelKMeans(K, kernel="linear", init="minmax", n_init=2, random_state=0),
    "global search": kw.GlobalKernelKMeans(K, kernel="cosine"),
    "kernel spectral": kw.KernelSpectralClustering(K, kernel="cosine", random_state=0),
}
SPARSE_VIEWS = {
    "linear": kw.MultiViewKernelKMeans(K, kernel="linear", random_state=0),
    "linear, drawn starts": kw.MultiViewKernelKMeans(K, kernel="linear", init="k-means++", n_init=2, random_state=0),
    "cosine and a kernel": kw.MultiViewKernelKMeans(K, kernel=["cosine", "rbf"], p="auto", random_state=0),
    "spectral": kw.MultiViewSpectralClustering(K, kernel="cosine", n_init=2, random_state=0),
}


@pytest.mark.parametrize("name", SPARSE)
def test_sparse_features_are_clustered_on_the_device_as_on_the_processor(name, rough):
    X = words()
    here, there = both(SPARSE[name], X)
    assert_same(here, there, X)
    with config_context(device="cpu"):
        np.testing.assert_array_equal(there.predict(words(3)), here.predict(words(3)))


@pytest.mark.parametrize("name", SPARSE_VIEWS)
def test_so_are_sparse_views_alone_and_beside_dense_ones(name, rough):
    few_words = [words(0, 30), words(1, 20)]  # fewer than samples: of dense ones the Gram matrix would be taken
    for blocks in ([words(0), words(1, 40)] if name != "spectral" else few_words, [words(0), table(1, 6)]):
        here, there = both(SPARSE_VIEWS[name], blocks)
        searched = name == "spectral"
        assert_same(here, there, blocks, rtol=1e-5 if searched else 1e-9)
        np.testing.assert_allclose(there.view_weights_, here.view_weights_, atol=1e-5 if searched else 1e-6)


@settings(max_examples=8, deadline=None)
@given(generators(), st.integers(8, 30), st.integers(1, 12), st.sampled_from(["linear", "cosine", "rbf"]))
def test_generated_sparse_features_have_the_labels_of_the_processor(rng, n, width, kernel):
    X = sp.csr_array(np.where(rng.random((n, width)) < 0.4, rng.standard_normal((n, width)), 0.0))
    k = int(rng.integers(1, 4))
    params = {"gamma": 0.5} if kernel == "rbf" else None
    model = kw.KernelKMeans(
        k, kernel=kernel, kernel_params=params, storage="blockwise", init=np.arange(n) % k, random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that there are fewer distinct samples than clusters
        here, there = both(model, X)
    np.testing.assert_array_equal(there.labels_, here.labels_)
    np.testing.assert_allclose(there.objective_, here.objective_, rtol=1e-9, atol=1e-12)


def test_a_sparse_table_is_never_made_dense(monkeypatch):
    width = 500
    dense_rows = []
    usual = sparse.Rows._dense_columns

    def watched(rows):
        dense_rows.append(len(rows))
        return usual(rows)

    monkeypatch.setattr(sparse.Rows, "_dense_columns", watched)
    monkeypatch.setattr(sparse, "DENSE_AT_ONCE", 10 * width)
    drawn = []
    at = sparse.SparseTable.at
    monkeypatch.setattr(sparse.SparseTable, "at", lambda table, some: drawn.append(len(some)) or at(table, some))
    X = words(0, width)
    for name in ("linear", "cosine"):
        both(SPARSE[name], X)
    assert dense_rows == []
    assert max(drawn) <= 2 + int(np.log(K))  # what centres are drawn from
    both(SPARSE["rbf, never stored"], X)
    assert max(dense_rows) == 10


def test_sparse_features_without_room_stay_on_the_processor_and_say_so(monkeypatch):
    monkeypatch.setattr(TorchBackend, "_room", lambda self: 1000.0)
    X = words()
    for name in ("linear", "rbf, never stored"):
        here = clone(SPARSE[name]).fit(X)
        said = pytest.warns(UserWarning, match=f"of {X.nnz:,} entries stay on the processor.* has no room")
        with config_context(device="cpu"), said:
            there = clone(SPARSE[name]).fit(X)
        np.testing.assert_array_equal(there.labels_, here.labels_)


def test_sparse_input_that_is_wrong_is_refused_there_as_here():
    X = words()
    X.data[3] = np.inf
    for model, samples in ((SPARSE["linear"], X), (kw.KernelKMeans(K, kernel="chi2"), words()), (SPARSE["rbf"], X[:2])):
        with pytest.raises(ValueError, match=r"\w") as here:
            clone(model).fit(samples)
        with config_context(device="cpu"), pytest.raises(type(here.value)) as there:
            clone(model).fit(samples)
        assert str(there.value) == str(here.value)


def test_tensors_are_read_as_arrays():
    X = table()
    model = kw.KernelKMeans(K, n_init=2, random_state=0)
    wanted = clone(model).fit(X).labels_
    np.testing.assert_array_equal(clone(model).fit(torch.tensor(X)).labels_, wanted)
    np.testing.assert_array_equal(clone(model).fit(X=torch.tensor(X)).labels_, wanted)
    several = kw.MultiViewKernelKMeans(K, random_state=0)
    labels = clone(several).fit(views()).labels_
    tensors = [torch.tensor(view) for view in views()]
    np.testing.assert_array_equal(clone(several).fit(tensors).labels_, labels)
    named = dict(zip("ab", tensors, strict=True))
    np.testing.assert_array_equal(clone(several).fit(named).labels_, labels)


@for_estimators(lambda case: hasattr(case.cls, "_takes_device") and not case.cls._takes_device)
def test_estimators_without_a_way_there_say_so(case):
    said = pytest.warns(UserWarning, match=f"{case.cls.__name__} cannot run on")
    with config_context(device="cpu"), said, suppress(ValueError, TypeError):  # there is nothing to fit
        case.make().fit(None)


def test_kernels_without_a_way_there_stay_on_the_processor_and_say_so():
    X = np.abs(table())
    never_stored = {"storage": "blockwise", "n_init": 2, "random_state": 0}
    apart = kw.KernelKMeans(K, kernel="laplacian", **never_stored)
    wide = kw.KernelKMeans(K, kernel="chi2", **never_stored)
    for model, what, samples in ((apart, "Laplacian", sp.csr_array(X)), (wide, "ChiSquared", X)):
        here = clone(model).fit(samples)
        with config_context(device="cpu"), pytest.warns(UserWarning, match=f"{what}.* stay on the processor"):
            there = clone(model).fit(samples)
        np.testing.assert_array_equal(there.labels_, here.labels_)


def test_a_device_that_is_not_there_is_refused_with_a_remedy():
    for device, said in (("cuda", "sees no GPU"), ("cuda:7", "sees no GPU"), ("nowhere", "is not a torch device")):
        if said == "sees no GPU" and torch.cuda.is_available():
            continue
        with config_context(device=device), pytest.raises(ValueError, match=said):
            kw.KernelKMeans(2).fit(table())
    with pytest.raises(ValueError, match="precision='half' must be one of 'tf32x3'"), config_context(precision="half"):
        pass
    assert get_config().device is None


def test_a_device_without_memory_is_named(monkeypatch):
    def full(*args):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 8.00 GiB.")

    monkeypatch.setattr(DeviceKernel, "diag", full)
    model = kw.KernelKMeans(K, storage="blockwise")
    with (
        config_context(device="cpu"),
        pytest.raises(MemoryError, match=r"ran out of memory.*CUDA.*storage='blockwise'"),
    ):
        model.fit(table())


def test_models_fitted_on_a_device_are_saved_and_used_without_torch(tmp_path):
    fits = {
        "one table": (clone(ONE_VIEW["never stored"]), table()),
        "absent samples": (
            clone(ABSENT["kernels"]),
            with_gaps(views(), drawn_mask(np.random.default_rng(0), N, 2, 0.4)),
        ),
        "eigenvectors": (
            clone(ABSENT["spectral"]),
            with_gaps(views(), drawn_mask(np.random.default_rng(0), N, 2, 0.4)),
        ),
        "sparse": (clone(SPARSE["cosine"]), words()),
        "sparse, never stored": (clone(SPARSE["rbf, never stored"]), words()),
        "sparse views": (clone(SPARSE_VIEWS["linear"]), [words(0), words(1, 40)]),
    }
    with config_context(device="cpu"):
        for name, (model, X) in fits.items():
            kw.save_model(model.fit(X), tmp_path / f"{name}.npz")
    (tmp_path / "samples.pkl").write_bytes(pickle.dumps({name: X for name, (_, X) in fits.items()}))
    script = (
        "import pickle, pathlib, sys, kernelweave as kw\n"
        f"here = pathlib.Path(r'{tmp_path}')\n"
        "for name, X in pickle.loads((here / 'samples.pkl').read_bytes()).items():\n"
        "    print(*kw.load_model(here / f'{name}.npz').predict(X))\n"
        "assert 'torch' not in sys.modules"
    )
    said = subprocess.run([programs() / "python", "-c", script], capture_output=True, text=True, check=True).stdout
    for line, (model, X) in zip(said.splitlines(), fits.values(), strict=True):
        np.testing.assert_array_equal(np.array(line.split(), dtype=int), model.predict(X))
