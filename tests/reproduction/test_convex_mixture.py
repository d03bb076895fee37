"""The rows of PhD chapter 3 on small data, the tables as declared, and what the text says of them."""

import os
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from sklearn.utils import Bunch

from kernelweave import MultiViewConvexMixture
from kernelweave.datasets import make_corrupted_views
from kernelweave.foundation.random_streams import streams
from reproduction import Verdict, catalogue, run_experiment
from reproduction.experiments import convex_mixture as tables
from reproduction.rows import convex_mixture as rows

needs_data = pytest.mark.skipif(not os.environ.get("KERNELWEAVE_DATA"), reason="KERNELWEAVE_DATA is not set")
#: Tables of entropies with those of weights, which come from the same clusterings.
SYNTHETIC = [
    ("phd-3.1-convex-mixture", "phd-3.2-view-weights"),
    ("phd-3.3-convex-mixture", "phd-3.4-view-weights"),
]
KEPT = (rows.runs, rows.single_views, rows.csc_runs, rows.noise_weights, rows.text_runs, rows.text_views)


@pytest.fixture(autouse=True)
def _forget():
    """Leave nothing behind of clusterings that belong to one test."""
    yield
    for function in KEPT:
        function.cache_clear()


def points_instead(monkeypatch, n_samples, n_corrupted):
    """Let rows draw fewer points than the source."""

    def samples(restarts, seed):
        return [
            make_corrupted_views(5, 2, n_samples=n_samples, n_corrupted=n_corrupted, random_state=r)
            for r in streams(seed, restarts)
        ]

    monkeypatch.setattr(rows, "samples", samples)


@pytest.fixture
def few_points(monkeypatch):
    """Samples of 63 points, 5 of them misplaced in each view."""
    points_instead(monkeypatch, 63, 5)


@pytest.fixture
def fewest_points(monkeypatch):
    """Samples of 33 points, 3 of them misplaced in each view: enough for figures that are only said to be there."""
    points_instead(monkeypatch, 33, 3)


# --- one clustering --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
def test_refined_labels_are_those_of_an_estimator_that_refines(weighted):
    views = make_corrupted_views(2, 1, n_samples=105, n_corrupted=8, random_state=0).views
    model = MultiViewConvexMixture(3, weighted=weighted).fit(views)
    refined = MultiViewConvexMixture(3, weighted=weighted, refine="kernel_kmeans").fit(views)
    assert not np.array_equal(model.labels_, refined.labels_)
    np.testing.assert_array_equal(rows.refined_labels(views, model), refined.labels_)


def test_a_single_view_is_the_same_alone_and_concatenated():
    views = {"only": make_corrupted_views(1, 0, n_samples=105, n_corrupted=8, random_state=0).views["corrupted_0"]}
    labels = [rows.mixture(views, 3, method).labels_ for method in ("single", "concatenated", "multi-view", "weighted")]
    for other in labels[1:]:
        np.testing.assert_array_equal(other, labels[0])


# --- synthetic views -------------------------------------------------------------------------------------------------


# Rows of both tables share clusterings, so that they are one test.
@pytest.mark.parametrize("experiments", SYNTHETIC, ids=" and ".join)
def test_a_row_gives_what_its_table_prints(experiments, fewest_points):
    cells = [item for experiment in experiments for item in catalogue()[experiment].cells.items()]
    for name, cell in cells:
        sooner = {"tol": rows.SETTLED} if name == "weighted-converged" else {}
        figures = cell.run(restarts=2, seed=0, **sooner)
        assert set(cell.printed) <= set(figures), name
        assert np.isfinite(list(figures.values())).all(), name
        assert min(figures.values()) >= 0.0, name


def test_single_views_are_the_best_and_worst_of_those_in_the_set(few_points):
    alone = rows.single_views(2, 0)
    best, worst = rows.runs("best-single", False, rows.EARLY, 2, 0), rows.runs("worst-single", True, rows.EARLY, 2, 0)
    first = [alone[sample][f"corrupted_{v}"][0] for sample in (1,) for v in range(2)]
    assert best.h[1, 0] == min(first)
    every = [pair[1] for pair in alone[0].values()]
    assert len(every) == 7
    assert worst.refined[0, -1] == max(every)


