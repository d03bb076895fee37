"""The scoreboard: statistics by hand, fits kept and not made again, failures ranked last, the page."""

import inspect
import json
import math
import os
import signal
import threading
import time
from dataclasses import replace
from functools import partial
from xml.etree import ElementTree

import numpy as np
import pytest
from scipy import sparse, stats

import kernelweave
import kernelweave.cli
from kernelweave.cli.names import find_method
from kernelweave.foundation.errors import DataError, ParameterError
from reproduction.scoreboard import adapters, methods, plan
from reproduction.scoreboard.board import build_board, shortfalls
from reproduction.scoreboard.data_sets import load_set, sizes
from reproduction.scoreboard.fits import Job, Outcome, peak_mib, run_fit
from reproduction.scoreboard.methods import METHODS, Method, select_methods, why_missing
from reproduction.scoreboard.page import page_text
from reproduction.scoreboard.ranking import alike, critical_difference, friedman, ranks
from reproduction.scoreboard.records import Record, append_record, cut_unfinished_line, read_records

# Demsar 2006, table 6: area under the curve of four kinds of decision trees on 14 sets. Two scores on the set Voting
# are printed the same and ranked apart.
DEMSAR = np.array(
    [
        [0.763, 0.768, 0.771, 0.798],
        [0.599, 0.591, 0.590, 0.569],
        [0.954, 0.971, 0.968, 0.967],
        [0.628, 0.661, 0.654, 0.657],
        [0.882, 0.888, 0.886, 0.898],
        [0.936, 0.931, 0.916, 0.931],
        [0.661, 0.668, 0.609, 0.685],
        [0.583, 0.583, 0.563, 0.625],
        [0.775, 0.838, 0.866, 0.875],
        [1.000, 1.000, 1.000, 1.000],
        [0.940, 0.962, 0.965, 0.962],
        [0.619, 0.666, 0.614, 0.669],
        [0.972, 0.981, 0.975, 0.9749],
        [0.957, 0.978, 0.946, 0.970],
    ]
)


# --- statistics -------------------------------------------------------------------------------------------------------


def test_equal_scores_share_the_mean_of_their_ranks_and_failures_are_last():
    scores = np.array([[0.9, 0.5, 0.7], [0.4, 0.4, 0.1], [-math.inf, 0.2, -math.inf]])
    assert ranks(scores).tolist() == [[1, 3, 2], [1.5, 1.5, 3], [2.5, 1, 2.5]]


def test_mean_ranks_are_those_that_demsar_prints():
    assert ranks(DEMSAR).mean(axis=0).round(3).tolist() == [3.143, 2.0, 2.893, 1.964]


def test_the_critical_difference_is_the_one_that_demsar_prints():
    assert critical_difference(4, 14) == pytest.approx(1.25, abs=0.005)
    assert critical_difference(4, 14, alpha=0.1) == pytest.approx(1.12, abs=0.005)


@pytest.mark.parametrize(("k", "q"), [(2, 1.960), (3, 2.343), (4, 2.569), (5, 2.728), (7, 2.949), (10, 3.164)])
def test_quantiles_are_those_of_demsars_table(k, q):
    assert critical_difference(k, 6) / math.sqrt(k * (k + 1) / 36) == pytest.approx(q, abs=0.001)


@pytest.mark.parametrize("digits", [16, 2], ids=["no ties", "ties"])
def test_the_friedman_statistic_is_that_of_scipy(digits):
    scores = np.random.default_rng(0).random((12, 5)).round(digits)
    scores[:, 1] += 0.3
    scores[3, 2:] = scores[3, 2]
    expected = stats.friedmanchisquare(*scores.T)
    test = friedman(ranks(scores))
    assert test.statistic == pytest.approx(expected.statistic)
    assert test.p_value == pytest.approx(expected.pvalue)


@pytest.mark.parametrize("scores", [np.ones((5, 3)), np.ones((1, 3)), np.ones((5, 1))])
def test_there_is_no_friedman_test_where_nothing_can_differ(scores):
    assert friedman(ranks(scores)) is None


def test_there_is_no_critical_difference_of_one_method_or_no_set():
    assert math.isnan(critical_difference(1, 5))
    assert math.isnan(critical_difference(3, 0))


