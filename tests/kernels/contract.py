"""What every operator must do, tested from two hooks: build it, and write its matrix plainly.

``OperatorContract`` is for kernels on one sample set, ``CrossContract`` for kernels between new and training samples,
``NeverStoresTheMatrix`` for those that promise to need no room for an n x n matrix.
"""

import pickle
import tracemalloc
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits

from tests.strategies import moves, partitions, sample_weights, samples

# The laws are tested in some seventy classes, each of which draws its own cases: few for each are many in all. Drawing
# a case takes longer than a law, so that all laws share the cases of their class; each law builds its own operator.
drawn = settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.differing_executors])


@dataclass(frozen=True)
class Example:
    """What the laws are tested on: samples, a partition of the columns, weights, moves, and a seed for the rest."""

    X: Any
    Y: Any
    labels: Any
    n_clusters: int
    weights: Any
    moved: Any
    new: Any
    seed: int

    @property
    def rng(self):
        """A generator that begins anew for each law."""
        return np.random.default_rng(self.seed)


class _Contract:
    """Laws that hold for square and rectangular operators; ``pair(X, Y)`` gives operator and plain matrix."""

    # Allowed error of a result, as a share of the largest it could be.
    tolerance = 1e-11
    # What the operator may be built from.
    rows, columns = samples(), samples()

    def pair(self, X, Y):
        raise NotImplementedError

    @drawn
    @given(st.data())
    def test_every_law_holds(self, data):
        X, Y = data.draw(self.rows), data.draw(self.columns)
        n = self.pair(X, Y)[1].shape[1]
        labels, n_clusters = data.draw(partitions(n))
        moved, new = data.draw(moves(labels, n_clusters))
        weights = data.draw(sample_weights(n))
        self.check_laws(Example(X, Y, labels, n_clusters, weights, moved, new, data.draw(st.integers(0, 2**16))))

    def check_laws(self, case):
        """Check the laws one after the other; the traceback names the one that is broken."""
        self.matmat_is_the_product_with_the_plain_matrix(case)
        self.block_takes_slices_and_integer_arrays_alike(case)
        self.columns_are_those_of_the_plain_matrix(case)
        self.cluster_sums_are_the_product_with_weighted_indicators(case)
        self.moved_sums_equal_sums_computed_again(case)

    def assert_close(self, result, wanted, K, mass=1.0):
        """Compare; ``mass`` is what the entries of K were multiplied with and added up to."""
        size = max(np.abs(K).max(), 1.0) * mass  # samples of the strategies are of size one
        np.testing.assert_allclose(result, wanted, rtol=0, atol=self.tolerance * size)

    def matmat_is_the_product_with_the_plain_matrix(self, case):
        op, K = self.pair(case.X, case.Y)
        rng = case.rng
        for width in (1, 4):
            H = rng.standard_normal((K.shape[1], width))
            result = op.matmat(H)
            assert result.dtype == np.float64
            self.assert_close(result, K @ H, K, mass=np.abs(H).sum())

    def block_takes_slices_and_integer_arrays_alike(self, case):
        op, K = self.pair(case.X, case.Y)
        rng = case.rng
        m, n = K.shape
        rows, cols = rng.integers(m, size=m // 2 + 1), rng.permutation(n)[: n // 2]
        some_rows, some_cols = slice(0, m, 2), slice(1, n - 1)
        everything = op.block(slice(None), slice(None))
        assert np.issubdtype(everything.dtype, np.floating)
        self.assert_close(everything, K, K)
        self.assert_close(op.block(rows, cols), K[np.ix_(rows, cols)], K)
        self.assert_close(op.block(rows, some_cols), K[rows][:, some_cols], K)
        self.assert_close(op.block(some_rows, cols), K[some_rows][:, cols], K)
        self.assert_close(op.block(some_rows, some_cols), K[some_rows, some_cols], K)

    def columns_are_those_of_the_plain_matrix(self, case):
        op, K = self.pair(case.X, case.Y)
        chosen = case.rng.integers(K.shape[1], size=3)
        columns = op.columns(chosen)
        assert columns.shape == (K.shape[0], 3)
        self.assert_close(columns, K[:, chosen], K)

    def cluster_sums_are_the_product_with_weighted_indicators(self, case):
        op, K = self.pair(case.X, case.Y)
        labels, k, weights = case.labels, case.n_clusters, case.weights
        sums = op.cluster_sums(labels, weights, k + 1)
        assert sums.dtype == np.float64
        assert sums.flags.c_contiguous
        self.assert_close(sums, indicators(labels, weights, k + 1).T @ K.T, K, mass=weights.sum())
        assert not sums[k].any()  # an empty cluster sums to zero

    def moved_sums_equal_sums_computed_again(self, case):
        op, K = self.pair(case.X, case.Y)
        labels, k, weights = case.labels, case.n_clusters, case.weights
        after = labels.copy()
        after[case.moved] = case.new
        sums = indicators(labels, weights, k).T @ K.T
        op.move_sums(sums, op.backend.moves(labels, after), weights)
        self.assert_close(sums, indicators(after, weights, k).T @ K.T, K, mass=weights.sum())

    def example(self):
        """Return the operator and plain matrix of one fixed case in general position."""
        rng = np.random.default_rng(0)
        return self.pair(rng.standard_normal((9, 3)), rng.standard_normal((7, 3)))

    def test_shape_counts_rows_and_columns(self):
        op, K = self.example()
        assert op.shape == K.shape
        assert op.n_samples == K.shape[0]

    def test_a_pickled_operator_gives_the_same_numbers(self):
        op, K = self.example()
        again = pickle.loads(pickle.dumps(op))
        H = np.random.default_rng(1).standard_normal((K.shape[1], 3))
        assert again.shape == op.shape
        assert again.psd is op.psd
        np.testing.assert_array_equal(again.matmat(H), op.matmat(H))
        np.testing.assert_array_equal(
            again.block(slice(2, 5), np.array([3, 0])), op.block(slice(2, 5), np.array([3, 0]))
        )
        labels, weights = np.arange(K.shape[1]) % 3, np.ones(K.shape[1])
        np.testing.assert_array_equal(again.cluster_sums(labels, weights, 3), op.cluster_sums(labels, weights, 3))

    def test_arguments_are_left_as_they_were(self):
        rng = np.random.default_rng(0)
        X, Y = rng.standard_normal((9, 3)), rng.standard_normal((7, 3))
        before = X.copy(), Y.copy()
        op, K = self.pair(X, Y)
        n = K.shape[1]
        labels = np.arange(n) % 2
        moves = op.backend.moves(labels, np.where(np.arange(n) % 3 == 0, 1 - labels, labels))
        of_moves = [moves.samples, moves.old, moves.new, moves.labels]
        arguments = [np.ones((n, 2)), labels, np.linspace(0.0, 1.0, n), *of_moves]
        copies = [value.copy() for value in arguments]
        H, labels, weights = arguments[:3]
        op.matmat(H)
        op.block(moves.samples[:1], moves.samples)
        op.columns(moves.samples)
        op.move_sums(op.cluster_sums(labels, weights, 2), moves, weights)
        for value, copy in zip([*arguments, X, Y], [*copies, *before], strict=True):
            np.testing.assert_array_equal(value, copy)
        self.assert_close(op.block(slice(None), slice(None)), K, K)

    def test_results_belong_to_the_caller(self):
        op, K = self.example()
        op.matmat(np.eye(K.shape[1]))[:] = -7.0
        op.block(slice(None), slice(None))[:] = -7.0
        op.columns(np.arange(2))[:] = -7.0
        op.cluster_sums(np.zeros(K.shape[1], dtype=np.intp), np.ones(K.shape[1]), 1)[:] = -7.0
        self.assert_close(op.block(slice(None), slice(None)), K, K)


class OperatorContract(_Contract):
    """For kernels on one sample set: supply ``make(X)``, the operator, and ``dense(X)``, its plain matrix."""

    # How far values may lie above ``scale()``, which of a centred kernel is that of the values before centring.
    above_scale = 1.0

    def make(self, X):
        raise NotImplementedError

    def dense(self, X):
        raise NotImplementedError

    def pair(self, X, Y):
        return self.make(X), self.dense(X)

    def check_laws(self, case):
        super().check_laws(case)
        self.diag_is_the_diagonal_of_the_plain_matrix(case)
        self.no_value_is_larger_than_the_scale(case)
        self.candidate_gains_are_sums_over_pairs(case)
        self.links_inside_and_out_of_clusters_add_up_entry_by_entry(case)
        self.the_objective_of_a_partition_is_that_of_the_plain_matrix(case)
        self.psd_flag_is_borne_out_by_the_smallest_eigenvalue(case)

    def diag_is_the_diagonal_of_the_plain_matrix(self, case):
        op, K = self.pair(case.X, None)
        result = op.diag()
        assert result.dtype == np.float64
        self.assert_close(result, np.diagonal(K), K)
        result[:] = -7.0
        self.assert_close(op.diag(), np.diagonal(K), K)

    def no_value_is_larger_than_the_scale(self, case):
        op, K = self.pair(case.X, None)
        assert np.abs(K).max() <= self.above_scale * op.scale() * (1 + 1e-12) + 1e-15

    def candidate_gains_are_sums_over_pairs(self, case):
        op, K = self.pair(case.X, None)
        weights = case.weights
        size = max(np.abs(K).max(), 1.0)
        distances = 2.0 * size * case.rng.random(len(K))
        diag = np.diagonal(K)
        pairs = diag[:, None] + diag[None, :] - 2.0 * K
        wanted = [sum(w * max(d - p, 0.0) for w, d, p in zip(weights, distances, row, strict=True)) for row in pairs]
        self.assert_close(op.candidate_gains(distances, weights, op.diag()), wanted, K, mass=4.0 * weights.sum())

    def links_inside_and_out_of_clusters_add_up_entry_by_entry(self, case):
        op, K = self.pair(case.X, None)
        labels, k = case.labels, case.n_clusters
        within, between = np.zeros(k + 1), np.zeros(k + 1)
        for i in range(len(K)):
            for j in range(len(K)):
                (within if labels[i] == labels[j] else between)[labels[i]] += K[i, j]
        links = op.cluster_links(labels, k + 1)
        self.assert_close(links[0], within, K, mass=len(K) ** 2)
        self.assert_close(links[1], between, K, mass=len(K) ** 2)

    def test_other_forms_of_the_kernel_hold_the_same_values(self):
        op, K = self.example()
        self.assert_close(op.for_products().matmat(np.eye(len(K))), K, K)
        if (matrix := op.stored_matrix()) is not None:
            self.assert_close(matrix, K, K)
        if (graph := op.sparse_matrix()) is not None:
            self.assert_close(graph.toarray(), K, K)

    def the_objective_of_a_partition_is_that_of_the_plain_matrix(self, case):
        op, K = self.pair(case.X, None)
        labels, k, weights = case.labels, case.n_clusters, case.weights
        objective = weights @ np.diagonal(K)
        for c in range(k):
            mass = np.where(labels == c, weights, 0.0)
            objective -= mass @ K @ mass / mass.sum() if mass.any() else 0.0
        partition = op.partition(labels, weights, k)
        assert partition.backend is op.backend
        self.assert_close(partition.objective, objective, K, mass=2.0 * weights.sum())

    def psd_flag_is_borne_out_by_the_smallest_eigenvalue(self, case):
        op, K = self.pair(case.X, None)
        values = np.linalg.eigvalsh(K)
        if op.psd is True:
            rounding = 1e-14 * len(
                K
            )  # of samples of size one, all that is left of a centred kernel where they are equal
            assert values[0] >= -1e-10 * np.abs(values).max() - rounding
        elif op.psd is False:
            assert values[0] < 0
        else:
            assert op.psd is None


class CrossContract(_Contract):
    """For kernels between new samples X and training samples Y.

    Supply ``make(X, Y)``, ``dense(X, Y)`` and ``self_values(X, Y)``, the plain k(x, x) of the new samples; None
    where the operator cannot know them.
    """

    rows, columns = samples(min_n=1, max_n=9), samples()

    def make(self, X, Y):
        raise NotImplementedError

    def dense(self, X, Y):
        raise NotImplementedError

    def self_values(self, X, Y):
        raise NotImplementedError

    def pair(self, X, Y):
        return self.make(X, Y), self.dense(X, Y)

    def check_laws(self, case):
        super().check_laws(case)
        self.diag_is_the_kernel_of_each_new_sample_with_itself(case)

    def diag_is_the_kernel_of_each_new_sample_with_itself(self, case):
        op, wanted = self.make(case.X, case.Y), self.self_values(case.X, case.Y)
        if wanted is None:
            with pytest.raises(ValueError, match="new samples"):
                op.diag()
        else:
            result = op.diag()
            assert result.dtype == np.float64
            self.assert_close(result, wanted, wanted)
            result[:] = -7.0
            self.assert_close(op.diag(), wanted, wanted)

    def test_a_kernel_between_different_samples_claims_nothing_about_eigenvalues(self):
        rng = np.random.default_rng(0)
        for n_new in (5, 8):  # as many new samples as training samples make no difference
            assert self.make(rng.standard_normal((n_new, 3)), rng.standard_normal((8, 3))).psd is None

    def test_as_many_new_as_training_samples_do_not_make_it_symmetric(self):
        rng = np.random.default_rng(2)
        X, Y = rng.standard_normal((8, 3)), rng.standard_normal((8, 3))
        op, K = self.make(X, Y), self.dense(X, Y)
        labels, weights = np.arange(8) % 3, rng.random(8)
        sums = op.cluster_sums(labels, weights, 3)
        self.assert_close(sums, indicators(labels, weights, 3).T @ K.T, K, mass=weights.sum())
        after = labels.copy()
        after[[1, 4, 6]] = 0
        op.move_sums(sums, op.backend.moves(labels, after), weights)
        self.assert_close(sums, indicators(after, weights, 3).T @ K.T, K, mass=weights.sum())


class NeverStoresTheMatrix:
    """For operators whose work space must stay far below the n x n matrix: supply ``make(X)``."""

    n_large = 3000

    def test_peak_memory_stays_below_half_of_one_square_matrix(self):
        rng = np.random.default_rng(3)
        n, k = self.n_large, 4
        self._work(self.make(rng.standard_normal((8, 3))), 8, 2, rng)  # compiles, so that compiling is not measured
        op = self.make(rng.standard_normal((n, 3)))
        with threadpool_limits(1):
            tracemalloc.start()
            try:
                self._work(op, n, k, rng)
                peak = tracemalloc.get_traced_memory()[1]
            finally:
                tracemalloc.stop()
        assert peak < n * n * 8 / 2

    def _work(self, op, n, k, rng):
        labels, weights = rng.integers(k, size=n), rng.random(n)
        op.diag()
        op.matmat(rng.standard_normal((n, 3)))
        op.block(slice(0, 5), np.arange(5))
        sums = op.cluster_sums(labels, weights, k)
        after = labels.copy()
        after[::4] = rng.integers(k, size=len(after[::4]))
        op.move_sums(sums, op.backend.moves(labels, after), weights)


def indicators(labels, weights, n_clusters):
    """Return the (n, k) matrix with weights[i] at (i, labels[i]), written as a loop."""
    H = np.zeros((len(labels), n_clusters))
    for i, label in enumerate(labels):
        H[i, label] = weights[i]
    return H
