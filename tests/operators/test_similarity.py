import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis.strategies import floats, integers

from kernelweave.operators import DenseKernel, GraphKernel
from kernelweave.operators.similarity import EdgeSimilarities, StoredSimilarities, similarities
from tests.reference import graph_cuts as oracle

cases = settings(max_examples=40, deadline=None)
kernels = oracle.graphs(max_n=12)


def dense_similarities(K, beta, columns):
    """Return exp(-beta (K_ii + K_jj - 2 K_ij)) entry by entry; squares below zero count as zero."""
    square = [[max(0.0, K[i, i] + K[j, j] - 2.0 * K[i, j]) for j in columns] for i in range(len(K))]
    return np.exp(-beta * np.array(square))


def chosen_columns(rng, n):
    return np.sort(rng.choice(n, size=int(rng.integers(1, n + 1)), replace=False))


def agree(found, expected, rng):
    priors, ratios = rng.random(expected.shape[1]), rng.random(expected.shape[0])
    np.testing.assert_allclose(found.mix(priors), expected @ priors, rtol=1e-10)
    np.testing.assert_allclose(found.pull(ratios), expected.T @ ratios, rtol=1e-10)


@cases
@given(A=kernels, beta=floats(0.01, 2.0), seed=integers(0, 2**16))
def test_similarities_from_edges_equal_the_dense_ones(A, beta, seed):
    rng = np.random.default_rng(seed)
    columns = chosen_columns(rng, len(A))
    edges, stored = (
        similarities(GraphKernel(sp.csr_array(A)), beta, columns),
        similarities(DenseKernel(A), beta, columns),
    )
    assert isinstance(edges, EdgeSimilarities)
    assert isinstance(stored, StoredSimilarities)
    expected = dense_similarities(A, beta, columns)
    agree(edges, expected, rng)
    agree(stored, expected, rng)


@cases
@given(A=kernels, beta=floats(0.01, 2.0), seed=integers(0, 2**16))
def test_keeping_columns_equals_choosing_them_from_the_start(A, beta, seed):
    rng = np.random.default_rng(seed)
    columns = chosen_columns(rng, len(A))
    mask = rng.random(len(columns)) < 0.6
    mask[0] = True
    expected = dense_similarities(A, beta, columns[mask])
    for op in (GraphKernel(sp.csr_array(A)), DenseKernel(A)):
        agree(similarities(op, beta, columns).keep(mask), expected, rng)


def test_two_nodes_and_a_third_without_an_edge_have_the_similarities_worked_out_by_hand():
    A = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])  # squared distances 0 and 2
    S = similarities(GraphKernel(sp.csr_array(A)), 0.5, np.arange(3))
    e = np.exp(-1.0)
    np.testing.assert_allclose([S.mix(row) for row in np.eye(3)], [[1, 1, e], [1, 1, e], [e, e, 1]])


@pytest.mark.parametrize("form", [DenseKernel, lambda K: GraphKernel(sp.csr_array(K))])
def test_a_sample_far_from_all_others_keeps_a_similarity_of_one_to_itself(form):
    # exp(-beta K_ii) is 0 in floating point here and exp(2 beta K_ii) infinite; their product is 1.
    K = np.diag([1.0, 1.0, 1e4])
    K[0, 1] = K[1, 0] = 0.5
    S = similarities(form(K), 1.0, np.arange(3))
    near = np.exp(-1.0)
    np.testing.assert_allclose(
        [S.mix(row) for row in np.eye(3)], [[1.0, near, 0.0], [near, 1.0, 0.0], [0.0, 0.0, 1.0]], atol=1e-12
    )
    assert np.isfinite(S.pull(np.ones(3))).all()


def test_similarities_of_edges_store_no_pair_without_an_edge():
    n = 20_000
    ring = sp.dia_array((np.ones((3, n)), [-1, 0, 1]), shape=(n, n)).tocsr()
    S = similarities(GraphKernel(ring), 0.1, np.arange(n))
    assert S.C.nnz <= ring.nnz
    assert S.mix(np.full(n, 1.0 / n)).shape == (n,)