def test_methods_that_do_not_differ_are_joined_by_the_longest_runs():
    assert alike([1.0, 2.0, 2.5, 4.0], 1.6) == [(0, 2), (2, 3)]
    assert alike([1.0, 2.0], 0.5) == []


# --- the board --------------------------------------------------------------------------------------------------------


def record(method, on, nmi=None, *, seed=0, error="", library="kernelweave", n_samples=100, **changes):
    """Return a record, a failed one where there is an error."""
    made = Record(
        method=method,
        library=library,
        library_version="1.0",
        set=on,
        seed=seed,
        n_samples=n_samples,
        n_views=2,
        n_clusters=3,
        status="failed" if error else "ok",
        nmi=nmi,
        ari=nmi,
        acc=nmi,
        n_found=None if error else 3,
        seconds=None if error else 2.0,
        memory_mib=None if error else 200.0,
        error=error,
        limit_s=300.0,
        version="0.1",
        commit="abc1234",
        finished="2026-01-02T03:04:05+00:00",
    )
    return replace(made, **changes)


def three_methods():
    """Return records of three methods on two sets: one is best on one and far behind on the other, one fails."""
    return [
        record("multi-view-spectral", "apples", 0.80),
        record("multi-view-spectral", "pears", 0.30),
        record("joined-kmeans", "apples", 0.8004, library="scikit-learn"),
        record("joined-kmeans", "pears", 0.60, library="scikit-learn"),
        record("imml-nemo", "apples", error="ValueError: no | bars", library="imml"),
        record("imml-nemo", "pears", 0.10, library="imml"),
    ]


def test_a_method_that_fails_is_ranked_last_and_counts_as_zero():
    rows = {row.method: row for row in build_board(three_methods()).rows}
    assert rows["imml-nemo"].rank == 3.0
    assert rows["imml-nemo"].nmi == pytest.approx(0.05)
    assert (rows["imml-nemo"].n_failed, rows["imml-nemo"].seconds) == (1, 2.0)


def test_scores_that_agree_to_three_decimals_are_tied():
    rows = {row.method: row for row in build_board(three_methods()).rows}
    assert rows["multi-view-spectral"].rank == (1.5 + 2) / 2
    assert rows["joined-kmeans"].rank == (1.5 + 1) / 2
    assert [rows[name].n_best for name in ("multi-view-spectral", "joined-kmeans", "imml-nemo")] == [1, 2, 0]


def test_scores_are_means_over_seeds_and_one_failed_seed_is_a_failure():
    some = [record("a", "apples", 0.2), record("a", "apples", 0.4, seed=1)]
    assert build_board(some).cells["a", "apples"].nmi == pytest.approx(0.3)
    board = build_board([*some, record("a", "apples", seed=2, error="TimeLimit: late")])
    assert board.cells["a", "apples"].error == "TimeLimit: late"


def test_sets_that_a_method_lacks_are_in_no_rank():
    board = build_board([*three_methods(), record("imml-nemo", "plums", 0.5, library="imml")])
    assert (tuple(board.sets), board.ranked_sets) == (("apples", "pears", "plums"), ("apples", "pears"))


def test_a_board_without_a_finished_set_has_no_ranks():
    board = build_board([record("a", "apples", 0.5), record("b", "pears", 0.5)])
    assert board.ranked_sets == ()
    assert all(math.isnan(row.rank) for row in board.rows)


def test_nobody_is_best_where_all_fail():
    board = build_board([record("a", "apples", error="E: x"), record("b", "apples", error="E: x")])
    assert [(row.rank, row.n_best) for row in board.rows] == [(1.5, 0), (1.5, 0)]


def test_of_a_set_only_the_records_on_most_samples_count():
    board = build_board([record("a", "apples", 0.9, n_samples=50), record("a", "apples", 0.5, n_samples=100)])
    assert board.rows[0].nmi == 0.5


def test_sets_far_below_the_best_are_found_with_both_figures():
    (only,) = shortfalls(build_board(three_methods()), "multi-view-spectral", 0.05)
    assert (only.set, only.nmi, only.best, only.best_method) == ("pears", 0.30, 0.60, "joined-kmeans")


# --- records ----------------------------------------------------------------------------------------------------------


