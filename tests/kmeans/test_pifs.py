"""Pifs k-means: against the plain oracle, the sizes it leaves, and how a run ends."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelweave.backends import get_backend, host, numpy_loops
from kernelweave.kernels.features import FeatureKernel
from kernelweave.solvers.kmeans.kernel_kmeans import kernel_kmeans
from kernelweave.solvers.kmeans.pifs import pifs_kmeans
from tests.reference import minmax as oracle
from tests.strategies import generators, samples

cases = settings(max_examples=30, deadline=None)
FORMS = {
    "dense": FeatureKernel,
    "sparse": lambda X: FeatureKernel(sp.csr_array(X)),
    "plain loops": lambda X: FeatureKernel(X, backend=get_backend("numpy")),
}


@st.composite
def problems(draw, max_n=14):
    """Draw samples, weights, and labels in which every cluster has a sample of positive weight."""
    X, rng = draw(samples(max_n=max_n, n_features=2)), draw(generators())
    k = draw(st.integers(1, 4))
    weights = np.ones(len(X)) if draw(st.booleans()) else rng.choice([0.0, 0.3, 1.0, 2.5], size=len(X))
    weights[:k] = 1.0
    labels = np.concatenate([np.arange(k), rng.integers(k, size=len(X) - k)])
    order = rng.permutation(len(X))
    return X[order], labels[order], weights[order], k


def skewed(seed, n=200):
    """Return one large group and two small ones beside it, and the labels of a random start."""
    rng = np.random.default_rng(seed)
    centres = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 4.0]])
    X = centres[rng.choice(3, size=n, p=[0.8, 0.1, 0.1])] + rng.standard_normal((n, 2))
    first = X[rng.choice(n, 3, replace=False)]
    return X, ((X[:, None] - first[None]) ** 2).sum(axis=2).argmin(axis=1)


@settings(max_examples=45, deadline=None)
@given(problem=problems(), max_iter=st.sampled_from([1, 2, 5, 40]))
def test_labels_passes_and_end_are_those_of_the_plain_oracle(problem, max_iter):
    X, labels, weights, k = problem
    wanted, passes, converged = oracle.pifs(X, labels, weights, k=k, max_iter=max_iter)
    for make in FORMS.values():
        result = pifs_kmeans(make(X), labels, weights, n_clusters=k, max_iter=max_iter)
        np.testing.assert_array_equal(result.labels, wanted)
        assert result.converged == converged
        assert result.n_iter == passes - converged
        assert result.ended == result.converged
        assert not result.rose


@cases
@given(problem=problems(max_n=25), max_iter=st.sampled_from([1, 2, 3, 100]))
def test_no_cluster_loses_its_last_sample_and_the_result_describes_its_labels(problem, max_iter):
    X, labels, weights, k = problem
    result = pifs_kmeans(FeatureKernel(X), labels, weights, n_clusters=k, max_iter=max_iter)
    np.testing.assert_allclose(result.totals, np.bincount(result.labels, weights, k), rtol=1e-12)
    assert (result.totals > 0).all()
    variances = np.zeros(k)
    for c in range(k):
        inside, mass = X[result.labels == c], weights[result.labels == c]
        variances[c] = mass @ ((inside - mass @ inside / mass.sum()) ** 2).sum(axis=1)
    noise = 1e-11 * (X**2).sum(axis=1).max() * weights.sum()
    np.testing.assert_allclose(result.scatter, variances, rtol=0, atol=noise)
    assert result.objective == result.inertia == pytest.approx(variances.sum(), abs=noise)
    assert len(result.history) == result.n_iter + 1 <= max_iter + 1


@pytest.mark.parametrize("make", FORMS.values(), ids=FORMS.keys())
def test_as_many_clusters_as_samples_leave_every_sample_alone(make):
    X = np.random.default_rng(0).standard_normal((7, 2))
    result = pifs_kmeans(make(X), np.arange(7), np.ones(7), n_clusters=7)
    assert sorted(result.labels.tolist()) == list(range(7))
    assert result.converged
    assert result.objective == pytest.approx(0.0, abs=1e-12)


def test_one_cluster_takes_everything():
    X = np.random.default_rng(0).standard_normal((9, 2))
    result = pifs_kmeans(FeatureKernel(X), np.zeros(9, dtype=int), np.ones(9), n_clusters=1)
    assert (result.labels == 0).all()
    assert (result.converged, result.n_iter) == (True, 0)


@pytest.mark.parametrize("make", FORMS.values(), ids=FORMS.keys())
def test_equal_samples_keep_every_cluster_they_start_in(make):
    labels = np.array([0, 0, 0, 1, 2, 2])
    result = pifs_kmeans(make(np.full((6, 2), 3.0)), labels, np.ones(6), n_clusters=3)
    np.testing.assert_array_equal(result.labels, labels)  # every distance is zero: nobody has a reason to go
    assert result.converged


def test_a_cluster_without_a_sample_at_the_start_takes_the_farthest_one():
    x = np.array([[0.0], [0.1], [0.2], [9.0]])
    result = pifs_kmeans(FeatureKernel(x), np.zeros(4, dtype=int), np.ones(4), n_clusters=2)
    assert result.labels.tolist() == [0, 0, 0, 1]
    assert (result.totals > 0).all()


def test_a_cluster_that_cannot_be_filled_stays_empty_and_is_never_chosen():
    x = np.full((5, 1), 2.0)
    result = pifs_kmeans(FeatureKernel(x), np.zeros(5, dtype=int), np.ones(5), n_clusters=3)
    assert result.labels.tolist() == [0] * 5
    assert result.totals.tolist() == [5.0, 0.0, 0.0]
    assert np.isinf(result.norms[1:]).all()


def test_on_skewed_groups_the_sizes_are_more_equal_than_those_of_k_means():
    for seed in range(10):
        X, labels = skewed(seed)
        result = pifs_kmeans(FeatureKernel(X), labels, np.ones(200), n_clusters=3)
        plain = kernel_kmeans(FeatureKernel(X), labels, np.ones(200), n_clusters=3)
        assert result.totals.std() < plain.totals.std()
        assert result.totals.min() > 40


def test_a_heavy_sample_counts_in_the_size_of_its_cluster():
    # The sample at 3 is nearer to the left mean, but that cluster weighs 22 where the right one weighs 3.
    x = np.array([[0.0], [1.0], [3.0], [6.0], [7.0]])
    labels, heavy = np.array([0, 0, 0, 1, 1]), np.array([20.0, 2.0, 1.0, 1.0, 2.0])
    for weights, wanted in ((heavy, [0, 0, 1, 1, 1]), (np.ones(5), [0, 0, 0, 1, 1])):
        result = pifs_kmeans(FeatureKernel(x), labels, weights, n_clusters=2, max_iter=1)
        assert result.labels.tolist() == wanted


@pytest.mark.parametrize("make", FORMS.values(), ids=FORMS.keys())
def test_size_and_place_of_the_data_and_the_unit_of_the_weights_do_not_matter(make):
    for seed in range(5):
        X, labels = skewed(seed)
        weights = np.random.default_rng(seed).uniform(0.5, 2.0, 200)
        plain = pifs_kmeans(make(X), labels, weights, n_clusters=3)
        for other, mass in ((1e-4 * X, weights), (1e4 * X, weights), (X + 9.0, weights), (X, 1e-6 * weights)):
            result = pifs_kmeans(make(other), labels, mass, n_clusters=3)
            np.testing.assert_array_equal(plain.labels, result.labels)


def test_max_iter_ends_a_run_and_says_so():
    X, labels = skewed(1)
    whole = pifs_kmeans(FeatureKernel(X), labels, np.ones(200), n_clusters=3)
    assert whole.converged
    assert whole.n_iter > 2
    cut = pifs_kmeans(FeatureKernel(X), labels, np.ones(200), n_clusters=3, max_iter=2)
    assert not cut.converged
    assert cut.history == whole.history[:3]


def test_the_labels_found_are_a_fixed_point():
    X, labels = skewed(2)
    first = pifs_kmeans(FeatureKernel(X), labels, np.ones(200), n_clusters=3)
    again = pifs_kmeans(FeatureKernel(X), first.labels, np.ones(200), n_clusters=3)
    assert first.converged
    assert again.n_iter == 0
    np.testing.assert_array_equal(first.labels, again.labels)


def test_labels_of_the_caller_are_left_as_they_were():
    X, labels = skewed(3)
    before = labels.copy()
    pifs_kmeans(FeatureKernel(X), labels, np.ones(200), n_clusters=3)
    np.testing.assert_array_equal(labels, before)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_sizes_carry_over_from_one_chunk_of_samples_to_the_next(form):
    rng = np.random.default_rng(0)
    n, k = host.SEQUENTIAL_ROWS + 700, 4
    X, labels, weights = rng.standard_normal((n, 3)), rng.integers(k, size=n), rng.uniform(0.2, 2.0, n)
    totals = np.bincount(labels, weights, k)
    means = np.stack([weights[labels == c] @ X[labels == c] / totals[c] for c in range(k)])
    norms, diag = (means**2).sum(axis=1), (X**2).sum(axis=1)
    before = totals.copy()
    result = FeatureKernel(form(X)).assign_by_size(means, norms, diag, labels, weights, totals, 1e-9)
    values, sizes, wanted = ((X[:, None] - means[None]) ** 2).sum(axis=2), totals.copy(), np.empty_like(labels)
    numpy_loops.assign_by_size(values, weights, sizes, labels, 1e-9, wanted)
    np.testing.assert_array_equal(result, wanted)
    np.testing.assert_array_equal(totals, before)  # the sizes given are not worn out


@pytest.mark.parametrize("chunk", [1, 7, 64])
def test_the_length_of_a_chunk_makes_no_difference(chunk, monkeypatch):
    X, labels = skewed(4)
    weights = np.random.default_rng(4).uniform(0.5, 2.0, 200)
    whole = pifs_kmeans(FeatureKernel(X), labels, weights, n_clusters=3)
    monkeypatch.setattr(host, "SEQUENTIAL_ROWS", chunk)
    chunks = pifs_kmeans(FeatureKernel(X), labels, weights, n_clusters=3)
    np.testing.assert_array_equal(whole.labels, chunks.labels)
    np.testing.assert_allclose(whole.history, chunks.history, rtol=1e-12)