def test_a_set_holds_the_first_views_and_the_noisy_ones_where_asked():
    views = make_corrupted_views(5, 2, n_samples=70, n_corrupted=5, random_state=0).views
    assert list(rows._chosen(views, 2, noisy=False)) == ["corrupted_0", "corrupted_1"]
    assert list(rows._chosen(views, 3, noisy=True)) == [*list(views)[:3], "noisy_0", "noisy_1"]


def test_weights_of_noisy_views_are_small_and_vanish_when_the_model_settles(few_points):
    early, settled = (rows.weight_row(2, 0, noisy=True, tol=tol) for tol in (rows.EARLY, rows.SETTLED))
    for n_views in rows.NUMBERS:
        total = n_views * early[f"weight_{n_views}_mean"] + 2 * early[f"noisy_weight_{n_views}_mean"]
        assert total == pytest.approx(1.0)
        assert early[f"noisy_weight_{n_views}_mean"] < 0.8 * early[f"weight_{n_views}_mean"]
        assert settled[f"noisy_weight_{n_views}_mean"] < 0.2 * early[f"noisy_weight_{n_views}_mean"]


def test_claims_are_shares_of_the_samples_of_which_they_are_true():
    best, more = np.array([[0.3, 0.3, 0.3, 0.3]] * 2), np.full((2, 4), 0.5)
    falling, rising = [0.4, 0.3, 0.2, 0.1], [0.4, 0.3, 0.2, 0.25]
    result = rows.claims(
        {
            "best-single": rows.Runs(best, best),
            "concatenated": rows.Runs(more, more),
            "multi-view": rows.Runs(np.array([falling, rising]), more),
            "weighted": rows.Runs(np.array([falling, falling]) - 0.05, best),
        }
    )
    assert result["multi_view_five_below_two"] == 1.0
    assert result["multi_view_falls_always"] == 0.5
    assert result["multi_view_mean_falls"] == 1.0
    assert result["multi_view_below_best_single"] == 0.5
    assert result["multi_view_below_concatenated"] == result["multi_view_below_its_refined"] == 1.0
    assert result["weighted_below_multi_view"] == result["refined_weighted_below_multi_view"] == 1.0
    assert result["weighted_below_its_refined"] == 0.75
    assert result["weighted_from_multi_view"] == pytest.approx((7 * 0.05 + 0.2) / 8)


# --- correlational spectral clustering -------------------------------------------------------------------------------


def test_the_worst_view_is_a_noisy_one_and_the_best_is_not(few_points):
    (first, *_), *_ = rows.csc_runs(True, 2, 0)
    assert max(first[:2]) < min(first[2:])
    worst, best = (rows.csc_row(2, 0, worst=worst, noisy=True) for worst in (True, False))
    assert all(best[f"h_{n_views}_mean"] < 0.6 < worst[f"h_{n_views}_mean"] for n_views in rows.NUMBERS)


def test_two_axes_of_a_view_of_two_features_say_as_much_at_any_kappa():
    sample = make_corrupted_views(2, 0, n_samples=210, n_corrupted=15, random_state=0)
    entropies = [rows.csc_entropies(sample.views, sample.target, 3, kappa, 0) for kappa in rows.KAPPAS]
    np.testing.assert_allclose(entropies[1:], [entropies[0]] * (len(rows.KAPPAS) - 1))


def test_kappa_is_large_enough_to_tell_views_from_shuffled_ones():
    rng = np.random.default_rng(0)
    shared = rng.standard_normal((40, 1))
    views = {name: 3.0 * shared * rng.standard_normal(60) + rng.standard_normal((40, 60)) for name in "ab"}
    assert rows._correlations(views, 2, rows.KAPPAS[0], 0)[1] > 0.9  # more features than samples: all goes together
    assert rows.chosen_kappa(views, 2, 0) > rows.KAPPAS[0]