def test_records_are_read_as_they_were_written_and_the_last_of_a_key_counts(tmp_path):
    file = tmp_path / "results.jsonl"
    for each in (record("a", "apples", 0.5), record("b", "äpfel", error="E: x"), record("a", "apples", 0.7)):
        append_record(file, each)
    assert list(read_records(file).values()) == [record("a", "apples", 0.7), record("b", "äpfel", error="E: x")]
    assert read_records(tmp_path / "none") == {}


def test_a_line_that_a_killed_run_left_unfinished_is_cut_off(tmp_path):
    file = tmp_path / "results.jsonl"
    append_record(file, record("a", "apples", 0.5))
    with file.open("a") as open_file:
        open_file.write('{"method": "b", "se')
    assert len(read_records(file)) == 1
    cut_unfinished_line(file)
    append_record(file, record("b", "apples", 0.5))
    assert len(read_records(file)) == 2


def test_a_line_that_is_no_record_is_named(tmp_path):
    file = tmp_path / "results.jsonl"
    file.write_text("\n[1]\n")
    with pytest.raises(DataError, match=r"results.jsonl, line 2: this is not a record"):
        read_records(file)


# --- methods ----------------------------------------------------------------------------------------------------------


def test_every_multi_view_estimator_of_the_library_has_a_row():
    named = {each.run.keywords.get("method") for each in METHODS if each.run.__class__ is partial}
    covered = {find_method(name).estimator for name in named if name} | {each.estimator for each in METHODS}
    public = {name: getattr(kernelweave, name) for name in kernelweave.__all__}
    estimators = {name: value for name, value in public.items() if hasattr(value, "fit_predict")}
    assert {name for name, cls in estimators.items() if "views" in inspect.signature(cls).parameters} <= covered


def test_every_method_has_a_name_of_its_own_and_a_sentence_on_its_setting():
    assert len({each.name for each in METHODS}) == len(METHODS)
    for each in METHODS:
        assert each.setting.endswith(".")
        assert each.library in methods.MODULES


def test_methods_are_chosen_by_name_pattern_or_library():
    assert [each.name for each in select_methods("joined-kmeans, imml-nemo-10*")] == [
        "joined-kmeans",
        "imml-nemo-10",
        "imml-nemo-10-raw",
    ]
    assert {each.library for each in select_methods("snfpy,scikit-learn")} == {"snfpy", "scikit-learn"}
    assert len(select_methods("")) == len(METHODS)
    with pytest.raises(ParameterError, match="'nonsense'"):
        select_methods("joined-kmeans,nonsense")


def test_a_method_that_is_not_here_says_why():
    assert why_missing(Method("x", "no_such_library", print, "None.")) == "no_such_library is not installed"
    missing = Method("x", "kernelweave", print, "None.", estimator="NoSuchClass")
    assert why_missing(missing) == "this version of kernelweave has no NoSuchClass"
    assert why_missing(Method("x", "kernelweave", print, "None.", estimator="KernelKMeans")) == ""


def test_joined_columns_are_standardised_and_stay_sparse_where_a_view_is():
    dense = np.array([[1.0, 4.0], [3.0, 4.0], [5.0, 4.0]])
    thin = sparse.csr_array([[0.0, 3.0], [4.0, 0.0], [0.0, 0.0]])
    assert adapters.joined([dense, dense[:, :1]]).tolist() == [[-1, 0, -1], [0, 0, 0], [1, 0, 1]]
    assert adapters.joined([dense, thin]).toarray()[:, 2:].tolist() == [[0, 1], [1, 0], [0, 0]]


# --- fits and the command ---------------------------------------------------------------------------------------------


def hang(views, n_clusters, seed):
    if len(views[0]) != 40:  # the run on made-up samples
        time.sleep(60)


def die(views, n_clusters, seed):
    os.kill(os.getpid(), signal.SIGKILL)


def too_few_labels(views, n_clusters, seed):
    return [0, 1]


GOOD = Method("good", "scikit-learn", adapters.joined_kmeans, "Ten starts.")
BROKEN = Method("broken", "kernelweave", partial(adapters.from_catalogue, method="nonsense"), "None.")
ABSENT = Method("absent", "no_such_library", adapters.joined_kmeans, "None.")


