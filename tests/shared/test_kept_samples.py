"""What fitted kernels keep of samples stays within ``memory_limit``, and is there once."""

import re

import numpy as np
import pytest

from kernelweave import KernelKMeans, MultiViewKernelKMeans, MultiViewSpectralClustering
from kernelweave.estimators.shared.single_kernel import fit_or_approximate
from kernelweave.foundation.errors import ParameterError
from kernelweave.kernels.spec import bandwidths
from tests.peak_memory import peak_of

MIB = 2**20


def table(n, d, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    X[np.arange(n), np.arange(n) % min(3, d)] += 6.0
    return X


def beside(inputs, limit):
    """Return the MiB that a fit may take beside its inputs."""
    return (inputs.nbytes / MIB + limit) * 1.15 - inputs.nbytes / MIB


@pytest.mark.parametrize("method", ["nystroem", "random_features"])
def test_features_of_an_approximation_are_there_once(method):
    X = table(4000, 5)
    options = {"approximation": method, "n_components": 200, "random_state": 0, "n_init": 1}
    KernelKMeans(3, **options).fit(X[:300])  # compiled before it is measured
    limit = 7.5  # features take 6.1, and a tenth is left for what they are computed from
    model, peak = peak_of(lambda: KernelKMeans(3, memory_limit=limit, **options).fit(X))
    assert peak <= beside(X, limit)
    assert np.array_equal(model.labels_, KernelKMeans(3, **options).fit(X).labels_)
    new = table(9000, 5, 1)
    labels, passing = peak_of(lambda: model.predict(new))
    assert passing <= 8.0  # features of the new samples would take 13.7
    assert np.array_equal(labels[:50], model.predict(new[:50]))
    distances = model.transform(new[:2000])
    assert np.array_equal(distances.argmin(axis=1), labels[:2000])


@pytest.mark.parametrize("estimator", [MultiViewKernelKMeans, MultiViewSpectralClustering])
def test_features_of_several_views_are_there_once(estimator):
    views = [table(4000, 5), table(4000, 4, 1)]
    options = {"approximation": "random_features", "n_components": 100, "random_state": 0}
    if estimator is MultiViewKernelKMeans:
        options |= {"init": "k-means++", "n_init": 1}
    estimator(3, **options).fit([block[:500] for block in views])
    limit = 8.5  # features take 6.1, and the spectral problem adds products of 200 with each other
    model, peak = peak_of(lambda: estimator(3, memory_limit=limit, **options).fit(views))
    assert peak <= beside(np.hstack(views), limit)
    labels, passing = peak_of(lambda: model.predict(views))
    assert passing <= 6.0
    assert np.mean(labels == model.labels_) > 0.99


@pytest.mark.parametrize("kernel", ["rbf", "cosine", "normalized_poly", "intensity_histogram", "linear"])
def test_one_copy_of_a_wide_table_is_prepared(kernel):
    X = np.abs(table(3000, 400)).astype(np.float32)
    one = 8 * X.size / MIB
    options = {"centre_features": True, "weights": np.ones(len(X))}
    small, peak = peak_of(lambda: fit_or_approximate(X, kernel, None, **options))
    assert peak <= one + 1.5
    exact = fit_or_approximate(X.astype(np.float64), kernel, None, **options)
    rows = slice(0, 40)
    K = small.operator("blockwise").block(rows, rows)
    assert np.allclose(K, exact.operator("blockwise").block(rows, rows), rtol=1e-12, atol=1e-12)
    new = small.cross(X[:10]).block(slice(None), rows)
    assert np.allclose(new, K[:10], rtol=1e-9, atol=1e-9)


def test_the_bandwidth_of_a_wide_table_takes_no_copy_of_it():
    X = table(4000, 300)
    weights = np.random.default_rng(0).uniform(0.0, 2.0, len(X))
    shares = weights / weights.sum()
    mean = (shares @ X).mean()
    expected = 1.0 / (300 * (shares @ (X - mean) ** 2).mean())
    found, peak = peak_of(lambda: bandwidths.gamma(X, "scale", weights))
    assert found == pytest.approx(expected, rel=1e-13)
    assert peak <= 4.5
    _, median_peak = peak_of(lambda: bandwidths.gamma(X, "median", weights))
    assert median_peak <= 11.0  # distances of a thousand samples, sorted; a copy of the table would add 9


@pytest.mark.parametrize(
    ("X", "options"),
    [
        (table(4000, 5), {"approximation": "random_features", "n_components": 500}),
        (table(4000, 5), {"approximation": "nystroem", "n_components": 250}),
        (table(1500, 500), {"kernel": "rbf"}),
        (table(1500, 500).astype(np.float32), {"kernel": "linear"}),
    ],
)
def test_samples_that_do_not_fit_are_refused_before_they_are_computed(X, options):
    model = KernelKMeans(3, memory_limit=4, random_state=0, n_init=1, **options)
    model.fit(X[:50])
    refusal, peak = peak_of(lambda: model.fit(X))
    assert isinstance(refusal, ParameterError)
    assert peak < 0.5
    found = re.search(
        r"more than memory_limit=4\. Raise it to ([\d.]+), or .*: ([\d,]+) samples would fit", str(refusal)
    )
    fitting = int(found.group(2).replace(",", ""))
    assert 50 < fitting < len(X)
    model.fit(X[:fitting])
    assert isinstance(peak_of(lambda: model.fit(X[: fitting + 2]))[0], ParameterError)
    assert len(model.set_params(memory_limit=float(found.group(1))).fit(X).labels_) == len(X)


def test_products_of_many_features_are_counted_beside_them():
    views = [table(900, 400), table(900, 400, 1)]
    with pytest.raises(ParameterError, match=r"products of features .* memory_limit=8\. Raise it to 21, or use fewer"):
        MultiViewSpectralClustering(3, kernel="linear", memory_limit=8).fit(views)


def test_matrices_of_many_components_are_refused():
    model = KernelKMeans(3, approximation="nystroem", n_components=600, memory_limit=8, random_state=0)
    with pytest.raises(ParameterError, match=r"lower n_components: 376 samples would fit"):
        model.fit(table(700, 3))
