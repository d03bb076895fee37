"""Data without clusters: what they keep of the data they are made from, and what not."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import kurtosis, skew
from sklearn.covariance import ledoit_wolf, ledoit_wolf_shrinkage

from kernelweave.kernels.structureless import (
    ColumnShapes,
    StructurelessCounts,
    StructurelessGraph,
    StructurelessKernel,
    StructurelessTable,
    shrunk,
)

N = 600


def drawn(table, seed=0):
    """Return one null table; numbers of the table itself must not come again."""
    rng = np.random.default_rng([seed, 1])
    return StructurelessTable(table).draw(rng.standard_normal((len(table),) * 2), rng)


def correlated(seed=0, n=N, d=4):
    """Return Gaussian columns of various means, spreads and correlations."""
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d)) @ rng.standard_normal((d, d)) * np.arange(1.0, d + 1) + 10.0


def two_heaps(values):
    """Return whether a column has a gap in its middle: hardly a value where two heaps would leave none."""
    spread = values.std()
    middle = np.abs(values - values.mean()) < 0.35 * spread
    return middle.mean() < 0.1  # a Gaussian has 27 % there, a uniform 20 %


# --- tables ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, 1])
def test_means_and_spreads_are_kept(seed):
    X = correlated(seed)
    null = drawn(X, seed)
    assert null.shape == X.shape
    error = X.std(axis=0) / np.sqrt(N)
    assert (np.abs(null.mean(axis=0) - X.mean(axis=0)) < 5 * error).all()
    np.testing.assert_allclose(null.std(axis=0), X.std(axis=0), rtol=0.05)


@pytest.mark.parametrize("seed", [0, 1])
def test_correlations_are_kept(seed):
    X = correlated(seed)
    error = 5 / np.sqrt(N)
    np.testing.assert_allclose(np.corrcoef(drawn(X, seed).T), np.corrcoef(X.T), atol=error)


def test_columns_of_two_views_stay_correlated():
    X = correlated()
    rng = np.random.default_rng(5)
    mixing = rng.standard_normal((N, N))
    nulls = [StructurelessTable(view).draw(mixing, rng) for view in (X[:, :2], X[:, 2:])]
    wanted = np.corrcoef(X.T)[:2, 2:]
    assert np.abs(wanted).max() > 0.3
    np.testing.assert_allclose(np.corrcoef(np.hstack(nulls).T)[:2, 2:], wanted, atol=5 / np.sqrt(N))


def test_another_draw_is_another_table():
    X = correlated(n=50)
    assert not np.allclose(drawn(X, 0), drawn(X, 1))
    np.testing.assert_array_equal(drawn(X, 0), drawn(X, 0))


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_column_of_two_heaps_becomes_one_heap(seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, N)
    X = rng.standard_normal((N, 3)) + 8.0 * y[:, None]
    assert all(two_heaps(column) for column in X.T)
    assert not any(two_heaps(column) for column in drawn(X, seed).T)


def test_a_skewed_column_stays_skewed_and_a_symmetric_one_symmetric():
    rng = np.random.default_rng(0)
    X = np.stack([rng.lognormal(size=N), -rng.lognormal(size=N), rng.standard_normal(N)], axis=1)
    null = skew(drawn(X), axis=0)
    assert null[0] > 1.0
    assert null[1] < -1.0
    assert abs(null[2]) < 0.4


def test_tails_stay_heavy_or_light():
    rng = np.random.default_rng(0)
    X = np.stack([rng.standard_t(3, N), rng.uniform(size=N), rng.standard_normal(N)], axis=1)
    heavy, light, usual = kurtosis(drawn(X), axis=0)
    assert heavy > 1.0
    assert light < -0.6
    assert abs(usual) < 0.8


def test_a_column_of_few_values_keeps_them_as_often():
    rng = np.random.default_rng(0)
    X = np.stack([rng.integers(0, 3, N), rng.standard_normal(N), np.where(rng.random(N) < 0.5, 0, rng.random(N))], 1)
    null = drawn(X.astype(float))
    np.testing.assert_allclose(np.sort(null[:, 0]), np.sort(X[:, 0]), atol=1e-9)
    np.testing.assert_allclose(np.sort(null[:, 2]), np.sort(X[:, 2]), atol=1e-9)  # half of it is one value
    assert not np.allclose(np.sort(null[:, 1]), np.sort(X[:, 1]))


@pytest.mark.parametrize(("n_values", "kept"), [(10, True), (11, False)])
def test_eleven_values_are_not_few(n_values, kept):
    Z = (np.arange(220) % n_values)[:, None].astype(float)
    assert ColumnShapes.of(Z).kept.tolist() == [kept]


@pytest.mark.parametrize(("share", "kept"), [(0.2, False), (0.22, True)])
def test_one_value_with_more_than_a_fifth_is_a_pile(share, kept):
    values = np.random.default_rng(0).standard_normal(100)
    values[: round(100 * share)] = 0.5
    assert ColumnShapes.of(values[:, None]).kept.tolist() == [kept]


def test_a_constant_column_stays_constant():
    X = correlated(n=60)
    X[:, 1] = 3.0
    np.testing.assert_array_equal(drawn(X)[:, 1], 3.0)


def test_the_covariance_of_a_long_table_is_that_of_ledoit_and_wolf():
    X = np.random.default_rng(0).standard_normal((60, 5)) @ np.random.default_rng(1).standard_normal((5, 5))
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    scores = shrunk(Z)
    wanted, share = ledoit_wolf(Z, assume_centered=True)
    assert share > 0.01
    np.testing.assert_allclose(scores.T @ scores / 60, wanted, atol=1e-10)


def test_a_wide_table_is_shrunk_as_far_as_ledoit_and_wolf_say_within_the_space_of_its_rows():
    X = np.random.default_rng(0).standard_normal((20, 50)) * np.linspace(1, 5, 20)[:, None]
    Z = X - X.mean(axis=0)
    share = ledoit_wolf_shrinkage(Z, assume_centered=True)
    before = np.linalg.svd(Z, compute_uv=False)[:19] ** 2
    after = np.linalg.svd(shrunk(Z), compute_uv=False)[:19] ** 2
    np.testing.assert_allclose(after, (1 - share) * before + share * before.mean())
    assert np.linalg.matrix_rank(np.vstack([Z, shrunk(Z)])) == 19


def test_directions_without_variance_stay_without():
    X = np.random.default_rng(0).standard_normal((40, 2))
    Z = np.hstack([X, X[:, :1], np.zeros((40, 1))])
    scores = shrunk(Z - Z.mean(axis=0))
    np.testing.assert_allclose(scores[:, 0], scores[:, 2])
    np.testing.assert_allclose(scores[:, 3], 0.0, atol=1e-9)
    np.testing.assert_array_equal(shrunk(np.zeros((5, 3))), 0.0)


@pytest.mark.parametrize("d", [3, 80])
def test_a_view_given_twice_is_drawn_twice_alike_and_a_turned_one_turned(d):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, d))
    mixing = rng.standard_normal((60, 60))
    one, same, turned = (StructurelessTable(view).draw(mixing, rng) for view in (X, X, X[:, ::-1]))
    np.testing.assert_array_equal(one, same)
    np.testing.assert_allclose(one, turned[:, ::-1])


# --- kernels ---------------------------------------------------------------------------------------------------------


def kernel_null(K, seed=0):
    rng = np.random.default_rng([seed, 1])
    return StructurelessKernel(K).draw(rng.standard_normal(K.shape), rng)


@pytest.mark.parametrize("rank", [2, 40])
def test_kernels_drawn_are_positive_semidefinite_and_as_large(rank):
    X = np.random.default_rng(0).standard_normal((40, rank)) + 1.0
    K = X @ X.T
    null = kernel_null(K)
    np.testing.assert_allclose(null, null.T)
    values = np.linalg.eigvalsh(null)
    assert values[0] > -1e-10 * values[-1]
    assert np.count_nonzero(values > 1e-8 * values[-1]) <= rank
    assert np.trace(null) == pytest.approx(np.trace(K), rel=0.3)


def test_negative_eigenvalues_are_left_out():
    null = kernel_null(np.diag([3.0, 2.0, -5.0, 0.0, 1.0]))
    assert np.linalg.eigvalsh(null)[0] > -1e-10


@pytest.mark.parametrize("K", [np.zeros((5, 5)), -np.eye(5)])
def test_a_kernel_without_a_positive_eigenvalue_gives_zeros(K):
    np.testing.assert_array_equal(kernel_null(K), 0.0)


def test_a_kernel_of_two_heaps_becomes_one_heap():
    x = np.random.default_rng(0).standard_normal(200) + 10.0 * (np.arange(200) % 2)
    x -= x.mean()
    values, vectors = np.linalg.eigh(kernel_null(np.outer(x, x)))
    assert two_heaps(x)
    assert not two_heaps(vectors[:, -1] * np.sqrt(values[-1]))


# --- counts ----------------------------------------------------------------------------------------------------------


def sparse_counts(seed=0):
    """Return counts of two groups that share no column."""
    rng = np.random.default_rng(seed)
    X = rng.integers(1, 5, (80, 100)) * (rng.random((80, 100)) < 0.1)
    X[:40, :50] = 0
    X[40:, 50:] = 0
    return X.astype(float)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_counts_keep_what_every_row_adds_up_to(form):
    X = sparse_counts()
    null = StructurelessCounts(form(X)).draw(np.empty(0), np.random.default_rng(0))
    np.testing.assert_allclose(null.sum(axis=1), X.sum(axis=1))
    assert null.shape == X.shape


def test_columns_keep_their_number_of_entries_but_for_those_that_fall_together():
    X = sparse_counts()
    null = StructurelessCounts(X).draw(np.empty(0), np.random.default_rng(0)).toarray()
    entries = np.count_nonzero(null, axis=0)
    before = np.count_nonzero(X, axis=0)
    assert (entries <= before).all()
    assert entries.sum() > 0.9 * before.sum()
    assert np.corrcoef(entries, before)[0, 1] > 0.9


def test_groups_of_columns_are_gone():
    X = sparse_counts()
    null = StructurelessCounts(X).draw(np.empty(0), np.random.default_rng(0)).toarray()
    crossing = np.count_nonzero(null[:40, :50]) + np.count_nonzero(null[40:, 50:])
    assert crossing > 0.4 * np.count_nonzero(null)


def test_stored_zeros_are_not_dealt():
    X = sp.csr_array(sparse_counts())
    stored = X.copy()
    stored.data[:5] = 0.0
    plain = stored.copy()
    plain.eliminate_zeros()
    nulls = [StructurelessCounts(table).draw(np.empty(0), np.random.default_rng(0)) for table in (stored, plain)]
    np.testing.assert_array_equal(nulls[0].toarray(), nulls[1].toarray())


# --- graphs ----------------------------------------------------------------------------------------------------------


def two_groups(seed=0, n=100):
    """Return a graph of weighted edges within two groups only."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    A = np.triu((rng.random((n, n)) < 0.1) & (y[:, None] == y), 1) * rng.integers(1, 4, (n, n))
    return (A + A.T).astype(float), y


