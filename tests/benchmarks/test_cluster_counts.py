import json

import numpy as np
import pytest

from benchmarks import cluster_count_cases as known
from benchmarks import cluster_counts as bench

NULL = next(iter(known.RECIPES["null"]))


def record(truth=4, answer=4, confidence="high", warnings=(), expected=(), group="synthetic", error=""):
    return bench.Record(group, "a case", 0, truth, answer, confidence, 1.0, list(warnings), list(expected), error)


def one_cluster(case):
    return bench.Answer(1, "none")


def refuse(case):
    raise AssertionError("this case was answered before")


@pytest.mark.parametrize(
    ("truth", "answer", "near"),
    [
        (4, 4, True),
        (4, 5, True),
        (4, 6, False),
        (10, 12, True),
        (10, 13, False),
        (2, 1, False),
        (1, 2, False),
        (1, 0, False),
    ],
)
def test_near_is_within_one_or_a_fifth_but_never_clusters_against_none(truth, answer, near):
    assert record(truth, answer).near == near


def test_an_open_number_is_neither_hit_nor_near():
    open_case = record(truth=None)
    assert not open_case.hit
    assert not open_case.near
    assert bench.summary([open_case])["hits"] == "-"


@pytest.mark.parametrize(
    ("sentence", "remarks"),
    [
        ("view 3 shows no groups and does not support the clusters", [(known.NO_GROUPS, 3)]),
        ("'view 2' has groups of its own that contradict the clusters", [(known.OWN_GROUPS, 2)]),
        ("the clusters are those of view 1 alone", [(known.ONE_VIEW, 1)]),
        ("view 2 alone has groups (about 4), but not together with the others", [(known.NOT_TOGETHER, 2)]),
        ("each view alone has groups, not together", [(known.NOT_TOGETHER, bench.ANY_VIEW)]),
        ("the smallest cluster holds 5 of 300 samples", []),
    ],
)
def test_sentences_are_read_by_kind_and_view(sentence, remarks):
    assert bench.remarks_of([sentence]) == remarks


def test_the_main_warning_must_name_a_right_view_and_true_ones_beside_it_are_welcome():
    expected = [[known.ONE_VIEW, 1], [known.NO_GROUPS, 2]]
    both = record(warnings=["the clusters are those of view 1 alone", "view 2 shows no groups"], expected=expected)
    other = record(warnings=["the clusters are those of view 2 alone"], expected=expected)
    assert bench.warnings_of(both) == {"found": True, "missed": False, "untrue": 0}
    assert bench.warnings_of(other) == {"found": False, "missed": True, "untrue": 1}


def test_the_summary_counts_hits_false_structure_and_confidence():
    records = [record(), record(answer=5, confidence="low"), record(truth=1, answer=3), record(truth=1, answer=1)]
    figures = bench.summary(records)
    assert figures["hits"] == "2 of 4"
    assert figures["hits and near"] == "3 of 4"
    assert figures["false structure"] == "1 of 2"
    assert figures["high and right"] == "2 of 3"


def test_answers_in_the_file_are_not_asked_for_again(tmp_path):
    path = tmp_path / "answers.json"
    tasks = [("null", NULL, 0)]
    first = bench.measure(tasks, one_cluster, path=path, rule="one")
    again = bench.measure(tasks, refuse, path=path, rule="one")
    assert first == again
    assert first[0].hit


def test_a_file_of_another_rule_is_refused(tmp_path):
    path = tmp_path / "answers.json"
    bench.measure([("null", NULL, 0)], one_cluster, path=path, rule="one")
    with pytest.raises(SystemExit, match="answers of one, not of two"):
        bench.measure([("null", NULL, 0)], refuse, path=path, rule="two")


def test_a_failure_is_kept_with_its_reason_and_tried_again(tmp_path):
    path = tmp_path / "answers.json"
    (failed,) = bench.measure([("null", NULL, 0)], refuse, path=path, rule="one")
    assert failed.error == "AssertionError: this case was answered before"
    assert bench.summary([failed])["failed"] == 1
    assert json.loads(path.read_text())["rule"] == "one"
    (mended,) = bench.measure([("null", NULL, 0)], one_cluster, path=path, rule="one")
    assert mended.hit


def test_every_group_has_tasks_that_can_be_made():
    for group in ("synthetic", "null", "graph", "warnings", "omics", "noise"):
        task = bench.tasks_of(group, seed=5)[-1]
        assert bench.make(*task).group == group


def test_the_short_form_takes_null_graphs_too():
    names = [name for _, name, _ in bench.spread(bench.tasks_of("graph"), 3)]
    assert sum("k=1" in name for name in names) == 1


def test_tables_have_a_line_per_case():
    table = bench.case_table([record(), record(answer=9), record(truth=None)])
    assert [line.split(" | ")[-1].strip(" |") for line in table.splitlines()[2:]] == ["yes", "NO", "open"]


def test_real_sets_hold_no_missing_value_and_no_view_made_from_labels(tmp_path, monkeypatch):
    X = np.array([[0.0, 1.0], [np.nan, 2.0], [3.0, 4.0], [5.0, 6.0]])
    y = np.array([0, 1, 0, 2])
    np.savez(tmp_path / "small.npz", X=X, y=y)
    np.savez(tmp_path / "unlabelled.npz", X=X)
    np.savez(tmp_path / "mnist4.npz", view_0=X, view_1=X[:, :1], view_names=["iso30", "lda9"], y=y)
    monkeypatch.setenv("KERNELWEAVE_DATA", str(tmp_path))
    cases = {case.name: case for case in known.real_cases()}
    assert set(cases) == {"small", "mnist4"}
    assert cases["small"].labels.tolist() == [0, 0, 2]
    assert cases["small"].n_clusters == 2
    assert [view.shape for view in cases["mnist4"].views] == [(3, 2)]
