"""Dividing in two, again and again: which cluster, within which balance, and where new samples go."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF
from sklearn.metrics.pairwise import rbf_kernel

from kernelweave import ParameterError
from kernelweave.estimators.margin.basis_kernels import BasisKernels, KernelObject, fit_basis, fit_kernel_object
from kernelweave.estimators.margin.division import (
    Cut,
    DivisionModel,
    Split,
    check_division,
    divide,
    largest_difference,
)
from kernelweave.inputs import Views

LINE = np.array([0.0, 1.0, 10.0, 12.0, 40.0, 41.0])
K = np.outer(LINE, LINE)


def at_the_middle(members, new):
    """Cut a cluster at the mean of its samples; the decision is x less that mean."""
    middle = LINE[members].mean()
    return Cut(np.where(LINE[members] > middle, 1.0, -1.0), np.ones(1), np.zeros(len(members)), -middle)


def run(n_clusters, cut=at_the_middle, matrix=K, **options):
    return divide(matrix, n_clusters, cut, progress=iter, **options)


def test_the_cluster_of_largest_scatter_is_divided_next():
    division = run(3)
    # 17.3 is the mean of all; of the two sides the first four samples lie further apart.
    assert division.labels.tolist() == [0, 0, 2, 2, 1, 1]
    assert [(split.cluster, split.new) for split in division.splits] == [(0, 1), (0, 2)]
    assert run(4).labels.tolist() == [0, 0, 2, 3, 1, 1]


def test_a_single_cluster_takes_no_division():
    division = run(1)
    assert division.labels.tolist() == [0] * 6
    assert division.splits == ()


def test_a_cut_sees_its_members_and_counts_from_one():
    calls = []

    def watched(members, new):
        calls.append((members.tolist(), new))
        return at_the_middle(members, new)

    run(3, watched)
    assert calls == [([0, 1, 2, 3, 4, 5], 1), ([0, 1, 2, 3], 2)]


def test_multipliers_of_a_later_cut_are_zero_for_samples_of_other_clusters():
    def numbered(members, new):
        return Cut(at_the_middle(members, new).labels, np.ones(1), 1.0 + members, 0.0)

    first, second = run(3, numbered).splits
    assert first.sources.tolist() == [1, 2, 3, 4, 5, 6]
    assert second.sources.tolist() == [1, 2, 3, 4, 0, 0]


@pytest.mark.parametrize("regularization", [0.0, 1e-4, 0.01])
def test_what_a_raised_diagonal_leaves_of_equal_samples_is_no_scatter(regularization):
    matrix = np.outer([1.0, 1.0, 3.0, 3.0], [1.0, 1.0, 3.0, 3.0])
    matrix += regularization * np.trace(matrix) / 4 * np.eye(4)
    cut = lambda members, new: Cut(np.array([-1.0, -1.0, 1.0, 1.0]), np.ones(1), np.zeros(4), 0.0)  # noqa: E731
    division = run(4, cut, matrix, regularization=regularization)
    assert division.labels.tolist() == [0, 0, 1, 1]
    assert len(division.splits) == 1


@pytest.mark.parametrize(
    ("balance", "n", "first", "expected"),
    [(0.5, 10, True, 5.0), (1.0, 10, True, 8.0), (0.0, 10, True, 0.0), (0.0, 7, True, 0.0), (0.0, 7, False, 1.0)],
)
def test_the_sizes_may_differ_by_the_balance_but_no_cluster_runs_empty(balance, n, first, expected):
    assert largest_difference(balance, n, first=first) == expected


def test_a_balance_below_the_least_difference_of_an_odd_number_is_refused():
    check_division(2, 1 / 9, 9)
    check_division(1, 0.0, 9)
    check_division(2, 0.0, 10)
    with pytest.raises(ParameterError, match=r"balance=0\.1 allows the clusters of 9 samples to differ by 0\.9"):
        check_division(2, 0.1, 9)
    with pytest.raises(ValueError, match="n_clusters"):
        check_division(10, 0.5, 9)


# --- new samples -----------------------------------------------------------------------------------------------------


class Thresholds:
    """A kernel for new samples whose sums are the numbers themselves."""

    def cross(self, blocks, theta):
        class Rows:
            def matmat(self, H):
                return theta[0] * blocks[0] @ H[:1]

        return Rows()


def test_new_samples_follow_the_divisions_in_turn():
    splits = (
        Split(0, 1, np.ones(1), np.array([1.0]), -5.0),  # above 5: cluster 1
        Split(1, 2, np.ones(1), np.array([1.0]), -8.0),  # of these, above 8: cluster 2
        Split(0, 3, np.array([-1.0]), np.array([1.0]), 2.0),  # of the others, below 2: cluster 3
    )
    model = DivisionModel(splits, Thresholds())
    new = [np.array([[1.0], [3.0], [6.0], [9.0], [5.0]])]
    np.testing.assert_array_equal(model.decisions(new)[:, 0], [-4, -2, 1, 4, 0])
    assert model.assign(new).tolist() == [3, 0, 1, 2, 0]


def test_a_division_leaves_new_samples_of_other_clusters_alone():
    splits = (
        Split(0, 1, np.ones(1), np.array([1.0]), -5.0),  # above 5: cluster 1
        Split(0, 2, np.ones(1), np.array([1.0]), -2.0),  # of the others, above 2: cluster 2
    )
    assert DivisionModel(splits, Thresholds()).assign([np.array([[1.0], [3.0], [6.0]])]).tolist() == [0, 2, 1]


def test_without_a_division_all_samples_are_in_one_cluster():
    model = DivisionModel((), Thresholds())
    assert model.decisions([np.ones((3, 1))]).shape == (3, 0)
    assert model.assign([np.ones((3, 1))]).tolist() == [0, 0, 0]


# --- kernels ---------------------------------------------------------------------------------------------------------

X = np.random.default_rng(0).normal(size=(12, 3))
TWO = Views(("one", "two"), (X[:, :2], X[:, 2:]))
PLAIN = {"norm": 1, "normalize": False, "regularization": 0.0, "memory_limit": 2048}


def test_the_kernels_of_new_samples_are_those_of_the_training_samples():
    theta = np.array([0.3, 0.7])
    basis = fit_basis(TWO, ["linear", "rbf"], [None, {"sigma": 2.0}], **(PLAIN | {"normalize": True}))
    assert isinstance(basis.new_samples, BasisKernels)
    again = basis.new_samples.cross(TWO.blocks, theta).matmat(np.eye(12))
    np.testing.assert_allclose(again, basis.family.matrix(theta), atol=1e-12)


def test_several_kernels_of_one_view_are_all_computed_from_it():
    one = Views(("only",), (X,))
    basis = fit_basis(one, ["rbf", "rbf"], [{"sigma": 1.0}, {"sigma": 3.0}], **PLAIN)
    cross = basis.new_samples.cross([X[:4]], np.array([2.0, 1.0])).matmat(np.eye(12))
    np.testing.assert_allclose(cross, 2.0 * rbf_kernel(X[:4], X, gamma=0.5) + rbf_kernel(X[:4], X, gamma=1 / 18))
    assert basis.view_weights(np.array([2.0, 1.0]), 1).tolist() == pytest.approx([1.0])
    assert basis.kernel_weights(np.array([2.0, 1.0])).tolist() == pytest.approx([2 / 3, 1 / 3])


def test_weights_of_kernels_add_up_over_their_views():
    basis = fit_basis(TWO, ["rbf_widths", "linear"], None, **PLAIN)
    assert len(basis.names) == 11
    theta = np.arange(1.0, 12.0)
    np.testing.assert_allclose(basis.view_weights(theta, 2), [55 / 66, 11 / 66])


def test_the_diagonal_is_raised_by_a_share_of_its_mean():
    plain = fit_basis(TWO, "linear", None, **PLAIN).family.matrix(np.ones(2))
    raised = fit_basis(TWO, "linear", None, **(PLAIN | {"regularization": 0.25})).family.matrix(np.ones(2))
    np.testing.assert_allclose(raised - plain, 0.25 * np.trace(plain) / 12 * np.eye(12), atol=1e-12)


def test_one_kernel_leaves_nothing_to_learn_but_hyperparameters_do():
    one = Views(("only",), (X,))
    assert not fit_basis(one, "rbf", None, **PLAIN).learnable
    assert fit_basis(one, ["rbf", "linear"], None, **PLAIN).learnable
    basis = fit_kernel_object(one, RBF(2.0), regularization=0.0, memory_limit=2048)
    assert basis.learnable
    assert isinstance(basis.new_samples, KernelObject)
    cross = basis.new_samples.cross([X[:4]], np.log([3.0])).matmat(np.eye(12))
    np.testing.assert_allclose(cross, rbf_kernel(X[:4], X, gamma=1 / 18))
    assert basis.kernel_weights(np.log([3.0])).tolist() == [1.0]