@pytest.fixture
def data_dir(tmp_path, monkeypatch):
    """Make a folder with two sets of two views, and one of a single table."""
    folder = tmp_path / "data"
    folder.mkdir()
    rng = np.random.default_rng(0)
    for name, n in (("small", 60), ("large", 90)):
        y = np.arange(n) % 3
        views = {f"view_{v}": 8.0 * np.eye(3)[y] + rng.random((n, 3)) for v in range(2)}
        np.savez(folder / f"{name}.npz", y=y, **views)
    np.savez(folder / "table.npz", X=np.ones((5, 2)), y=np.zeros(5))
    monkeypatch.setenv("KERNELWEAVE_DATA", str(folder))
    return folder


@pytest.fixture
def toys(monkeypatch):
    monkeypatch.setattr(methods, "METHODS", (GOOD, BROKEN, ABSENT))


@pytest.fixture
def run(capsys, tmp_path, monkeypatch):
    """Run the command in an empty folder; return exit code, standard output and the lines of standard error."""
    monkeypatch.chdir(tmp_path)

    def start(*arguments):
        code = kernelweave.cli.main(["scoreboard", *map(str, arguments)])
        captured = capsys.readouterr()
        return code, captured.out, captured.err.splitlines()

    return start


def lines_of(file):
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def test_fits_are_kept_one_line_each_and_a_second_run_skips_them(run, toys, data_dir, tmp_path):
    code, out, err = run("--seeds", "1", "--methods", "good")
    assert code == 0
    assert "good" in out
    assert [line.split(":")[0] for line in err] == ["1/2 small, good, seed 0", "2/2 large, good, seed 0"]
    file = tmp_path / "scoreboard.jsonl"
    kept = lines_of(file)
    assert [(each["set"], each["seed"], each["n_clusters"], each["nmi"]) for each in kept] == [
        ("small", 0, 3, 1.0),
        ("large", 0, 3, 1.0),
    ]
    assert all(each["seconds"] > 0 and each["memory_mib"] > 10 and each["version"] for each in kept)
    assert {each["commit"] for each in kept} == {plan.checkout_commit()}
    assert run("--seeds", "1", "--methods", "good")[2] == []
    assert run("--seeds", "2", "--methods", "good", "--sets", "small")[2][0].startswith("1/1 small, good, seed 1")
    assert len(lines_of(file)) == 3


def test_a_failing_method_is_kept_reported_and_ranked_last_and_one_that_is_not_here_is_named(
    run, toys, data_dir, tmp_path
):
    results = tmp_path / "other.jsonl"
    options = ("--seeds", "1", "--sets", "small", "--results", results)
    code, out, err = run(*options)
    assert code == 3
    assert err[0] == "kernelweave scoreboard: skipped absent: no_such_library is not installed."
    assert err[-1] == "kernelweave scoreboard: 1 of 2 fits failed; they are kept and ranked last."
    assert "small, broken, seed 0: failed, LookupError: The command line has no method 'nonsense'." in err[2]
    assert out.index("good") < out.index("broken")
    assert [each["status"] for each in lines_of(results)] == ["ok", "failed"]
    assert run(*options)[0] == 0  # nothing was left to do
    assert len(run(*options, "--retry-failed")[2]) == 3
    assert len(run(*options, "--force", "--jobs", "2")[2]) == 4


def test_larger_sets_are_drawn_down_to_the_limit_and_kept_apart(run, toys, data_dir, tmp_path):
    run("--seeds", "1", "--methods", "good", "--limit-samples", "60")
    assert [each["n_samples"] for each in lines_of(tmp_path / "scoreboard.jsonl")] == [60, 60]
    assert len(run("--seeds", "1", "--methods", "good")[2]) == 1
    assert [(size.name, size.n_samples) for size in sizes(["large", "small"], 80)] == [("small", 60), ("large", 80)]


@pytest.mark.parametrize(
    ("method", "reason"),
    [
        (hang, "TimeLimit: no result within 0.5 s"),
        pytest.param(
            die,
            "Killed: the system ended the process, which it does where memory is short",
            marks=pytest.mark.skipif(os.name == "nt", reason="there are no signals"),
        ),
        (too_few_labels, "ValueError: the labels have shape (2,) for 60 samples"),
    ],
)
def test_a_fit_that_gives_no_labels_says_why(method, reason, data_dir):
    job = Job(Method("x", "kernelweave", method, "None."), "small", 0, 5000, str(data_dir))
    assert run_fit(job, 0.5, threading.Event()) == Outcome(reason)


