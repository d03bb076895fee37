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
    verdicts = {cell.cell: {figure.metric: figure.verdict for figure in cell.figures} for cell in result.cells}
    searches = ("exact", "exemplars", "fast")
    assert {verdicts[how]["rings_found"] for how in searches} == {Verdict.FITTED}
    assert not {Verdict.AGREES, Verdict.BETTER} & set(result.verdicts)  # the geometry is ours, made for these figures
    figures = {cell.cell: {figure.metric: figure.ours for figure in cell.figures} for cell in result.cells}
    assert [figures[how]["ce"] for how in searches] == pytest.approx([320.17] * 3, abs=0.5)
    assert [figures[f"random-{drawn}"]["ce_mean"] for drawn in ("points", "labels")] == pytest.approx(
        [334.4] * 2, rel=0.02
    )
    assert [figures[how]["rings_found"] for how in searches] == [1.0, 1.0, 1.0]
    assert figures["random-points"]["runs_correct"] < 50
    assert figures["random-labels"]["runs_correct"] < 50


@pytest.mark.parametrize(
    ("rings", "printed"),
    [("two", (334.4, 6.4, 320.17, 351.05, 0.12)), ("ten", (1107.97, 177.24, 981.53, 1765.29, 0.0))],
)
def test_all_that_table_5_1_prints_of_random_starts_is_declared(rings, printed):
    columns = ("ce_mean", "ce_std", "ce_min", "ce_max", "share_correct")
    statistics = ("mean", "deviation", "exact", "exact", "share")
    cells = catalogue()[f"msc-5.1-{rings}-rings"].cells
    for name in ("random-points", "random-labels"):
        declared = cells[name].printed
        assert {column: figure.value for column, figure in declared.items()} == dict(zip(columns, printed, strict=True))
        assert tuple(figure.statistic for figure in declared.values()) == statistics
        assert declared["ce_mean"].spread == declared["ce_std"].value
        assert {declared[column].runs for column in ("ce_mean", "ce_std", "share_correct")} == {100}
        assert all(figure.fitted for figure in declared.values())