def graph_null(A, seed=0):
    return StructurelessGraph(sp.csr_array(A)).draw(np.empty(0), np.random.default_rng(seed))


@pytest.mark.parametrize("seed", [0, 1])
def test_rewired_graphs_are_symmetric_without_loops_and_have_about_as_many_edges(seed):
    A, _ = two_groups(seed)
    null = graph_null(A, seed)
    assert abs(null - null.T).sum() == 0.0
    np.testing.assert_array_equal(null.diagonal(), 0.0)
    assert 0.85 * np.count_nonzero(A) < null.nnz <= np.count_nonzero(A)
    assert set(np.unique(null.data)) <= {1.0, 2.0, 3.0}


def test_nodes_keep_their_degrees_as_far_as_chance_allows():
    rng = np.random.default_rng(0)
    busy = np.where(np.arange(120) < 20, 0.9, 0.2)
    A = np.triu(rng.random((120, 120)) < 0.3 * np.outer(busy, busy), 1).astype(float)
    A += A.T
    null = graph_null(A)
    degrees = np.diff(null.indptr)
    assert (degrees <= A.sum(axis=1)).all()
    assert np.corrcoef(degrees, A.sum(axis=1))[0, 1] > 0.9


def test_groups_of_nodes_are_gone():
    A, y = two_groups()
    null = graph_null(A).tocoo()
    crossing = (y[null.row] != y[null.col]).mean()
    assert 0.35 < crossing < 0.65


def test_a_graph_without_edges_stays_without():
    assert graph_null(np.zeros((6, 6))).nnz == 0


def test_loops_of_a_graph_are_left_out():
    assert graph_null(np.eye(6)).nnz == 0
