"""The rows of PhD chapter 5 on small data, and its tables as declared."""

import numpy as np
import pytest
from sklearn.utils import Bunch

from kernelweave import IterativeSVR, KernelKMeans, MultiViewKernelKMeans, RatioMultipleKernelClustering
from kernelweave.datasets import standardize
from kernelweave.foundation.random_streams import streams
from kernelweave.metrics import clustering_accuracy
from reproduction import Verdict, catalogue, run_experiment
from reproduction.experiments import ratio_mkc as tables
from reproduction.rows import ratio_mkc as rows

KEPT = (rows.problem, rows.ratio_choice, rows.multi_view_runs, rows.svr_accuracy, rows.kernel_kmeans_labels)
MINE = [each.id for each in tables.EXPERIMENTS]


def forget():
    for function in KEPT:
        function.cache_clear()


@pytest.fixture(autouse=True)
def stand_in(monkeypatch):
    """Classes of 12 samples in every benchmark: 26 of them, half of each a test set, one column constant."""
    rng = np.random.default_rng(0)
    target = np.repeat(np.arange(26), 12)
    centres = 3.0 * rng.standard_normal((26, 5))

    def features():
        X = centres[target] + rng.standard_normal((len(target), 5))
        return np.hstack([X, np.full((len(X), 1), 2.0)])

    views = {name: features() for name in ("fou", "pix", "mor")}
    stored = Bunch(data=features(), views=views, target=target, is_test=np.arange(len(target)) % 2 == 1)
    monkeypatch.setattr("kernelweave.datasets.load_benchmark", lambda name: stored)
    forget()
    yield stored
    forget()


# --- data ------------------------------------------------------------------------------------------------------------


def test_two_classes_are_scored_among_themselves_and_constant_columns_drop_out(stand_in):
    (X,), target = rows.features("letter")
    assert X.shape == (24, 5)
    assert target.tolist() == [0] * 12 + [1] * 12
    np.testing.assert_allclose(X, standardize(stand_in.data[:24, :5]))


def test_digits_come_from_the_test_part_and_from_five_views(stand_in):
    (X,), target = rows.features("optdigits-3-8")
    assert X.shape == (12, 5)
    assert target.tolist() == [0] * 6 + [1] * 6
    kept = np.isin(stand_in.target, [3, 8]) & stand_in.is_test
    np.testing.assert_allclose(X, standardize(stand_in.data[kept, :5]))
    views, target = rows.features("mfeat-8-3")
    assert len(views) == 2  # mor is left out
    assert target.tolist() == [1] * 12 + [0] * 12


def test_objects_are_counted_from_one_and_have_length_one(stand_in):
    (X,), target = rows.features("coil20-3-19")
    np.testing.assert_allclose(np.linalg.norm(X, axis=1), 1.0)
    kept = np.isin(stand_in.target, [2, 18])
    np.testing.assert_allclose(X, stand_in.data[kept] / np.linalg.norm(stand_in.data[kept], axis=1, keepdims=True))
    assert target.sum() == 12


@pytest.mark.parametrize(("data", "count"), [("letter", 10), ("mfeat-1-7", 2)])
def test_kernels_have_unit_variance_in_feature_space(data, count):
    kernels = rows.problem(data).kernels
    assert len(kernels) == count
    for K in kernels:
        assert np.diagonal(K).mean() - K.mean() == pytest.approx(1.0, abs=1e-6)


def test_accuracy_is_in_percent_and_blind_to_names_of_clusters():
    result = rows.Problem((), np.array([0, 0, 0, 1]))
    assert result.accuracy(np.array([1.0, 1.0, -1.0, -1.0])) == 75.0
    assert result.accuracy(np.array([0, 0, 0, 1])) == 100.0


# --- rows ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("data", ["letter", "mfeat-1-7"])
@pytest.mark.parametrize("norm", [None, 1, 2])
def test_a_run_is_that_of_the_estimator(data, norm):
    views, _ = rows.features(data)
    model = RatioMultipleKernelClustering(C=1.0, norm=norm, random_state=7).fit(views if len(views) > 1 else views[0])
    labels = rows.ratio_labels(rows.problem(data), 1.0, norm, streams(7, 1)[0]) > 0
    assert clustering_accuracy(model.labels_, labels) == 1.0


def test_the_best_c_is_chosen_by_few_runs_and_reported_over_all(monkeypatch):
    asked = []

    def ratio_runs(data, C, norm, first, last, seed):
        asked.append((C, first, last))
        return np.full(last - first, 90.0 + (C == 10.0)) + (np.arange(first, last) >= 2)

    monkeypatch.setattr(rows, "ratio_runs", ratio_runs)
    figures = rows.ratio_row(4, 0, data="letter", trials=2)
    assert asked == [*((C, 0, 2) for C in rows.GRID), (10.0, 2, 4)]
    assert figures["c"] == 10.0
    assert figures["accuracy_mean"] == 91.5
    assert figures["accuracy_std"] == pytest.approx(np.std([91, 91, 92, 92], ddof=1))
    assert (figures["trial_c_1"], figures["trial_c_10"]) == (90.0, 91.0)


def test_runs_do_not_depend_on_how_they_are_cut():
    whole = rows.ratio_runs("letter", 1.0, 1, 0, 3, 0)
    chunks = [rows.ratio_runs("letter", 1.0, 1, first, last, 0) for first, last in ((0, 1), (1, 3))]
    np.testing.assert_array_equal(whole, np.concatenate(chunks))
    assert rows.ratio_row(3, 0, data="letter") == rows.ratio_row(3, 0, data="letter", trials=9)


