"""Distances measured or checked some rows at a time are those of the whole matrix."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import pairwise_distances

from kernelweave import KernelError, ParameterError
from kernelweave.estimators.comparators.distances import ROWS, check_distance_matrix, given_distances, measured_among

X = np.random.default_rng(0).normal(size=(ROWS + 90, 3))


@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "cosine", "sqeuclidean", "chebyshev", "canberra"])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_distances_between_all_pairs_are_those_of_scikit_learn(metric, kind):
    if kind is sp.csr_array and metric in ("chebyshev", "canberra"):
        with pytest.raises((ParameterError, TypeError)):
            measured_among(kind(X[:9]), metric)
        return
    D = measured_among(kind(X), metric)
    np.testing.assert_allclose(D, pairwise_distances(X, metric=metric), rtol=1e-7, atol=1e-7)
    assert (np.diag(D) == 0).all()


def test_a_function_of_two_samples_is_called_once_for_each_pair():
    calls = []

    def gap(a, b):
        calls.append(1)
        return float(np.abs(a - b).max())

    D = measured_among(X[:20], gap)
    np.testing.assert_allclose(D, pairwise_distances(X[:20], metric="chebyshev"))
    assert len(calls) < 20 * 20


@pytest.mark.parametrize("at", [(2, 5), (ROWS + 3, 7), (7, ROWS + 3)])
def test_the_first_entry_without_a_mirror_image_is_named_wherever_it_stands(at):
    D = pairwise_distances(X)
    D[at] += 1.0
    i, j = min(at), max(at)
    with pytest.raises(KernelError, match=rf"X\[{i}, {j}\] = .* not symmetric"):
        check_distance_matrix(D, square=True)


def test_the_diagonal_and_negative_values_are_checked():
    D = pairwise_distances(X)
    D[ROWS + 1, ROWS + 1] = 0.5
    with pytest.raises(KernelError, match=rf"X\[{ROWS + 1}, {ROWS + 1}\] = 0\.5 on the diagonal"):
        check_distance_matrix(D, square=True)
    with pytest.raises(KernelError, match=r"X\[0, 1\] = -"):
        check_distance_matrix(-pairwise_distances(X[:3]), square=True)
    almost = np.array([[0.0, -1e-14], [-1e-14, 0.0]])
    almost = np.block([[almost, np.ones((2, 2))], [np.ones((2, 2)), almost]])
    check_distance_matrix(almost, square=True)
    assert given_distances(almost[:2]).min() == 0.0
    assert given_distances(almost[:2].astype(np.float32)).dtype == np.float64
