"""MSc table 5.3, column Pendigits.tes, and the rings of MSc 5.1.

Digits: the 3,498 test digits, z-scored with n - 1, Gaussian kernel, sigma = 2.8, k = 10; error and NMI are printed.
Rings: the geometry is the library's (the sources print none); sigma = 1 for two rings, 1.8 for ten.
"""

import os

import numpy as np
import pytest

from kernelweave import GlobalKernelKMeans, KernelKMeans
from kernelweave.datasets import load_benchmark, make_ten_rings, make_two_rings, standardize
from kernelweave.kernels.spec.fitting import fit_kernel
from kernelweave.metrics import normalized_mutual_info

pytestmark = [pytest.mark.golden, pytest.mark.usefixtures("one_thread")]
SEARCHES = ("exact", "fast", "exemplars")
with_data = pytest.mark.skipif(
    not os.environ.get("KERNELWEAVE_DATA"), reason="KERNELWEAVE_DATA does not name the benchmark data"
)


@pytest.fixture(scope="module")
def digits():
    result = load_benchmark("pendigits")
    X, y = standardize(result.data[result.is_test]), result.target[result.is_test]
    return fit_kernel(X, "rbf", {"sigma": 2.8}).operator("dense").K, y


def clustered(digits, search, **options):
    K, y = digits
    model = GlobalKernelKMeans(10, kernel="precomputed", search=search, **options).fit(K)
    assert model.converged_
    return model.inertia_, normalized_mutual_info(y, model.labels_)


@with_data
def test_fast_search_reaches_the_figures_printed_for_the_test_digits(digits):
    error, nmi = clustered(digits, "fast")
    assert error == pytest.approx(1504.81, abs=0.005)
    assert nmi == pytest.approx(0.750, abs=0.0005)


@with_data
def test_exemplar_search_ends_at_or_below_the_error_printed_for_the_test_digits(digits):
    error, nmi = clustered(digits, "exemplars", n_exemplars=20)
    assert error <= 1490.44 + 0.005
    assert error > 1485.20  # no search goes below the exact one's printed figure
    if error == pytest.approx(1490.44, abs=0.005):
        assert nmi == pytest.approx(0.749, abs=0.0005)


# The exact search of the digits takes a minute: its figures are stored with the other published ones.


def rings_found(y, labels):
    return normalized_mutual_info(y, labels) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("search", SEARCHES)
def test_every_search_parts_the_two_rings(search, seed):
    X, y = make_two_rings(random_state=seed)
    model = GlobalKernelKMeans(2, search=search, kernel_params={"sigma": 1.0}).fit(X)
    assert rings_found(y, model.labels_)
    assert model.inertia_ == pytest.approx(320.17, abs=2.0)  # MSc table 5.1, within the spread over seeds


# A fifth of the printed size: 5 copies of 140 samples inside and 60 outside. Spacing, radii and sigma are those of the
# full size, so that the error is a fifth of the printed 966.87 too. The full size is a reproduce experiment.
@pytest.mark.parametrize("seed", range(3))
def test_exact_and_exemplar_search_part_the_ten_rings_where_fast_search_and_a_hundred_starts_do_not(seed):
    X, y = make_ten_rings(n_inner=140, n_outer=60, random_state=seed)
    kernel = {"kernel_params": {"sigma": 1.8}}
    for search in ("exact", "exemplars"):
        model = GlobalKernelKMeans(10, search=search, **kernel).fit(X)
        assert rings_found(y, model.labels_)
        assert model.inertia_ == pytest.approx(966.87 / 5, abs=2.0)
    fast = GlobalKernelKMeans(10, search="fast", **kernel).fit(X)
    starts = KernelKMeans(10, init="random", n_init=100, random_state=seed, **kernel).fit(X)
    for other in (fast, starts):
        assert not rings_found(y, other.labels_)
        assert other.inertia_ > model.inertia_


def test_the_path_to_ten_rings_holds_the_copies_as_five_clusters():
    X, y = make_ten_rings(n_inner=140, n_outer=60, random_state=0)
    model = GlobalKernelKMeans(10, search="exact", kernel_params={"sigma": 1.8}).fit(X)
    assert rings_found(y // 2, model.labels_path_[4])
    assert np.all(np.diff(model.inertia_path_) < 0)
