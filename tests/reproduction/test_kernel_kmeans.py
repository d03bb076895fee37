import numpy as np
import pytest
from sklearn.cluster import KMeans

from kernelweave.datasets import standardize
from reproduction import catalogue
from reproduction.experiments.kernel_kmeans import random_starts

DIGITS = [catalogue()[f"msc-5.3-kernel-kmeans-{subset}-digits"] for subset in ("test", "all")]


@pytest.fixture(scope="module")
def groups():
    target = np.repeat(np.arange(3), 30)
    return np.random.default_rng(0).normal(size=(90, 2)) + [1.0, 50.0] * np.eye(3, 2)[target], target


def test_without_a_kernel_the_errors_are_those_of_k_means_on_z_scores(groups):
    X, target = groups
    starts = random_starts(X, target, sigma=None, restarts=20, seed=0)
    model = KMeans(3, init="random", n_init=20, random_state=0).fit(standardize(X))
    assert starts.e_sum.min() == pytest.approx(model.inertia_)
    assert len(starts.e_sum) == len(starts.nmi) == 20


def test_a_kernel_changes_the_errors(groups):
    X, target = groups
    narrow, plain = (random_starts(X, target, sigma=sigma, restarts=2, seed=0) for sigma in (0.5, None))
    assert narrow.e_sum.max() < 90.0  # no sample is farther than 1 from its centre
    assert not np.isclose(narrow.e_sum, plain.e_sum).any()


@pytest.mark.parametrize("experiment", DIGITS, ids=lambda each: each.id)
def test_k_means_on_digits_is_held_against_nmi_alone_and_has_no_kernel(experiment):
    cell = experiment.cells["kmeans"]
    assert set(cell.printed) == {"nmi_mean", "nmi_at_ce_min"}
    assert cell.run.keywords["sigma"] is None
    assert cell.run.keywords["test_only"] == experiment.cells["random-starts"].run.keywords["test_only"]
