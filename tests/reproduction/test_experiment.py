"""How far a figure may be from the printed one: rounding, chance, and nothing else."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reproduction import Cell, Experiment, Printed, Verdict, mean_and_std
from reproduction.experiment import ERRORS, FEWEST_FOR_KURTOSIS, QUICK_RESTARTS, spread_of

SIDES = (-1.0, 1.0)

# --- tolerances ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("decimals", "allowed"), [(0, 0.5), (1, 0.05), (2, 0.005), (3, 0.0005)])
def test_an_exact_figure_may_be_off_by_half_of_its_last_digit_however_many_runs_there_are(decimals, allowed):
    printed = Printed(1485.2, decimals=decimals)
    for restarts in (1, 1000):
        assert printed.allowed(1400.0, restarts=restarts, spread=100.0) == pytest.approx(allowed)


def test_a_mean_may_be_off_by_so_many_standard_errors_of_the_difference_and_rounding():
    printed = Printed(100.0, statistic="mean", spread=2.0, runs=100)
    for restarts in (1, 4, 100, 10**6):
        expected = 0.005 + ERRORS * 2.0 * math.sqrt(1 / restarts + 1 / 100)
        assert printed.allowed(99.0, restarts=restarts) == pytest.approx(expected)
    # The printed spread counts, not ours.
    assert printed.allowed(99.0, restarts=4, spread=50.0) == printed.allowed(99.0, restarts=4)


def test_our_spread_stands_for_both_where_none_is_printed():
    silent = Printed(100.0, statistic="mean", runs=100)
    told = Printed(100.0, statistic="mean", spread=2.0, runs=100)
    assert silent.allowed(99.0, restarts=20, spread=2.0) == told.allowed(99.0, restarts=20)


@pytest.mark.parametrize("statistic", ["mean", "deviation"])
@pytest.mark.parametrize("spread", [None, math.nan, math.inf])
def test_a_spread_that_nobody_knows_excuses_nothing(statistic, spread):
    printed = Printed(100.0, statistic=statistic, runs=100)
    assert printed.allowed(100.0, restarts=100, spread=spread) == pytest.approx(0.005)
    assert printed.judge(100.01, restarts=100, spread=spread) == Verdict.DIFFERS


def test_a_share_is_a_coin_that_falls_as_often_as_both_together():
    printed = Printed(0.2, statistic="share", runs=100, decimals=3)
    together = (20 + 20 + 0.5) / (100 + 50 + 1)  # 20 of 100 runs, 20 of 50
    error = math.sqrt(together * (1 - together) * (1 / 50 + 1 / 100))
    assert printed.allowed(0.4, restarts=50) == pytest.approx(0.0005 + ERRORS * error)


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_shares_of_none_and_of_all_are_not_without_error(share):
    printed = Printed(share, statistic="share", runs=100)
    allowed = printed.allowed(share, restarts=100)
    assert 0.005 + 0.01 < allowed < 0.05  # one run of a hundred may fall otherwise, four may not
    assert printed.judge(abs(share - 0.01), restarts=100) == Verdict.AGREES
    assert printed.judge(abs(share - 0.12), restarts=100) == Verdict.DIFFERS


@pytest.mark.parametrize(("low", "high", "runs"), [(0.0, 0.12, 100), (0.01, 0.052, 500)])
def test_shares_that_only_another_method_explains_differ_whichever_is_printed(low, high, runs):
    for printed, ours in ((low, high), (high, low)):
        assert Printed(printed, statistic="share", runs=runs, decimals=3).judge(ours, restarts=runs) == Verdict.DIFFERS


def test_a_deviation_is_known_to_what_the_fourth_moment_tells():
    rng = np.random.default_rng(0)
    for values in (rng.standard_normal(500), rng.standard_t(5, 500), rng.choice([-1.0, 1.0], 500)):
        kurtosis = np.mean((values - values.mean()) ** 4) / np.var(values) ** 2
        figures = mean_and_std("ce", values)
        assert figures["ce_std_error"] == pytest.approx(math.sqrt((kurtosis - 1) / 4))
        printed = Printed(3.0, statistic="deviation", runs=500)
        error = 3.0 * figures[spread_of("ce_std")] * math.sqrt(1 / 500 + 1 / 100)
        allowed = printed.allowed(2.0, restarts=100, spread=figures["ce_std_error"])
        assert allowed == pytest.approx(0.005 + ERRORS * error)


def test_deviations_of_few_values_or_of_equal_ones_have_the_error_of_a_normal_distribution():
    few = np.arange(FEWEST_FOR_KURTOSIS - 1.0) ** 4
    for values in (few, np.full(50, 7.0), [1.0]):
        assert mean_and_std("ce", values)["ce_std_error"] == pytest.approx(math.sqrt(0.5))
    assert mean_and_std("ce", [*few, 0.0])["ce_std_error"] != pytest.approx(math.sqrt(0.5))


def test_a_short_run_is_judged_more_loosely_and_still_fails_when_it_is_far_off():
    printed = Printed(100.0, statistic="mean", spread=2.0, runs=100)  # 20 restarts allow 2.576 * 2 * sqrt(0.06) = 1.26
    verdicts = [printed.judge(101.2, restarts=restarts) for restarts in (1000, 20)]
    assert verdicts == [Verdict.DIFFERS, Verdict.AGREES]
    assert printed.judge(101.3, restarts=20) == Verdict.DIFFERS


@given(
    st.sampled_from(["mean", "share", "deviation"]),
    st.floats(0.0, 1.0),
    st.integers(1, 1000),
    st.integers(1, 1000),
    st.floats(0.0, 10.0),
)
def test_tolerances_never_fall_below_rounding_and_shrink_with_the_runs_of_either_side(
    statistic, value, runs, restarts, spread
):
    printed = Printed(value, statistic=statistic, runs=runs)
    twice = Printed(value, statistic=statistic, runs=2 * runs)
    # Of a share the coin depends on the runs too, unless both sides fall the same way.
    allowed = printed.allowed(value, restarts=restarts, spread=spread)
    assert allowed >= printed.rounding
    if statistic != "share":
        assert printed.allowed(value, restarts=2 * restarts, spread=spread) <= allowed
        assert twice.allowed(value, restarts=restarts, spread=spread) <= allowed


# --- verdicts --------------------------------------------------------------------------------------------------------

FIGURES = {
    "exact": ({"decimals": 1}, {}),
    "mean": ({"statistic": "mean", "spread": 1.0, "runs": 50}, {}),
    "share": ({"statistic": "share", "runs": 50}, {}),
    "deviation": ({"statistic": "deviation", "runs": 50}, {"spread": 0.7}),
}


def edges(printed, side, chance):
    """Two figures of ours on one side of a printed one: the last that agrees, and one a hundredth of that beyond."""
    inside, outside = 0.0, 10.0
    for _ in range(80):
        middle = (inside + outside) / 2
        agrees = abs(middle) <= printed.allowed(printed.value + side * middle, restarts=50, **chance)
        inside, outside = (middle, outside) if agrees else (inside, middle)
    return printed.value + side * inside, printed.value + side * inside * 1.01


@pytest.mark.parametrize("name", FIGURES)
@pytest.mark.parametrize("fitted", [False, True])
def test_tolerances_have_two_sides_and_better_needs_a_rule_and_fitted_an_agreement(name, fitted):
    options, chance = FIGURES[name]
    beyond = {
        "within": {-1.0: Verdict.DIFFERS, 1.0: Verdict.DIFFERS},
        "at most": {-1.0: Verdict.BETTER, 1.0: Verdict.DIFFERS},
        "at least": {-1.0: Verdict.DIFFERS, 1.0: Verdict.BETTER},
    }
    for rule, expected in beyond.items():
        printed = Printed(0.5, rule=rule, fitted=fitted, **options)
        for side in SIDES:
            inside, outside = edges(printed, side, chance)
            assert printed.judge(inside, restarts=50, **chance) == (Verdict.FITTED if fitted else Verdict.AGREES)
            assert printed.judge(outside, restarts=50, **chance) == expected[side]


def test_a_figure_on_the_edge_of_its_tolerance_is_inside():
    assert Printed(0.71, decimals=1).judge(0.76, restarts=1) == Verdict.AGREES  # 0.05000000000000004 apart
    assert Printed(0.71, decimals=1).judge(0.66, restarts=1) == Verdict.AGREES
    assert Printed(0.71, decimals=1).judge(0.7601, restarts=1) == Verdict.DIFFERS


def test_a_fitted_figure_that_differs_is_not_excused():
    assert Printed(320.17, fitted=True).judge(320.17, restarts=1) == Verdict.FITTED
    assert Printed(320.17, fitted=True).judge(319.99, restarts=1) == Verdict.DIFFERS


@pytest.mark.parametrize(
    ("value", "least", "share", "expected"),
    [
        (1.0, 0.9, 0.9, Verdict.AGREES),
        (1.0, 0.9, 0.89, Verdict.DIFFERS),
        (1.0, 10 / 12, 10 / 12, Verdict.AGREES),
        (1.0, 10 / 12, 9 / 12, Verdict.DIFFERS),
        (0.0, 0.9, 0.1, Verdict.AGREES),
        (0.0, 0.9, 1.0, Verdict.DIFFERS),
    ],
)
def test_a_claim_holds_in_nine_draws_of_ten_unless_it_says_less(value, least, share, expected):
    claim = Printed(value, statistic="claim", least=least)
    assert [claim.judge(share, restarts=restarts, spread=5.0) for restarts in (1, 500)] == [expected] * 2


@pytest.mark.parametrize("ours", [-0.01, 1.01, 50.0])
def test_a_share_beyond_none_and_all_differs(ours):
    assert Printed(float(ours > 0), statistic="share", runs=10).judge(ours, restarts=10) == Verdict.DIFFERS


@pytest.mark.parametrize("ours", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("rule", ["within", "at most", "at least"])
@pytest.mark.parametrize("statistic", ["exact", "mean", "share", "deviation", "claim"])
def test_a_figure_that_is_not_finite_always_differs(ours, rule, statistic):
    runs = 10 if statistic in ("mean", "share", "deviation") else None
    for spread in (None, 1.0, math.nan, math.inf):
        printed = Printed(1.0, statistic=statistic, runs=runs, rule=rule)
        assert printed.judge(ours, restarts=1, spread=spread) == Verdict.DIFFERS


# --- the law: two sets of runs of one method seldom differ -----------------------------------------------------------


def verdicts_of_draws(statistic, draws, runs, restarts, figure):
    """How often a figure of ``restarts`` runs differs from one of ``runs``, as print rounds it."""
    rng = np.random.default_rng(0)
    different = 0
    for _ in range(draws):
        theirs, ours = figure(rng, runs), figure(rng, restarts)
        printed = Printed(round(theirs["value"], 2), statistic=statistic, runs=runs, spread=theirs.get("spread"))
        verdict = printed.judge(ours["value"], restarts=restarts, spread=ours.get("single"))
        different += verdict == Verdict.DIFFERS
    return different / draws


def mean_with_printed_spread(rng, n):
    values = rng.normal(1500.0, 34.0, n)
    return {"value": values.mean(), "spread": round(values.std(ddof=1), 2)}


def mean_without_spread(rng, n):
    values = rng.normal(1500.0, 34.0, n)
    return {"value": values.mean(), "single": values.std(ddof=1)}


def deviation(rng, n):
    figures = mean_and_std("a", rng.normal(0.0, 34.0, n))
    return {"value": figures["a_std"], "single": figures["a_std_error"]}


def share_of(p):
    return lambda rng, n: {"value": rng.binomial(n, p) / n}


@pytest.mark.parametrize(("runs", "restarts"), [(100, 100), (500, 500), (500, 250), (500, 100)])
@pytest.mark.parametrize(
    ("statistic", "figure"),
    [
        pytest.param("mean", mean_with_printed_spread, id="mean with spread"),
        pytest.param("mean", mean_without_spread, id="mean without spread"),
        pytest.param("deviation", deviation, id="deviation"),
        *(pytest.param("share", share_of(p), id=f"share {p}") for p in (0.0, 0.05, 0.12, 0.5, 1.0)),
    ],
)
def test_about_one_figure_in_a_hundred_differs_by_chance(statistic, figure, runs, restarts):
    assert verdicts_of_draws(statistic, 2000, runs, restarts, figure) < 0.025


@pytest.mark.parametrize("figure", [mean_with_printed_spread, mean_without_spread, share_of(0.12)])
def test_of_few_runs_no_more_differ_by_chance(figure):
    statistic = "share" if figure(np.random.default_rng(0), 5).keys() == {"value"} else "mean"
    assert verdicts_of_draws(statistic, 2000, 100, 30, figure) < 0.02


def test_of_few_runs_the_fourth_moment_is_known_badly_and_somewhat_more_deviations_differ():
    assert verdicts_of_draws("deviation", 2000, 30, 30, deviation) < 0.04


def test_a_method_that_is_a_spread_off_is_told_apart_by_means_of_many_runs():
    rng = np.random.default_rng(0)
    for _ in range(200):
        theirs = rng.normal(1500.0, 34.0, 100)
        printed = Printed(round(theirs.mean(), 2), statistic="mean", runs=100, spread=round(theirs.std(ddof=1), 2))
        assert printed.judge(rng.normal(1534.0, 34.0, 100).mean(), restarts=100) == Verdict.DIFFERS


# --- declarations ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {"value": math.nan},
        {"value": math.inf},
        {"value": 1.0, "rule": "about"},
        {"value": 1.0, "statistic": "median"},
        {"value": 1.0, "runs": 100},
        {"value": 1.0, "statistic": "claim", "runs": 100},
        {"value": 1.0, "statistic": "mean"},
        {"value": 1.0, "statistic": "share"},
        {"value": 1.0, "statistic": "deviation"},
    ],
)
def test_a_printed_figure_that_cannot_be_compared_is_refused(options):
    with pytest.raises(ValueError, match=r"figure needs|must be one of|runs is required"):
        Printed(**options)


def test_options_of_declarations_go_by_name():
    with pytest.raises(TypeError):
        Printed(1.0, 0.1)
    with pytest.raises(TypeError):
        Cell("row", dict, {})


def test_ids_that_cannot_name_a_file_are_refused():
    cell = Cell("row", dict)
    for name, cells in (
        ("../up", {"a": cell}),
        ("fine", {"a/b": cell}),
        ("Upper", {"a": cell}),
        ("fine", {}),
    ):
        with pytest.raises(ValueError, match=r"cannot be an id|no cells"):
            Experiment(id=name, title="", source="", cells=cells)


def test_restarts_come_from_the_caller_then_from_the_protocol():
    cell = Cell("row", dict, restarts=100, quick_restarts=5, quick=True)
    assert cell.planned_restarts() == 100
    assert cell.planned_restarts(quick=True) == 5
    assert cell.planned_restarts(restarts=7, quick=True) == 7
    assert Cell("row", dict, restarts=3).planned_restarts(quick=True) == 3
    assert Cell("row", dict, restarts=300).planned_restarts(quick=True) == QUICK_RESTARTS
    with pytest.raises(ValueError, match="at least 1"):
        Cell("row", dict, restarts=0)


def test_mean_and_deviation_divide_by_n_minus_one_and_one_value_has_no_deviation():
    figures = mean_and_std("ce", [1.0, 3.0])
    assert figures == pytest.approx({"ce_mean": 2.0, "ce_std": math.sqrt(2), "ce_std_error": math.sqrt(0.5)})
    assert math.isnan(mean_and_std("ce", [1.0])["ce_std"])


def test_the_spread_of_a_mean_is_its_deviation_and_that_of_another_figure_is_hidden():
    assert [spread_of(name) for name in ("ce_mean", "ce_std", "nmi")] == ["ce_std", "ce_std_error", "nmi_error"]