def test_a_row_of_texts_holds_every_view_and_the_lowest_of_the_grid(monkeypatch):
    stand_in_for(monkeypatch, toy_texts())
    figures = rows.csc_text_row(1, 0, data="toy")
    assert figures["kappa"] in rows.KAPPAS
    assert all(figures[f"best_h_{name}"] <= figures[f"h_{name}"] for name in "ab")


# --- noise -----------------------------------------------------------------------------------------------------------


def test_more_noise_takes_weight_from_a_view(monkeypatch):
    monkeypatch.setattr("kernelweave.datasets.make_corrupted_views", partial(make_corrupted_views, n_samples=140))
    monkeypatch.setattr(rows, "NOISE", (0.1, 1.0))
    monkeypatch.setattr(rows, "MIXED", ((0.1, 1.0),))
    figures = rows.noise_row(3, 0, levels=(0.1, 1.0))
    assert figures["weight_noise_0.1_mean"] > figures["weight_noise_1_mean"]
    total = 2 * sum(figures[name] for name in ("weight_mean", "weight_noise_0.1_mean", "weight_noise_1_mean"))
    assert total == pytest.approx(1.0)
    claims = rows.noise_claims_row(3, 0)
    assert claims["falls_up_to_1"] == claims["falls_always"] == claims["mixed_0.1_1_in_order"] == 1.0


def test_the_cells_of_the_figure_give_what_is_held_against_them(monkeypatch):
    monkeypatch.setattr(
        rows, "noise_weights", lambda levels, tol, restarts, seed: np.ones((restarts, 2 + 2 * len(levels)))
    )
    for cell in catalogue()["phd-figure-3.2-view-weights"].cells.values():
        assert set(cell.printed) <= set(cell.run(restarts=2, seed=0))


# --- texts -----------------------------------------------------------------------------------------------------------


def test_documents_without_a_word_in_some_view_are_left_out_and_rows_have_length_1(monkeypatch):
    stand_in_for(monkeypatch, toy_texts(empty=(3, 17)))
    views, target = rows.text_views("toy")
    assert len(target) == 28
    for view in views.values():
        np.testing.assert_allclose(np.linalg.norm(view, axis=1), 1.0)


def test_rows_that_are_tfidf_already_are_taken_as_they_are(monkeypatch):
    texts = toy_texts()
    stand_in_for(monkeypatch, texts)
    np.testing.assert_array_equal(rows.text_views("toy_tfidf")[0]["a"], texts.views["a"])


@pytest.mark.parametrize("method", ["a", "concatenated", "multi-view", "weighted"])
def test_a_row_of_texts_holds_beta_0_and_the_best_multiple(method, monkeypatch):
    stand_in_for(monkeypatch, toy_texts())
    figures = rows.text_row(1, 0, data="toy", method=method)
    result = rows.text_runs("toy", method, rows.EARLY)
    best = rows.ALPHAS.index(figures["best_alpha"])
    assert figures["best_h"] == result.h.min() == result.h[0, best]
    assert figures["best_refined_h"] == result.refined[0, best]
    assert figures["h"] == result.h[0, rows.ALPHAS.index(1.0)]
    if method == "weighted":
        assert figures["weight_a"] + figures["weight_b"] == pytest.approx(1.0)


def test_claims_on_texts_count_the_columns(monkeypatch):
    table = {"a": [3, 3, 3, 3], "b": [4, 1, 4, 4], "concatenated": [5, 5, 5, 2]}
    table |= {"multi-view": [2, 2, 2, 3], "weighted": [1, 2, 3, 1]}
    columns = ("h", "refined_h", "best_h", "best_refined_h")
    monkeypatch.setattr(rows, "text_views", lambda data: ({"a": None, "b": None}, None))
    monkeypatch.setattr(rows, "text_row", lambda *_, method, **__: dict(zip(columns, table[method], strict=True)))
    result = rows.text_claims_row(1, 0, data="toy")
    assert result == {"multi_view_ahead": 2.0, "weighted_ahead": 2.0, "weighted_below_multi_view": 2.0}


