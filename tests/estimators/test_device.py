"""Fits on a torch device: labels, objective and models are those of the usual way. By torch on the processor."""

import pickle
import subprocess
import sys
from contextlib import suppress

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import kernelweave as kw
from kernelweave import config_context, get_config
from kernelweave.kernels.device import DeviceKernel
from kernelweave.solvers.spectral import kernel_spectral
from tests.estimators.discovery import for_estimators
from tests.torch_devices import needs_torch

torch = needs_torch()

from kernelweave.backends.torch import TorchBackend  # noqa: E402 - only where torch is

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


def test_absent_samples_stay_on_the_processor_and_end_the_same():
    blocks = views()
    blocks[0][:5] = np.nan
    for model in (kw.MultiViewKernelKMeans(K, random_state=0), kw.MultiViewSpectralClustering(K, random_state=0)):
        here = clone(model).fit(blocks)
        with config_context(device="cpu"), pytest.warns(UserWarning, match="Views that lack samples stay"):
            there = clone(model).fit(blocks)
        np.testing.assert_array_equal(there.labels_, here.labels_)


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
    sparse = kw.KernelKMeans(K, kernel="linear", n_init=2, random_state=0)
    wide = kw.KernelKMeans(K, kernel="chi2", storage="blockwise", n_init=2, random_state=0)
    for model, what, samples in ((sparse, "Sparse features", sp.csr_array(X)), (wide, "ChiSquared", X)):
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


def test_a_model_fitted_on_a_device_is_saved_and_used_without_torch(tmp_path):
    X = table()
    with config_context(device="cpu"):
        model = kw.KernelKMeans(K, storage="blockwise", n_init=2, random_state=0).fit(X)
    kw.save_model(model, tmp_path / "model.npz")
    np.save(tmp_path / "X.npy", X)
    script = (
        "import sys, numpy as np, kernelweave as kw\n"
        f"model = kw.load_model(r'{tmp_path / 'model.npz'}')\n"
        f"print(*model.predict(np.load(r'{tmp_path / 'X.npy'}')))\n"
        "assert 'torch' not in sys.modules"
    )
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    np.testing.assert_array_equal(np.array(said.split(), dtype=int), model.labels_)
