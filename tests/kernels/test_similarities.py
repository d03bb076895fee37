import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis.strategies import floats, integers

from kernelweave.kernels.dense import DenseKernel
from kernelweave.kernels.divergences import DivergenceMatrix, KernelDivergence
from kernelweave.kernels.graph import GraphKernel
from kernelweave.kernels.similarities import (
    BlockwiseSimilarities,
    EdgeSimilarities,
    StackedSimilarities,
    StoredSimilarities,
    feature_space_similarities,
    graph_similarities,
    similarities,
)
from tests.reference import graph_cuts as oracle

cases = settings(max_examples=30, deadline=None)
kernels = oracle.graphs(max_n=12)


def dense_similarities(K, beta, samples):
    """Return exp(-beta (K_ii + K_jj - 2 K_ij)) entry by entry; squares below zero count as zero."""
    square = [[max(0.0, K[i, i] + K[j, j] - 2.0 * K[i, j]) for j in samples] for i in samples]
    return np.exp(-beta * np.array(square))


def chosen_samples(rng, n):
    return np.sort(rng.choice(n, size=int(rng.integers(1, n + 1)), replace=False))


def agree(result, expected, rng):
    """Assert that all a solver may ask for belongs to the matrix, rows taken back to their size."""
    rows, columns = expected.shape
    scaled = expected * np.exp(-result.offsets)[:, None]
    priors, ratios, scale = rng.random(columns), rng.random(rows), rng.random(rows)
    chosen = chosen_samples(rng, columns)
    np.testing.assert_allclose(result.product(priors), scaled @ priors, rtol=1e-10)
    np.testing.assert_allclose(result.transposed_product(ratios), scaled.T @ ratios, rtol=1e-10)
    R = scaled[:, chosen] * scale[:, None]
    np.testing.assert_allclose(result.gram(chosen, scale), R.T @ R, rtol=1e-10, atol=1e-300)
    total = sum(np.split(scaled, result.n_views))[:, chosen]
    strongest = result.most_similar(chosen)
    np.testing.assert_allclose(total[np.arange(columns), strongest], total.max(axis=1), rtol=1e-12)


@cases
@given(A=kernels, beta=floats(0.01, 2.0), seed=integers(0, 2**16))
def test_similarities_from_edges_stored_and_computed_again_equal_the_plain_ones(A, beta, seed):
    rng = np.random.default_rng(seed)
    samples = chosen_samples(rng, len(A))
    divergence = KernelDivergence(DenseKernel(A))
    edges = graph_similarities(GraphKernel(sp.csr_array(A)), beta, samples)
    stored = similarities(divergence, beta, samples)
    again = similarities(divergence, beta, samples, memory_limit=1e-9)
    assert [type(each) for each in (edges, stored, again)] == [
        EdgeSimilarities,
        StoredSimilarities,
        BlockwiseSimilarities,
    ]
    for result in (edges, stored, again):
        agree(result, dense_similarities(A, beta, samples), rng)
    twice = dense_similarities(A, 2 * beta, samples)
    both = StackedSimilarities([stored, similarities(divergence, 2 * beta, samples)])
    assert both.n_views == 2
    agree(both, np.concatenate([dense_similarities(A, beta, samples), twice]), rng)


def test_two_nodes_and_a_third_without_an_edge_have_the_similarities_worked_out_by_hand():
    A = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])  # squared distances 0 and 2
    S = graph_similarities(GraphKernel(sp.csr_array(A)), 0.5, np.arange(3))
    e = np.exp(-1.0)
    np.testing.assert_allclose([S.product(row) for row in np.eye(3)], [[1, 1, e], [1, 1, e], [e, e, 1]])


def test_a_sample_far_from_all_others_keeps_a_similarity_of_one_to_itself():
    # exp(-beta K_ii) is 0 in floating point here and exp(2 beta K_ii) infinite; their product is 1.
    K = np.diag([1.0, 1.0, 1e4])
    K[0, 1] = K[1, 0] = 0.5
    near = np.exp(-1.0)
    for S in (
        similarities(KernelDivergence(DenseKernel(K)), 1.0, np.arange(3)),
        graph_similarities(GraphKernel(sp.csr_array(K)), 1.0, np.arange(3)),
    ):
        np.testing.assert_allclose(
            [S.product(row) for row in np.eye(3)], [[1.0, near, 0.0], [near, 1.0, 0.0], [0.0, 0.0, 1.0]], atol=1e-12
        )
        assert np.isfinite(S.transposed_product(np.ones(3))).all()


@pytest.mark.parametrize("limit", [2048, 1e-9])
def test_rows_far_from_every_component_do_not_vanish_and_infinite_divergences_are_zeros(limit):
    D = np.array([[1e5, 1e5 + 1.0, np.inf], [np.inf, 0.0, 2.0], [3.0, np.inf, 0.0]])
    S = similarities(DivergenceMatrix(D), 1.0, np.arange(3), limit)
    np.testing.assert_allclose(S.offsets, [-1e5, 0.0, 0.0])
    columns = np.array([S.product(row) for row in np.eye(3)])
    np.testing.assert_allclose(columns.T, [[1, np.exp(-1), 0], [0, 1, np.exp(-2)], [np.exp(-3), 0, 1]])


def test_similarities_of_edges_store_no_pair_without_an_edge():
    n = 20_000
    ring = sp.dia_array((np.ones((3, n)), [-1, 0, 1]), shape=(n, n)).tocsr()
    S = graph_similarities(GraphKernel(ring), 0.1, np.arange(n))
    assert S.C.nnz <= ring.nnz
    assert S.product(np.full(n, 1.0 / n)).shape == (n,)


def test_a_kind_of_kernel_registers_its_way_to_similarities():
    A = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    everyone = np.arange(3)
    ways = {
        EdgeSimilarities: feature_space_similarities(GraphKernel(sp.csr_array(A)), 0.5, everyone),
        StoredSimilarities: feature_space_similarities(DenseKernel(A), 0.5, everyone),
        BlockwiseSimilarities: feature_space_similarities(DenseKernel(A), 0.5, everyone, 1e-9),
    }
    for kind, S in ways.items():
        assert type(S) is kind
        np.testing.assert_allclose(S.product(np.ones(3)), [2 + np.exp(-1)] * 2 + [1 + 2 * np.exp(-1)])
