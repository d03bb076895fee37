import math

import pytest

from reproduction import Cell, Experiment, Printed, Verdict, mean_and_std


@pytest.mark.parametrize(
    ("ours", "rule", "expected"),
    [
        (0.734, "within", Verdict.MATCH),  # 0.734 - 0.714 is 0.02000000000000002 in floating point
        (0.694, "within", Verdict.MATCH),
        (0.7341, "within", Verdict.DIFFERS),
        (0.6939, "within", Verdict.DIFFERS),
        (0.694, "at most", Verdict.MATCH),
        (0.6939, "at most", Verdict.BETTER),
        (0.7341, "at most", Verdict.DIFFERS),
        (0.7341, "at least", Verdict.BETTER),
        (0.6939, "at least", Verdict.DIFFERS),
    ],
)
def test_a_figure_on_the_edge_of_its_tolerance_is_inside_and_one_beyond_is_outside(ours, rule, expected):
    assert Printed(0.714, 0.02, rule=rule).judge(ours, restarts=1) == expected


@pytest.mark.parametrize("ours", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("rule", ["within", "at most", "at least"])
def test_a_figure_that_is_not_finite_always_differs(ours, rule):
    assert Printed(1.0, 0.5, rule=rule).judge(ours, restarts=1) == Verdict.DIFFERS


def test_a_relative_tolerance_is_a_fraction_of_the_size_of_the_value():
    assert Printed(-200.0, 0.01, relative=True).allowed(1) == pytest.approx(2.0)


def test_a_tolerance_widens_with_the_sampling_error_and_never_below_the_declared_one():
    printed = Printed(100.0, 1.0, deviation=2.0, runs=100)
    assert printed.allowed(4) == pytest.approx(3 * 2.0 * math.sqrt(1 / 4 + 1 / 100))
    assert printed.allowed(10**6) == 1.0  # the error of the printed mean, 0.6, is below it


def test_a_short_run_is_judged_more_loosely_and_still_fails_when_it_is_far_off():
    printed = Printed(100.0, 1.0, deviation=2.0, runs=100)  # 20 restarts allow 3 * 2 * sqrt(0.06) = 1.47
    verdicts = [printed.judge(101.4, restarts=restarts) for restarts in (1000, 20)]
    assert verdicts == [Verdict.DIFFERS, Verdict.MATCH]
    assert printed.judge(101.5, restarts=20) == Verdict.DIFFERS


def test_the_best_of_many_starts_is_not_held_against_fewer_but_counts_when_reached():
    best = Printed(10.0, 0.1, rule="at most", min_restarts=100)
    result = [best.judge(value, restarts=50) for value in (11.0, 10.05, 9.0)]
    assert result == [Verdict.TOO_FEW, Verdict.MATCH, Verdict.BETTER]
    assert best.judge(11.0, restarts=100) == Verdict.DIFFERS


@pytest.mark.parametrize(
    "options",
    [
        {"value": math.nan, "tolerance": 1.0},
        {"value": 1.0, "tolerance": -0.1},
        {"value": 1.0, "tolerance": 0.1, "rule": "about"},
        {"value": 1.0, "tolerance": 0.1, "deviation": 2.0},
        {"value": 1.0, "tolerance": 0.1, "runs": 100},
    ],
)
def test_a_printed_figure_that_cannot_be_compared_is_refused(options):
    with pytest.raises(ValueError, match=r"figure needs|is none of|belong together"):
        Printed(**options)


def test_options_of_declarations_go_by_name():
    with pytest.raises(TypeError):
        Printed(1.0, 0.1, True)
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
    with pytest.raises(ValueError, match="at least 1"):
        Cell("row", dict, restarts=0)


def test_mean_and_deviation_divide_by_n_minus_one_and_one_value_has_no_deviation():
    assert mean_and_std("ce", [1.0, 3.0]) == {"ce_mean": 2.0, "ce_std": pytest.approx(math.sqrt(2))}
    assert math.isnan(mean_and_std("ce", [1.0])["ce_std"])