@pytest.mark.golden
@needs_data
@pytest.mark.parametrize(
    ("id_", "sizes"),
    [
        ("phd-3.5-webkb-course", [222, 505]),
        ("phd-3.5-webkb-cornell", [83, 19, 42, 19, 32]),
        ("phd-3.5-3sources", [56, 21, 11, 18, 51, 12]),
    ],
)
def test_texts_are_those_with_words_in_every_view(id_, sizes):
    experiment = catalogue()[id_]
    views, target = rows.text_views(*experiment.data)
    assert np.bincount(target).tolist() == sizes
    assert {name.replace("_", "-") for name in views} < set(experiment.cells)


# --- printed figures -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", [tables._NOISE_FREE, tables._NOISY], ids=["3.1", "3.3"])
def test_printed_tables_are_whole(text):
    printed = tables.printed_rows(text)
    assert list(printed) == ["worst-single", "best-single", "concatenated", "multi-view", "weighted"]
    assert all(len(row) == 8 for row in printed.values())
    worst, best = printed["worst-single"], printed["best-single"]
    assert all(low <= high for low, high in zip(best, worst, strict=True))


@pytest.mark.parametrize("text", [tables._CSC_NOISE_FREE, tables._CSC_NOISY], ids=["3.1", "3.3"])
def test_printed_rows_of_csc_are_whole(text):
    printed = tables.printed_rows(text)
    assert list(printed) == ["csc-worst", "csc-best"]
    assert all(len(row) == len(rows.NUMBERS) for row in printed.values())
    assert all(low < high for low, high in zip(printed["csc-best"], printed["csc-worst"], strict=True))


@pytest.mark.parametrize("text", [tables._EQUAL_WEIGHTS, tables._UNEQUAL_WEIGHTS], ids=["3.2", "3.4"])
def test_printed_weights_add_up_to_1(text):
    sets = tables.printed_weights(text)
    assert [len(good) for good, _ in sets] == list(rows.NUMBERS)
    for good, noisy in sets:
        assert sum(good) + sum(noisy) == pytest.approx(1.0, abs=0.0021)


def test_what_holds_without_exception_in_print_is_held_against_us():
    free, noisy = (rows.claims(tables.printed_runs(text)) for text in (tables._NOISE_FREE, tables._NOISY))
    assert free["weighted_below_multi_view"] == 0.5
    assert noisy["weighted_below_multi_view"] == noisy["refined_weighted_below_multi_view"] == 1.0
    assert noisy["multi_view_falls_always"] == 0.0
    experiment = catalogue()["phd-3.1-convex-mixture"]
    assert "weighted_below_multi_view" not in experiment.cells["claims"].printed
    assert "multi_view_falls_always" in experiment.cells["claims"].printed


def test_printed_weights_tell_a_model_that_stopped_early_from_one_that_settled():
    experiment = catalogue()["phd-3.4-view-weights"]
    (name, cell), *_ = experiment.cells.items()
    late = replace(cell, run=partial(cell.run, tol=2e-3), restarts=1)
    result = run_experiment(replace(experiment, cells={name: late}))
    assert Verdict.DIFFERS in result.verdicts


def toy_texts(empty=()):
    """Thirty documents of three kinds, each with different words in both views; some have none in the second."""
    rng = np.random.default_rng(0)
    target = np.arange(30) % 3
    rates = np.where(np.arange(12) // 4 == target[:, None], 2.0, 0.3)
    views = {name: 1.0 + rng.poisson(rates) for name in "ab"}
    views["b"][list(empty)] = 0.0
    return Bunch(views=views, target=target)


def stand_in_for(monkeypatch, texts):
    monkeypatch.setattr("kernelweave.datasets.load_benchmark", lambda name: texts)
