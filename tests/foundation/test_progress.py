"""Bars of progress: on standard error, only when asked for, and never in the way of the work."""

from types import SimpleNamespace

import pytest

from kernelweave.foundation.progress import Meter, track


def bar(verbose):
    return Meter(SimpleNamespace(verbose=verbose), "steps")


def test_a_meter_shows_what_is_counted_how_often_and_the_last_value(capsys):
    meter = bar(1)
    for value in (0.5, 0.25, 1.23456e-7):
        meter(value)
    meter.close()
    out, err = capsys.readouterr()
    assert out == ""
    last = err.split("\r")[-1]
    assert last.startswith("steps: 3it")
    assert "1.23e-07" in last


@pytest.mark.parametrize("value", [1.0, 0.0, -3.5, float("inf"), float("nan"), 7])
def test_a_meter_shows_any_number(value, capsys):
    meter = bar(1)
    meter(value)
    meter.close()
    assert f"{value:.3g}" in capsys.readouterr().err


@pytest.mark.parametrize("estimator", [SimpleNamespace(verbose=0), SimpleNamespace(verbose=False), SimpleNamespace()])
def test_a_meter_nobody_asked_for_is_silent(estimator, capsys):
    meter = Meter(estimator, "steps")
    for _ in range(3):
        meter(0.1)
    meter.close()
    assert capsys.readouterr() == ("", "")


def test_a_meter_can_be_closed_without_a_step_and_twice(capsys):
    meter = bar(1)
    meter.close()
    meter.close()
    assert "steps: 0it" in capsys.readouterr().err


def test_a_meter_returns_nothing_so_that_it_can_stand_where_a_function_is_called_back():
    meter = bar(0)
    assert meter(0.1) is None
    meter.close()


def test_tasks_are_yielded_in_order_with_a_bar_of_known_length(capsys):
    result = list(track(SimpleNamespace(verbose=1), iter("abc"), total=3, what="starts"))
    assert result == ["a", "b", "c"]
    out, err = capsys.readouterr()
    assert out == ""
    assert "starts" in err
    assert "3/3" in err
    assert list(track(SimpleNamespace(verbose=0), iter("ab"), total=2, what="starts")) == ["a", "b"]
    assert capsys.readouterr() == ("", "")
