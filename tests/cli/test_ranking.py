import numpy as np
import pytest

from kernelweave.cli.ranking import Standing, in_order, standings, verdict

RNG = np.random.default_rng(0)
Y = np.repeat([0, 1, 2], 40)
X = np.array([[0.0, 0.0], [8.0, 0.0], [0.0, 8.0]])[Y] + RNG.normal(size=(120, 2))


def test_clusters_that_others_agree_with_and_that_are_clear_come_first():
    random = RNG.integers(0, 3, 120)
    shifted = np.where(np.arange(120) % 15 == 0, (Y + 1) % 3, Y)
    found = standings([random, shifted, Y], X, "table", 3, 0)
    assert in_order(found) == [2, 1, 0]
    assert found[0].agreement == pytest.approx(0.0, abs=0.05)
    assert found[0].clearness < found[1].clearness < found[2].clearness
    assert found[2].clearness > 0


def test_one_method_agrees_with_nobody():
    found = standings([Y], X, "table", 3, 0)
    assert np.isnan(found[0].agreement)
    assert verdict(["alone"], found) == ""


@pytest.mark.parametrize(
    ("found", "sentence"),
    [
        ([(0.9, 1.0), (0.5, 0.5)], "a comes first: "),
        ([(0.9, 1.0), (0.89, 0.5)], "No clear winner between a and b."),
        ([(0.9, 0.5), (0.5, 1.0)], "No clear winner between a and b."),
        ([(0.9, 1.0), (0.9, 1.0), (0.9, 1.0)], "No clear winner between a, b and c."),
        ([(0.1, 1.0), (0.05, 0.1)], "No clear winner: the methods hardly agree"),
    ],
)
def test_the_sentence_says_when_nothing_decides(found, sentence):
    standing = [Standing(*each) for each in found]
    assert verdict(["a", "b", "c"][: len(found)], standing).startswith(sentence)