def test_a_run_that_is_stopped_keeps_what_is_done_and_nothing_of_what_is_under_way(toys, data_dir, tmp_path):
    slow = Method("slow", "kernelweave", hang, "None.")
    tasks = plan.plan([GOOD, slow], sizes(["small"], 5000), 1, 5000)

    def stop(_):
        raise KeyboardInterrupt

    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        plan.run_tasks(tasks, tmp_path / "results.jsonl", limit_s=50, jobs=2, on_record=stop)
    assert time.monotonic() - begun < 30
    assert [key[0] for key in read_records(tmp_path / "results.jsonl")] == ["good"]


def test_a_set_is_read_with_its_rows_in_the_order_of_the_seed(data_dir):
    stored = np.load(data_dir / "large.npz")
    first = load_set("large", 5000, seed=0)
    second = load_set("large", 5000, seed=1)
    assert (first.n_samples, first.n_clusters, len(first.views)) == (90, 3, 2)
    assert first.views[0].tolist() != second.views[0].tolist()
    for data in (first, second):
        rows = [stored["view_0"].tolist().index(row) for row in data.views[0].tolist()]
        assert sorted(rows) == list(range(90))
        assert data.views[1].tolist() == stored["view_1"][rows].tolist()
        assert data.target.tolist() == stored["y"][rows].tolist()


def test_the_rows_that_are_kept_of_a_larger_set_are_the_same_for_all_seeds(data_dir):
    kept = [sorted(load_set("large", 60, seed=seed).views[0].tolist()) for seed in (0, 1)]
    assert kept[0] == kept[1]
    assert len(kept[0]) == 60


def test_a_set_of_one_table_is_refused(data_dir):
    with pytest.raises(DataError, match="'table' is not one of several views"):
        load_set("table", 5000)


def test_memory_is_that_of_this_process():
    assert 10 < peak_mib() < 100_000


