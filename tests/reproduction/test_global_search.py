import pytest

from reproduction import Verdict, catalogue, run_experiment
from reproduction.experiments.global_search import share_of_rings


@pytest.mark.parametrize(
    ("labels", "share"),
    [
        ([5, 5, 3, 3, 4, 4], 1.0),
        ([0, 0, 1, 1, 1, 1], 1 / 3),  # the last two share a cluster
        ([0, 0, 1, 2, 2, 2], 1 / 3),  # the second is cut, a piece goes to the third
        ([0, 1, 0, 1, 0, 1], 0.0),
    ],
)
def test_a_ring_is_found_when_its_points_and_no_others_form_a_cluster(labels, share):
    assert share_of_rings([0, 0, 1, 1, 2, 2], labels) == pytest.approx(share)


def test_every_search_parts_the_two_rings_and_random_starts_seldom_do():
    result = run_experiment(catalogue()["msc-5.1-two-rings"])
    assert set(result.verdicts) == {Verdict.MATCH, Verdict.NO_FIGURE}
    figures = {cell.cell: {figure.metric: figure.ours for figure in cell.figures} for cell in result.cells}
    assert [figures[how]["rings_found"] for how in ("exact", "exemplars", "fast")] == [1.0, 1.0, 1.0]
    assert figures["random-points"]["runs_correct"] < 50
    assert figures["random-labels"]["runs_correct"] < 50
