"""View weights in closed form and the exponent chosen by resampling: against a general solver, laws and limits."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.metrics import adjusted_rand_score

from kernelweave.solvers.shared.exponent import (
    EXPONENTS,
    FEW,
    SAMPLES_A_CLUSTER,
    SIZE,
    SUBSETS,
    SUBSETS_OF_FEW,
    stable_exponent,
)
from kernelweave.solvers.shared.rand_index import rand_index
from kernelweave.solvers.shared.view_weights import LARGEST_P, best_view_weights
from tests.reference import multi_view as oracle
from tests.strategies import generators

cases = settings(max_examples=45, deadline=None)
exponents = st.one_of(st.floats(1.0, 5.0), st.sampled_from([1.0, 1.0 + 1e-9, 1.01, 1.5, 2.0, 10.0, LARGEST_P]))


@st.composite
def positive_scatters(draw, max_views=6, spread=3):
    """Draw scatters between 10^-spread and 10^spread."""
    rng, n_views = draw(generators()), draw(st.integers(1, max_views))
    return 10.0 ** rng.uniform(-spread, spread, n_views)


def is_distribution(weights):
    assert (weights >= 0).all()
    assert weights.sum() == pytest.approx(1.0, abs=1e-12)


def solved(scatters, p):
    """Return the weights a general solver ends at: least sum of w_v^p D_v on the simplex."""
    D, n_views = np.asarray(scatters) / np.max(scatters), len(scatters)
    return minimize(
        lambda w: np.abs(w) ** p @ D,
        np.full(n_views, 1.0 / n_views),
        jac=lambda w: p * np.abs(w) ** (p - 1.0) * D,
        method="SLSQP",
        bounds=[(0.0, 1.0)] * n_views,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1.0, "jac": np.ones_like},
        options={"ftol": 1e-15, "maxiter": 1000},
    ).x


# --- the closed form -------------------------------------------------------------------------------------------------


def test_two_views_are_weighted_as_worked_out_by_hand():
    # D = (1, 3): p = 2 gives weights as 3 : 1, p = 1.5 as 9 : 1, p = 3 as sqrt(3) : 1.
    D = np.array([1.0, 3.0])
    assert best_view_weights(D, 2.0) == pytest.approx([0.75, 0.25])
    assert best_view_weights(D, 1.5) == pytest.approx([0.9, 0.1])
    assert best_view_weights(D, 3.0) == pytest.approx(np.array([3**0.5, 1.0]) / (3**0.5 + 1.0))
    assert best_view_weights(D, 1.0).tolist() == [1.0, 0.0]


@cases
@given(D=positive_scatters(), p=exponents)
def test_the_weights_are_those_of_the_printed_formula(D, p):
    result = best_view_weights(D, p)
    is_distribution(result)
    # Next to p = 1 the last digit of a scatter decides.
    np.testing.assert_allclose(result, oracle.view_weights(D, p), rtol=1e-9 + 1e-14 / max(p - 1.0, 1e-9), atol=1e-300)


@cases
@given(D=positive_scatters(max_views=5, spread=1), p=st.floats(1.2, 6.0))
def test_the_weights_are_those_a_general_solver_finds(D, p):
    result, general = best_view_weights(D, p), solved(D, p)
    assert result**p @ D <= np.abs(general) ** p @ D * (1 + 1e-10)
    np.testing.assert_allclose(result, general, atol=5e-3)


@cases
@given(D=positive_scatters(), p=exponents, rng=generators())
def test_no_other_distribution_has_a_lower_objective(D, p, rng):
    result = best_view_weights(D, p)
    least = result**p @ D
    others = np.vstack([rng.dirichlet(np.full(len(D), 0.3), 40), np.eye(len(D)), np.full(len(D), 1.0 / len(D))])
    # Weights close by as well: a step of a thousandth towards each of them.
    for other in [*others, *(result + 1e-3 * (others - result))]:
        assert least <= other**p @ D * (1 + 1e-9)


@cases
@given(D=positive_scatters(), p=exponents, rng=generators())
def test_the_order_of_the_views_does_not_matter(D, p, rng):
    order = rng.permutation(len(D))
    np.testing.assert_allclose(best_view_weights(D[order], p), best_view_weights(D, p)[order], rtol=1e-12)


@cases
@given(D=positive_scatters(), p=exponents, factor=st.sampled_from([1e-6, 0.5, 1e6]))
def test_scaling_all_scatters_changes_nothing(D, p, factor):
    sharp = 1e-12 + 1e-14 / max(p - 1.0, 1e-9)
    np.testing.assert_allclose(best_view_weights(factor * D, p), best_view_weights(D, p), rtol=sharp, atol=1e-300)


@cases
@given(D=positive_scatters())
def test_a_larger_exponent_makes_the_weights_more_equal_and_a_smaller_scatter_the_weight_larger(D):
    order, largest = np.argsort(D), 1.0
    for p in (1.0, 1.1, 1.5, 2.0, 4.0, 20.0, LARGEST_P):
        result = best_view_weights(D, p)
        assert (np.diff(result[order]) <= 1e-15).all()
        assert result.max() <= largest + 1e-12
        largest = result.max()


def test_the_scatters_passed_are_left_as_they_were():
    for D in (np.array([3.0, 1.0, 1.0]), np.array([0.0, 1.0]), np.array([-1.0, 2.0])):
        before = D.copy()
        for p in (1.0, 2.0):
            best_view_weights(D, p)[:] = -7.0
        np.testing.assert_array_equal(D, before)


# --- limits ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("p", [1.0, 1.0 + 1e-9, 1.5, 2.0, LARGEST_P])
@pytest.mark.parametrize(
    ("scatters", "expected"),
    [
        ([0.0], [1.0]),
        ([0.0, 1.0], [1.0, 0.0]),
        ([2.0, 0.0, 1e-300], [0.0, 1.0, 0.0]),
        ([0.0, 5.0, 0.0], [0.5, 0.0, 0.5]),
        ([0.0, 0.0, 0.0], [1 / 3, 1 / 3, 1 / 3]),
        ([-1.0, 2.0], [1.0, 0.0]),
        ([0.0, -1e-3, 2.0], [0.0, 1.0, 0.0]),
        ([-1.0, -3.0, 0.0, 2.0], [0.0, 1.0, 0.0, 0.0]),
        ([-1e300, 1e300], [1.0, 0.0]),
    ],
)
def test_a_view_without_scatter_or_with_a_negative_one_takes_all_the_weight(scatters, expected, p):
    np.testing.assert_allclose(best_view_weights(np.array(scatters), p), expected, rtol=1e-15)


@cases
@given(rng=generators(), n_views=st.integers(2, 5), p=exponents)
def test_of_negative_scatters_the_lowest_corner_of_the_simplex_is_the_minimum(rng, n_views, p):
    D = rng.standard_normal(n_views)
    D[rng.integers(n_views)] = -3.0
    result = best_view_weights(D, p)
    is_distribution(result)
    for other in np.vstack([rng.dirichlet(np.full(n_views, 0.3), 40), np.eye(n_views)]):
        assert result**p @ D <= other**p @ D + 1e-12


@pytest.mark.parametrize("p", [1.0, 1.0 + 1e-9, 1.0 + 1e-12])
def test_scatters_equal_but_for_rounding_share_the_weight_where_the_least_takes_it_all(p):
    third = 0.1 + 0.2  # not 0.3
    assert third != 0.3
    np.testing.assert_allclose(best_view_weights(np.array([0.3, 7.0, third]), p), [0.5, 0.0, 0.5])
    np.testing.assert_allclose(best_view_weights(np.array([2.0, 2.0, 2.0]), p), [1 / 3] * 3)
    assert best_view_weights(np.array([1.0, 1.0 + 1e-4]), p).tolist() == [1.0, 0.0]


def test_an_exponent_next_to_one_still_tells_scatters_apart_by_their_ratio():
    # (D_2 / D_1)^(1 / (p - 1)) = (1 + 1e-9)^(1e9), which is e.
    result = best_view_weights(np.array([1.0, 1.0 + 1e-9]), 1.0 + 1e-9)
    assert result == pytest.approx(np.array([np.e, 1.0]) / (1.0 + np.e), rel=1e-5)
    assert best_view_weights(np.array([1.0, 2.0]), np.nextafter(1.0, 2.0)).tolist() == [1.0, 0.0]


def test_the_largest_exponent_leaves_little_but_equal_weights():
    result = best_view_weights(np.array([1.0, 10.0, 100.0]), LARGEST_P)
    np.testing.assert_allclose(result, [1 / 3] * 3, rtol=0.03)
    assert (np.diff(result) < 0).all()
    assert (result**LARGEST_P > 0).all()


@pytest.mark.parametrize("p", [1.0, 1.0 + 1e-9, 1.3, 2.0, LARGEST_P])
@pytest.mark.parametrize("size", [1e-300, 1e-150, 1e150, 1e300])
def test_the_size_of_the_scatters_does_not_matter(size, p):
    D = np.array([1.0, 2.0, 5.0])
    result = best_view_weights(size * D, p)
    is_distribution(result)
    np.testing.assert_allclose(result, best_view_weights(D, p), rtol=1e-6 if p < 1.1 else 1e-12, atol=1e-300)


@pytest.mark.parametrize("p", [1.0, 1.0 + 1e-9, 1.3, 2.0, LARGEST_P])
@pytest.mark.parametrize("D", [(1e-150, 1e150), (1e-300, 1.0), (1e-200, 1e-100, 1e100)])
def test_scatters_of_very_different_size_give_weights_without_overflow(D, p):
    result = best_view_weights(np.array(D), p)
    is_distribution(result)
    np.testing.assert_allclose(result, oracle.view_weights(D, p), rtol=1e-9, atol=1e-300)


@pytest.mark.parametrize("p", [1.0, 1.0 + 1e-9, 2.0, LARGEST_P])
@pytest.mark.parametrize("D", [(1e-300, 1e300), (5e-324, 1.0)])
def test_scatters_whose_ratio_is_no_number_give_weights_without_overflow(D, p):
    result = best_view_weights(np.array(D), p)
    is_distribution(result)
    np.testing.assert_allclose(result, oracle.view_weights(D, p), rtol=1e-9, atol=1e-300)


@pytest.mark.parametrize("p", [1.5, 2.0, 5.0])
def test_of_equal_negative_scatters_a_corner_is_the_minimum(p):
    D = np.array([-1.0, -1.0, 2.0])
    assert best_view_weights(D, p) ** p @ D == pytest.approx(-1.0)


# --- the exponent by resampling --------------------------------------------------------------------------------------


class Answers:
    """Labels for every exponent that agree between subsets by design: kept for stable ones, drawn anew for others.

    Each stable exponent has clusters of its own, unless ``same`` says that all have the same ones.
    """

    def __init__(self, stable, n=600, k=3, same=False):
        self.stable = stable
        self.truth = {p: (np.arange(n) // (1 if same else 2**i)) % k for i, p in enumerate(stable)}
        self.subsets = []
        self.tried = []  # by subset, in the order of trials

    def __call__(self, subset, rng):
        self.subsets.append(subset)
        self.tried.append([])
        names = rng.permutation(3)  # clusters of two subsets need not have the same numbers
        drawn = {p: rng.integers(3, size=len(subset)) for p in EXPONENTS}

        def trial(exponents):
            self.tried[-1] += exponents
            return [self.labels(p, subset, names, drawn) for p in exponents]

        return trial

    def labels(self, p, subset, names, drawn):
        return names[self.truth[p][subset]] if p in self.stable else drawn[p]


class Noisy(Answers):
    """The same clusters for all exponents, but some exponents draw the labels of a share of the samples anew."""

    def __init__(self, shares, n=3000):
        super().__init__(EXPONENTS, n=n)
        self.shares = shares

    def labels(self, p, subset, names, drawn):
        moved = np.arange(len(subset)) < self.shares.get(p, 0.0) * len(subset)
        return np.where(moved, drawn[p], subset % 3)


def rngs(seed=0):
    return [np.random.default_rng([seed, i]) for i in range(SUBSETS_OF_FEW)]


@pytest.mark.parametrize("stable", [(1.5,), (3.0,), (1.5, 3.0), (1.5, np.inf), EXPONENTS])
def test_the_largest_of_the_most_stable_exponents_is_chosen(stable):
    choice = stable_exponent(Answers(stable), np.arange(600), rngs(), 3)
    assert choice.p == stable[-1]
    np.testing.assert_array_equal(choice.exponents, EXPONENTS)
    for p, stability in zip(EXPONENTS, choice.stabilities, strict=True):
        assert stability == (1.0 if p in stable else pytest.approx(0.0, abs=0.1))


@pytest.mark.parametrize(("share", "chosen"), [(0.01, np.inf), (0.1, 3.0)])
def test_a_larger_exponent_is_taken_unless_it_is_less_stable_by_more_than_chance(share, chosen):
    # Of the samples that two subsets share a few or more have labels of chance with equal weights.
    choice = stable_exponent(Noisy({np.inf: share}), np.arange(3000), rngs(), 3)
    assert choice.p == chosen
    missing = 1.0 - choice.stabilities[-1]
    assert (0.0 < missing < 0.05) if chosen == np.inf else (missing > 0.05)


@pytest.mark.parametrize(("n", "count", "size"), [(40, 3, 28), (180, 3, 100), (200, 2, 100), (600, 2, 300)])
def test_subsets_are_distinct_samples_of_those_passed_and_more_of_few(n, count, size):
    samples = np.flatnonzero(np.arange(3 * n // 2) % 3)
    answers = Answers(EXPONENTS, n=3 * n // 2)
    stable_exponent(answers, samples, rngs(), 3)
    assert len(answers.subsets) == count
    for subset in answers.subsets:
        assert len(subset) == size
        assert (np.diff(subset) > 0).all()
        assert set(subset) <= set(samples)
    assert len({tuple(subset) for subset in answers.subsets}) == count


def test_subsets_hold_no_fewer_samples_than_clusters_and_no_more_than_their_limit():
    answers = Answers(EXPONENTS, n=9000)
    stable_exponent(answers, np.arange(10), rngs(), 9)
    assert {len(subset) for subset in answers.subsets} == {9}
    answers.subsets.clear()
    stable_exponent(answers, np.arange(9000), rngs(), 3)
    assert {len(subset) for subset in answers.subsets} == {SIZE}
    answers.subsets.clear()
    stable_exponent(answers, np.arange(9000), rngs(), 100)
    assert {len(subset) for subset in answers.subsets} == {100 * SAMPLES_A_CLUSTER}


def test_the_stability_of_three_subsets_is_the_mean_over_their_pairs():
    class Renamed(Answers):
        """The clusters of the last subset are those of no other one."""

        def labels(self, p, subset, names, drawn):
            return subset % 3 if len(self.subsets) < SUBSETS_OF_FEW else subset // 2 % 3

    answers = Renamed(EXPONENTS)
    choice = stable_exponent(answers, np.arange(FEW - 1), rngs(), 3)
    *first, last = answers.subsets
    apart = []
    for subset in first:
        both = np.intersect1d(subset, last)
        apart.append(adjusted_rand_score(both % 3, both // 2 % 3))
    np.testing.assert_allclose(choice.stabilities, np.mean([1.0, *apart]), rtol=1e-12)


@pytest.mark.parametrize("n", [60, 600])
def test_where_the_least_and_the_largest_exponent_have_the_same_clusters_no_other_is_tried(n):
    answers = Answers(EXPONENTS, n=n, same=True)
    choice = stable_exponent(answers, np.arange(n), rngs(), 3)
    assert choice.p == np.inf
    assert answers.tried == [[1.5, np.inf]] * (SUBSETS if n >= FEW else SUBSETS_OF_FEW)
    assert (choice.stabilities == 1.0).all()


@pytest.mark.parametrize(("moved", "tried"), [(1, [1.5, np.inf]), (20, [1.5, np.inf, 3.0])])
def test_clusters_are_the_same_where_they_differ_by_next_to_no_sample(moved, tried):
    class Apart(Answers):
        """Equal weights put the first samples of a subset elsewhere."""

        def labels(self, p, subset, names, drawn):
            one = subset % 3
            if np.isinf(p):
                one[:moved] = (one[:moved] + 1) % 3
            return one

    answers = Apart(EXPONENTS)
    stable_exponent(answers, np.arange(1000), rngs(), 3)
    assert answers.tried == [tried] * SUBSETS


def test_an_exponent_that_is_not_tried_has_the_stability_of_its_neighbours():
    class Halves(Answers):
        """All exponents have the same clusters on the first subset; on the second, equal weights have others."""

        def labels(self, p, subset, names, drawn):
            return (subset // 2 if np.isinf(p) and len(self.subsets) == SUBSETS else subset) % 3

    answers = Halves(EXPONENTS)
    choice = stable_exponent(answers, np.arange(600), rngs(), 3)
    assert answers.tried == [[1.5, np.inf], [1.5, np.inf, 3.0]]
    assert choice.p == 3.0
    assert choice.stabilities[:2].tolist() == [1.0, 1.0]
    assert choice.stabilities[2] < 0.5


@pytest.mark.parametrize("k", [1, 2, 7])
def test_agreement_of_subsets_is_the_adjusted_rand_index(k):
    rng = np.random.default_rng(k)
    one = rng.integers(k, size=50)
    other = np.where(rng.random(50) < 0.6, one, rng.integers(k + 2, size=50))
    assert rand_index(one, other) == pytest.approx(adjusted_rand_score(one, other), abs=1e-12)
    assert rand_index(one, (one + 1) % k) == 1.0
    assert rand_index(one[:1], other[:1]) == 1.0


def test_the_same_generators_choose_the_same_exponent_and_stabilities():
    one, other = (stable_exponent(Answers((3.0,)), np.arange(600), rngs(seed=4), 3) for _ in range(2))
    assert one.p == other.p
    np.testing.assert_array_equal(one.stabilities, other.stabilities)


def test_stability_is_measured_on_shared_samples_however_many_there_are():
    n = 2_000_000
    choice = stable_exponent(Answers((1.5, 3.0), n=n), np.arange(n), rngs(), 3)
    assert choice.p == 3.0


def test_p_equal_to_one_is_never_tried():
    assert min(EXPONENTS) > 1.0