def test_pairs_are_averaged_means_and_deviations_alike(monkeypatch):
    runs = {"a": np.array([90.0, 92.0]), "b": np.array([100.0, 100.0])}
    monkeypatch.setattr(rows, "ratio_choice", lambda data, *rest: rows.Choice(1.0, runs[data], {}))
    assert rows.averaged_row(2, 0, data=("a", "b")) == pytest.approx(
        {"accuracy_mean": 95.5, "accuracy_std": np.sqrt(2) / 2, "accuracy_std_error": 0.5}
    )


@pytest.mark.parametrize("method", ["mvkkm", "mvspec"])
def test_the_best_exponent_is_reported(method):
    figures = rows.multi_view_row(1, 0, data="mfeat-1-7", method=method)
    by_exponent = {p: figures[f"p_{p:g}"] for p in rows.EXPONENTS}
    assert len(by_exponent) == 9
    assert figures["accuracy"] == max(by_exponent.values()) == by_exponent[figures["p"]]


def test_multi_view_kernel_kmeans_starts_from_the_exact_search():
    views, target = rows.features("mfeat-1-7")
    for p in (1.0, 3.0):
        model = MultiViewKernelKMeans(2, p=p, kernel="linear", init="global_exact").fit(views)
        expected = 100 * clustering_accuracy(target, model.labels_)
        assert rows.multi_view_runs("mfeat-1-7", "mvkkm", 0)[p] == pytest.approx(expected)


def test_kernel_kmeans_is_reported_with_its_best_kernel():
    figures = rows.kernel_kmeans_row(4, 0, data="optdigits-3-8")
    labels, result = rows.kernel_kmeans_labels("optdigits-3-8", 4, 0), rows.problem("optdigits-3-8")
    means = [np.mean([result.accuracy(y) for y in row]) for row in labels]
    assert figures["accuracy_mean"] == pytest.approx(max(means))
    assert means[int(figures["kernel"]) - 1] == max(means)
    assert figures["all_kernels"] == pytest.approx(np.mean(means))
    model = KernelKMeans(2, kernel="precomputed", init="random", n_init=1, random_state=0).fit(result.kernels[5])
    assert clustering_accuracy(model.labels_, labels[5][0]) == 1.0


def test_a_regression_is_that_of_the_estimator():
    result = rows.problem("letter")
    start = rows.kernel_kmeans_labels("letter", 1, 0)[2][0]
    model = IterativeSVR(2, C=0.1, balance=0.3, kernel="precomputed", init=start).fit(result.kernels[2])
    accuracy = rows.svr_accuracy("letter", 2, 0.1, 0.3, start.tobytes())
    assert accuracy == pytest.approx(100 * clustering_accuracy(result.target, model.labels_))


def test_regressions_take_the_best_c_of_each_kernel(monkeypatch):
    monkeypatch.setattr(rows, "problem", lambda data: rows.Problem((np.eye(2),) * 2, np.array([0, 1])))
    table = {(0, 0.1): 80.0, (0, 1.0): 90.0, (1, 0.1): 70.0, (1, 1.0): 50.0}
    monkeypatch.setattr(
        rows,
        "svr_runs",
        lambda data, balance, prices, restarts, seed: np.array(
            [[table[v, C] + run for run in range(restarts)] for v, C in enumerate(prices)]
        ),
    )
    figures = rows.svr_row(3, 0, data="any", grid=(0.1, 1.0))
    assert figures["best_mean"] == 91.0
    assert (figures["best_kernel"], figures["best_c"]) == (1.0, 1.0)
    assert figures["average_mean"] == 81.0
    assert figures["average_std"] == figures["best_std"] == 1.0
    assert figures["one_c"] == 0.1
    assert figures["one_c_average"] == 76.0


# --- declarations ----------------------------------------------------------------------------------------------------


def test_the_norms_table_is_the_mean_of_the_others():
    norms, methods = tables.printed_norms(), tables.printed_rows()
    for name, pairs in tables._GROUPS.items():
        printed = np.array([methods[pair]["rmkc"] for pair in pairs])
        assert printed.mean(axis=0) == pytest.approx(norms[name, "1"], abs=0.011)


def test_every_printed_row_is_declared_with_its_deviation_and_runs():
    cell = catalogue()["phd-5.4-optdigits"].cells["1-7-itersvr"]
    assert (cell.printed["best_mean"].spread, cell.printed["best_mean"].runs) == (9.83, tables.RUNS)
    assert cell.printed["average_mean"].value == 94.26
    cell = catalogue()["phd-5.2-letter"].cells["rmkc"]
    mean = cell.printed["accuracy_mean"]
    assert mean.allowed(mean.value, restarts=30) == pytest.approx(0.005 + 3 * mean.spread * np.sqrt(2 / 30))
    assert mean.judge(97.0, restarts=30) == Verdict.BETTER
    assert mean.judge(92.9, restarts=30) == Verdict.DIFFERS
    assert cell.printed["accuracy_std"].value == mean.spread
    pairs = catalogue()["phd-5.1-norms"].cells["mfeat-norm-1"].printed
    assert pairs["accuracy_mean"].spread == pytest.approx(pairs["accuracy_std"].value / np.sqrt(6))
    assert sum(len(catalogue()[name].cells) for name in MINE) == 15 + 3 * 5 + 2 * 6 * 5 + 4 * 5
    assert not any(cell.printed for cell in catalogue()["coil20-ratio"].cells.values())


@pytest.mark.parametrize("name", [name for name in MINE if name not in ("phd-5.1-norms", "phd-5.4-optdigits")])
def test_declared_cells_run_and_give_the_figures_they_are_held_against(name):
    experiment = catalogue()[name]
    result = run_experiment(experiment, restarts=2)
    for cell, declared in zip(result.cells, experiment.cells.values(), strict=True):
        computed = {figure.metric for figure in cell.figures if np.isfinite(figure.ours)}
        assert set(declared.printed) <= computed