def test_the_list_needs_no_data(run, monkeypatch, tmp_path):
    monkeypatch.delenv("KERNELWEAVE_DATA", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    code, out, err = run("--list")
    assert (code, err) == (0, [])
    assert all(each.name in out for each in METHODS)
    assert "KERNELWEAVE_DATA" in out


def test_the_list_shows_the_sets(run, data_dir):
    out = run("--list", "--methods", "joined-kmeans")[1]
    assert "small" in out
    assert "table" not in out
    assert "imml" not in out


def test_the_help_explains_the_exit_codes(run):
    code, out, _ = run("--help")
    assert code == 0
    assert "Exit code: 0" in out


# What typer finds, in its words.
USAGE = [["--seeds", "0"], ["--time-limit", "0"], ["--limit-samples", "2"], ["--unknown"], ["word"]]


@pytest.mark.parametrize(
    "arguments",
    [
        ["--methods", "nonsense"],
        ["--methods", "absent"],
        ["--sets", "nonsense"],
        ["--sets", "table"],
        ["--jobs", "0"],
        ["--results", "no/such/folder/file"],
        ["--results", "data"],
        ["--list", "--write-page"],
        ["--write-page"],
        *USAGE,
    ],
    ids=" ".join,
)
def test_bad_input_gives_a_sentence_exit_code_two_and_writes_nothing(run, toys, data_dir, tmp_path, arguments):
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert err[-1].startswith("kernelweave")
    assert err[-1].endswith(".") or arguments in USAGE
    assert all("skipped" in line for line in err[:-1])
    assert [each.name for each in tmp_path.iterdir()] == ["data"]


def test_missing_data_is_told_in_a_sentence(run, monkeypatch, tmp_path):
    monkeypatch.delenv("KERNELWEAVE_DATA", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    code, _, err = run("--methods", "scikit-learn")
    assert (code, len(err)) == (2, 1)
    assert "KERNELWEAVE_DATA" in err[0]
    monkeypatch.setenv("KERNELWEAVE_DATA", str(tmp_path))
    assert run("--methods", "scikit-learn")[2] == [
        "kernelweave scoreboard: The data folder holds no set of several views with classes: name another one."
    ]


# --- the page ---------------------------------------------------------------------------------------------------------


def test_the_page_and_its_pictures_are_written_from_the_results_file(run, tmp_path):
    pytest.importorskip("matplotlib")
    results = tmp_path / "results.jsonl"
    for each in [*three_methods(), record("gone", "apples", 0.9)]:
        append_record(results, each)
    docs = tmp_path / "docs"
    docs.mkdir()
    code, out, err = run("--write-page", "--results", results, "--docs", docs)
    assert (code, out, err) == (0, f"{docs / 'scoreboard.md'}\n", [])
    text = (docs / "scoreboard.md").read_text(encoding="utf-8")
    assert "| joined-kmeans | scikit-learn | 0.700 | 0.700 | 0.700 | 1.25 | 2 | 0 | 2.00 | 200 |" in text
    assert "| multi-view-spectral | **0.800** | 0.300 |" in text
    assert "| imml-nemo | ✗ | 0.100 |" in text
    assert "| imml-nemo | ValueError: no \\| bars | apples |" in text
    assert "gone" not in text  # it has no row in the table of methods
    assert "`joined-kmeans` is first by mean rank. On no set is it more than 0.05 in NMI below the best." in text
    assert "`multi-view-spectral` is the first of kernelweave." in text
    assert "| pears | 0.300 | 0.600 | joined-kmeans |" in text
    assert "Commits: `abc1234`" in text
    pictures = sorted((docs / "_static").iterdir())
    assert [each.name for each in pictures] == ["scoreboard_heat.svg", "scoreboard_ranks.svg", "scoreboard_times.svg"]
    for each in pictures:
        assert ElementTree.parse(each).getroot().tag.endswith("svg")
        assert f"_static/{each.name}" in text
    before = [each.read_bytes() for each in pictures]
    run("--write-page", "--results", results, "--docs", docs)
    assert [each.read_bytes() for each in pictures] == before


def test_a_page_of_some_methods_and_sets_leaves_out_the_others(run, tmp_path):
    pytest.importorskip("matplotlib")
    for each in three_methods():
        append_record(tmp_path / "scoreboard.jsonl", each)
    run("--write-page", "--methods", "imml-nemo,joined-kmeans", "--sets", "pears", "--docs", tmp_path)
    text = (tmp_path / "scoreboard.md").read_text(encoding="utf-8")
    assert "apples" not in text
    assert "| multi-view-spectral |" not in text
    assert "No fit failed." in text


def test_the_page_opens_with_the_first_method_of_every_library():
    head = page_text(build_board(three_methods())).split("\n## ")[0]
    assert (
        "Of 3 methods of 3 libraries on 2 sets, `joined-kmeans` of scikit-learn has the best mean rank, 1.25." in head
    )
    rows = [line.split(" | ")[:2] for line in head.splitlines() if line.startswith("| ")][2:]
    assert rows == [
        ["| joined-kmeans", "scikit-learn"],
        ["| multi-view-spectral", "kernelweave"],
        ["| imml-nemo", "imml"],
    ]
    weaker = [record("joined-spectral", name, 0.1, library="scikit-learn") for name in ("apples", "pears")]
    head, _, rest = page_text(build_board([*three_methods(), *weaker])).partition("\n## ")
    assert "| joined-spectral |" not in head
    assert "| joined-spectral |" in rest


def test_the_page_says_which_fits_are_missing():
    text = page_text(build_board([*three_methods(), record("imml-nemo", "plums", 0.5, library="imml", seed=1)]))
    assert "Sets that lack one are in no mean and no rank: plums." in text
    assert "| joined-kmeans | plums |" in text
    assert "Methods without any fit: graph-fusion, multi-view-spectral-equal," in text


def test_the_page_names_sets_with_a_view_made_with_the_classes():
    text = page_text(build_board([record("a", "mnist4", 0.9), record("a", "apples", 0.9)]))
    assert "easy for that reason: mnist4." in text


def test_a_page_of_unfinished_sets_alone_can_still_be_written(run, tmp_path):
    pytest.importorskip("matplotlib")
    for each in (record("imml-nemo", "apples", 0.5), record("joined-kmeans", "pears", 0.5)):
        append_record(tmp_path / "scoreboard.jsonl", each)
    assert run("--write-page", "--docs", tmp_path)[0] == 0


def test_a_folder_of_documentation_that_is_not_there_is_told_in_a_sentence(run, tmp_path):
    append_record(tmp_path / "scoreboard.jsonl", record("imml-nemo", "apples", 0.5))
    code, out, err = run("--write-page", "--docs", tmp_path / "none")
    assert (code, out, len(err)) == (2, "", 1)
    assert "is not a folder" in err[0]
