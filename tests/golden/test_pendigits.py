"""MSc table 5.3, column Pendigits.tes: 3,498 test digits, z-scored with n - 1, Gaussian kernel, sigma = 2.8, k = 10."""

import os

import numpy as np
import pytest

from kernelweave import KernelKMeans
from kernelweave.datasets import load_benchmark, standardize
from kernelweave.kernels.spec.fitting import fit_kernel
from kernelweave.metrics import normalized_mutual_info
from tests.reference.fast_global import fast_global_kernel_kmeans

pytestmark = [
    pytest.mark.golden,
    pytest.mark.usefixtures("one_thread"),
    pytest.mark.skipif(
        not os.environ.get("KERNELWEAVE_DATA"), reason="KERNELWEAVE_DATA does not name the benchmark data"
    ),
]


@pytest.fixture(scope="module")
def digits():
    result = load_benchmark("pendigits")
    X, y = standardize(result.data[result.is_test]), result.target[result.is_test]
    return fit_kernel(X, "rbf", {"sigma": 2.8}).operator("dense").K, X, y


@pytest.fixture(scope="module")
def fast_global(digits):
    return fast_global_kernel_kmeans(digits[0], 10)


def test_the_plain_fast_global_search_reaches_the_printed_figures(digits, fast_global):
    labels, error = fast_global
    assert error == pytest.approx(1504.81, abs=0.005)
    assert normalized_mutual_info(digits[2], labels) == pytest.approx(0.750, abs=0.0005)


@pytest.mark.parametrize("kernel", ["precomputed", "rbf"])
def test_kernel_k_means_started_from_the_fast_global_labels_stays_there(digits, fast_global, kernel):
    K, X, _ = digits
    labels, error = fast_global
    params = {"sigma": 2.8} if kernel == "rbf" else None
    model = KernelKMeans(10, kernel=kernel, kernel_params=params, init=labels).fit(K if kernel == "precomputed" else X)
    assert model.n_iter_ == 0
    assert model.inertia_ == pytest.approx(error, rel=1e-10)
    np.testing.assert_array_equal(model.labels_, labels)


# Several partitions lie within 0.06 of the least error: the best of a hundred starts is 1485.2065 to 1485.2577 over
# seeds 0 to 4, with NMI 0.752 to 0.754. Seed 1 finds the partition the exact search finds (1485.207, NMI 0.754).
@pytest.mark.parametrize(("seed", "nmi_tolerance"), [(0, 0.002), (1, 0.0005)])
def test_the_best_of_a_hundred_random_starts_is_the_printed_minimum(digits, seed, nmi_tolerance):
    K, _, y = digits
    model = KernelKMeans(10, kernel="precomputed", init="random", n_init=100, random_state=seed).fit(K)
    assert model.inertia_ == pytest.approx(1485.2, abs=0.05)  # the printed digit
    assert normalized_mutual_info(y, model.labels_) == pytest.approx(0.754, abs=nmi_tolerance)
