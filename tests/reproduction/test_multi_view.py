"""The rows of PhD chapter 4 on small data, table 4.1 as declared, and the figures on exponents and noisy views."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from sklearn.utils import Bunch

from kernelweave import MultiViewKernelKMeans, MultiViewSpectralClustering
from kernelweave.datasets import make_corrupted_views
from kernelweave.metrics import normalized_mutual_info
from kernelweave.solvers.shared.exponent import EXPONENTS
from reproduction import Verdict, catalogue, run_experiment
from reproduction.experiments import multi_view as tables
from reproduction.rows import multi_view as rows
from reproduction.rows import view_exponents as exponents
from reproduction.rows.convex_mixture import KAPPAS, mixture
from reproduction.rows.multi_view import Agreement, Mixed, Views

KEPT = (
    rows.digits_run,
    rows.digits_views,
    rows.csc_run,
    rows.mvcmm_run,
    rows.prepared,
    exponents.clean_runs,
    exponents.noisy_runs,
)
MINE = [each.id for each in tables.EXPERIMENTS]
ONE_SET = {
    id_: [
        name
        for name in catalogue()[id_].cells
        if name != "summary" and (id_.startswith("phd") or name in ("mfeat-5", "bdgp", "mvkkm-synthetic"))
        if id_.endswith("0169") or not ("csc" in name or "mvcmm" in name)  # of five that differ in nothing but digits
    ]
    for id_ in MINE
}


@pytest.fixture(autouse=True)
def _forget():
    """Leave nothing behind of clusterings that belong to one test."""
    yield
    for function in KEPT:
        getattr(function, "cache_clear", lambda: None)()


@pytest.fixture
def toy():
    data = make_corrupted_views(3, 1, n_samples=105, n_corrupted=15, random_state=0)
    return Views(data.views, data.target, {"kernel": "linear"})


@pytest.fixture
def stand_in(monkeypatch):
    """Ten classes of ten samples in three views, whatever benchmark is asked for."""
    rng = np.random.default_rng(0)
    target = np.repeat(np.arange(10), 10)
    views = {name: 3 * rng.standard_normal((10, 6))[target] + rng.standard_normal((100, 6)) for name in ("a", "b")}
    stored = Bunch(views=views | {"mor": np.full((100, 6), 7.0)}, target=target)

    def load_benchmark(name):
        return stored if name == "mfeat" else Bunch(views=views, target=target)

    monkeypatch.setattr("kernelweave.datasets.load_benchmark", load_benchmark)
    return stored


# --- one clustering --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("p", "name"), [(1.0, "p_1"), (1.25, "p_1.25"), (np.inf, "uniform"), ("auto", "auto")])
def test_exponents_have_names(p, name):
    assert rows.named(p) == name


@pytest.mark.parametrize(
    ("method", "kind"), [("mvkkm", MultiViewKernelKMeans), ("mvspec", MultiViewSpectralClustering)]
)
def test_infinity_is_equal_weights_and_numbers_are_learned_ones(toy, method, kind):
    toy = replace(toy, options={"kernel": "rbf"})
    equal, learned = (rows.fitted(toy, p, method=method) for p in (np.inf, 3.0))
    assert type(equal) is type(learned) is kind
    np.testing.assert_allclose(equal.view_weights_, 0.25)
    assert learned.p_ == 3.0
    assert np.ptp(learned.view_weights_) > 0.01
    assert rows.agreement(toy, equal).p == np.inf
    result = rows.agreement(toy, learned)
    assert result.nmi == normalized_mutual_info(toy.target, learned.labels_)
    np.testing.assert_array_equal(result.coefficients, learned.kernel_coefficients_)


def test_exponents_share_the_start_they_would_have_by_themselves(toy):
    result = exponents.runs_of(toy, (1.0, 1.5, 4.0, "auto", np.inf), 0)
    for p, name in ((1.0, "p_1"), (1.5, "p_1.5"), (4.0, "p_4"), ("auto", "auto")):
        alone = MultiViewKernelKMeans(toy.n_clusters, kernel="linear", p=p, random_state=0).fit(toy.views)
        assert result[name].nmi == pytest.approx(normalized_mutual_info(toy.target, alone.labels_))
        np.testing.assert_allclose(result[name].coefficients, alone.kernel_coefficients_)
    assert result["auto"].p in EXPONENTS


# --- views prepared --------------------------------------------------------------------------------------------------


def test_words_become_a_few_directions_of_length_1():
    rng = np.random.default_rng(0)
    counts = rng.poisson(0.05, (80, 600)).astype(float)
    counts[:, 0] = 1.0
    result = rows.prepared_view(counts)
    assert result.shape == (80, rows.KEPT)
    np.testing.assert_allclose(np.linalg.norm(result, axis=1), 1.0)
    assert rows.prepared_view(counts[:30]).shape == (30, 29)
    # Counts get weights by how rare a word is; what is weighted already does not.
    doubled = counts * 2.5
    doubled[:, :50] *= 3.0
    assert not np.allclose(np.abs(rows.prepared_view(doubled)), np.abs(result))
    np.testing.assert_allclose(rows.prepared_view(counts * 1.5), rows.prepared_view(counts * 2.5), atol=1e-9)


@pytest.mark.parametrize("change", ["narrow", "negative", "dense"])
def test_other_views_become_z_scores_without_constant_columns(change):
    rng = np.random.default_rng(0)
    X = rng.poisson(0.05, (80, 400 if change == "narrow" else 600)).astype(float)
    X[:, 0] = 1.0
    if change == "negative":
        X[3, 5] = -1.0
    elif change == "dense":
        X[:, :100] += rng.random((80, 100))
    varying = (X.max(axis=0) > X.min(axis=0)).sum()
    result = rows.prepared_view(X)
    assert result.shape == (80, varying)
    np.testing.assert_allclose(result.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(result.std(axis=0, ddof=1), 1.0)


def test_digits_are_chosen_by_class_and_have_unit_variance_where_they_are(stand_in):
    data = rows.digits_views("0236")
    assert list(data.views) == ["a", "b"]
    assert np.unique(data.target).tolist() == [0, 2, 3, 6]
    for name, view in data.views.items():
        np.testing.assert_allclose(view.std(axis=0, ddof=1), 1.0)
        kept = stand_in.views[name][np.isin(stand_in.target, [0, 2, 3, 6])]
        np.testing.assert_allclose(view * kept.std(axis=0, ddof=1), kept)


def test_sets_of_digits_have_six_views_or_five(stand_in):
    assert list(rows.benchmark("mfeat-6")[0]) == ["a", "b", "mor"]
    views, target = rows.benchmark("mfeat-5")
    assert list(views) == ["a", "b"]
    assert len(target) == 100
    assert len(rows.benchmark("mfeat-0169")[1]) == 40


def test_the_synthetic_views_are_left_as_they_are(stand_in):
    data = rows.prepared("mvkkm-synthetic")
    assert data.views["a"] is stand_in.views["a"]
    assert data.options == {"kernel": "rbf", "kernel_params": {"sigma": 0.2}, "normalize": False}


# --- cells -----------------------------------------------------------------------------------------------------------


# Rows of an experiment share clusterings, so that they are one test.
@pytest.mark.parametrize("experiment", [id_ for id_, names in ONE_SET.items() if names])
def test_a_row_gives_what_its_table_prints(experiment, stand_in):
    cells = catalogue()[experiment].cells
    for name in ONE_SET[experiment]:
        cell = cells[name]
        figures = cell.run(restarts=2, seed=0)
        assert set(cell.printed) <= set(figures), name
        assert not np.isnan(list(figures.values())).any(), name


def test_coefficients_of_a_row_add_up_to_1(stand_in):
    figures = rows.digits_row(1, 0, digits="0169", p=1.5)
    for method in ("mvkkm", "mvspec"):
        assert figures[f"{method}_a"] + figures[f"{method}_b"] == pytest.approx(1.0)


def test_every_experiment_prints_something_that_the_quick_subset_may_take():
    assert all(any(cell.printed for cell in catalogue()[name].cells.values()) for name in MINE)


# --- table 4.1 -------------------------------------------------------------------------------------------------------


def test_the_printed_table_is_whole():
    printed = tables.printed_table()
    all_p = (1.0, 1.3, 1.5, 2.0, 4.0, 6.0, np.inf)
    assert set(printed) == {(method, p) for method in ("mvkkm", "mvspec") for p in all_p}
    for method in ("mvkkm", "mvspec"):
        curve = np.array([printed[method, p] for p in all_p])
        assert (np.diff(curve[:, 0]) <= 0).all()
        assert (np.diff(curve[:, 1]) <= 0).all()
        np.testing.assert_allclose(curve[:, 1] + curve[:, 2], 1.0)


@pytest.mark.parametrize(
    ("cell", "change"),
    [("mvkkm-p-1.5", {"nmi": 0.99}), ("mvkkm-p-4", {"coefficient_1": 0.55}), ("mvspec-p-2", {"nmi": 0.67})],
)
def test_a_figure_that_is_off_is_caught(cell, change):
    experiment = catalogue()["phd-4.1-multi-view"]
    declared = experiment.cells[cell]
    printed = {name: figure.value for name, figure in declared.printed.items()}
    for figures, verdict in ((printed, Verdict.AGREES), (printed | change, Verdict.DIFFERS)):
        result = run_experiment(
            replace(experiment, data=(), cells={cell: replace(declared, run=partial(fixed, figures))})
        )
        assert verdict in result.verdicts
        assert (Verdict.DIFFERS in result.verdicts) is (verdict is Verdict.DIFFERS)


# --- claims on figure 4.4 --------------------------------------------------------------------------------------------


def test_claims_on_digits_look_at_the_whole_curve(monkeypatch):
    mvkkm = np.array([0.5, 0.9, 0.8, *[0.7] * 8, 0.6])
    mvspec = np.array([0.4, 0.5, 0.6, *[0.7] * 8, 0.8])
    monkeypatch.setattr(rows, "curve", lambda digits, method, seed: mvkkm if method == "mvkkm" else mvspec)
    result = rows.digits_claims_row(1, 0, digits="0169")
    assert result["best_p_1.5_or_2"] == 1.0
    assert result["mvkkm_not_below_mvspec"] == pytest.approx(11 / 12)
    assert result["best_p"] == 1.5
    assert result["mvspec_best_p"] == np.inf
    assert result["uniform_below_best"] == pytest.approx(0.3)
    assert rows.single_view_claims_row(1, 0, digits="0169") == {"mvkkm_p_1_worst": 1.0, "mvspec_p_1_worst": 1.0}
    mvkkm[4] = 0.95
    mvspec[2] = 0.3
    assert rows.digits_claims_row(1, 0, digits="0169")["best_p_1.5_or_2"] == 0.0
    assert rows.single_view_claims_row(1, 0, digits="0169")["mvspec_p_1_worst"] == 0.0


# --- the other methods of figure 4.4 ---------------------------------------------------------------------------------


def test_correlated_projections_are_clustered_view_by_view_into_as_many_clusters_as_classes(stand_in, monkeypatch):
    labelled = []

    def nmi(target, labels):
        labelled.append(np.unique(labels).size)
        return normalized_mutual_info(target, labels)

    monkeypatch.setattr("kernelweave.metrics.normalized_mutual_info", nmi)
    figures = rows.csc_row(1, 0, digits="0236")
    assert labelled == [4, 4, 4]  # two views, and both side by side
    assert figures["nmi"] == max(figures["nmi_a"], figures["nmi_b"])
    assert figures["nmi_worst"] == min(figures["nmi_a"], figures["nmi_b"])
    assert figures["kappa"] in KAPPAS


def test_the_mixture_of_the_best_sharpness_is_kept(stand_in, monkeypatch):
    monkeypatch.setattr(rows, "SCALES", (0.5, 1.0, 4.0))
    data = rows.digits_views("0236")
    models = {scale: mixture(data.views, 4, "weighted", beta_scale=scale) for scale in rows.SCALES}
    nmi = {scale: normalized_mutual_info(data.target, model.labels_) for scale, model in models.items()}
    figures = rows.mvcmm_row(1, 0, digits="0236")
    assert len(models[figures["beta_scale"]].exemplar_indices_) == 4
    assert figures["nmi"] == nmi[figures["beta_scale"]] == max(nmi.values())
    assert figures["nmi_beta_0"] == nmi[1.0]
    weights = [figures["weight_a"], figures["weight_b"]]
    np.testing.assert_allclose(weights, models[figures["beta_scale"]].view_weights_)


def test_multiples_of_beta_0_are_those_of_the_text():
    np.testing.assert_array_equal(rows.SCALES, np.arange(0.5, 7.5, 0.5))


def test_distances_are_normalised_by_beta_0(toy):
    scaled = {name: scale * view for scale, (name, view) in enumerate(toy.views.items(), 1)}
    plain, other = (mixture(views, 3, "weighted", beta_scale=2.0) for views in (toy.views, scaled))
    np.testing.assert_allclose(plain.view_weights_, other.view_weights_, atol=1e-6)
    np.testing.assert_array_equal(plain.labels_, other.labels_)


@pytest.mark.parametrize(
    ("csc", "expected"),
    [
        (0.87, {"below_mvkkm": 1, "slightly_below_mvkkm": 1, "below_mvspec": 0, "above_mvspec_for_most_p": 1}),
        (0.78, {"slightly_below_mvkkm": 0, "far_below_mvkkm": 1, "slightly_below_mvspec": 1, "above_mvspec": 11 / 12}),
        (0.70, {"far_below_mvkkm": 1, "far_below_mvspec": 1, "above_mvspec": 0.25, "above_mvspec_for_most_p": 0}),
        (0.95, {"below_mvkkm": 0, "slightly_below_mvkkm": 0, "far_below_mvkkm": 0, "above_mvspec": 1}),
    ],
)
def test_claims_on_csc_look_at_the_best_exponents_and_at_all(csc, expected, monkeypatch):
    given_curves(monkeypatch)
    monkeypatch.setattr(rows, "csc_run", lambda digits, seed: {"nmi": csc})
    result = rows.csc_claims_row(1, 0, digits="0169")
    assert {name: result[name] for name in expected} == pytest.approx(expected)
    assert result["mvkkm_ahead_by"] == pytest.approx(0.9 - csc)


@pytest.mark.parametrize(
    ("nmi", "weights", "expected"),
    [
        (0.3, (0.99, 0.01, 0.0, 0.0, 0.0), {"mvkkm": 1, "mvspec": 1, "csc": 1, "zero": 1, "kept": 2}),
        (0.45, (0.5, 0.3, 0.195, 0.005, 0.0), {"mvkkm": 1, "mvspec": 0, "csc": 1, "zero": 0, "kept": 3}),
        (0.92, (0.2, 0.2, 0.2, 0.2, 0.2), {"mvkkm": 0, "mvspec": 0, "csc": 0, "zero": 0, "kept": 5}),
    ],
)
def test_claims_on_the_mixture_look_at_every_exponent_and_at_its_weights(nmi, weights, expected, monkeypatch):
    given_curves(monkeypatch)
    monkeypatch.setattr(rows, "csc_run", lambda digits, seed: {"nmi": 0.8})
    monkeypatch.setattr(rows, "mvcmm_run", lambda digits, tol: Mixed(nmi, np.array(weights), 1.0, nmi))
    result = rows.mvcmm_claims_row(1, 0, digits="0169")
    assert {method: result[f"below_{method}"] for method in ("mvkkm", "mvspec", "csc")} == {
        method: expected[method] for method in ("mvkkm", "mvspec", "csc")
    }
    assert (result["most_weights_zero"], result["weights_above_zero"]) == (expected["zero"], expected["kept"])


def test_csc_is_declared_slightly_inferior_on_three_of_five_subsets():
    held = {digits: catalogue()[f"phd-figure-4.4-multi-view-{digits}"].cells["claims-csc"] for digits in rows.DIGITS}
    far = {digits for digits, cell in held.items() if "far_below_mvkkm" in cell.printed}
    assert far == {"0169", "4689"}
    assert all(("slightly_below_mvspec" in cell.printed) is (digits not in far) for digits, cell in held.items())


def given_curves(monkeypatch):
    """Let MVKKM go from 0.5 to 0.9 and down, and MVSpec from 0.4 up to 0.8."""
    curves = {
        "mvkkm": np.array([0.5, 0.9, 0.8, *[0.7] * 8, 0.6]),
        "mvspec": np.array([0.4, 0.5, 0.6, *[0.7] * 8, 0.8]),
    }
    monkeypatch.setattr(rows, "curve", lambda digits, method, seed: curves[method])


# --- the exponent ----------------------------------------------------------------------------------------------------


def test_regret_is_what_a_choice_leaves_to_the_best_exponent():
    runs = found_with(p_1=0.9, p_1_5=0.5, p_2=0.6, p_3=0.7, uniform=0.8, auto=0.7)
    assert exponents.regrets(runs) == pytest.approx({"auto": 0.2, "p_1.5": 0.4, "p_2": 0.3, "uniform": 0.1})


def test_regrets_of_all_sets_are_summed_up(monkeypatch):
    sets = {
        "good": found_with(p_1=0.5, p_1_5=0.9, p_2=0.895, uniform=0.7, auto=0.9),
        "poor": found_with(p_1=0.1, p_1_5=0.2, p_2=0.4, uniform=0.3, auto=0.3),
    }
    monkeypatch.setattr(exponents, "clean_runs", lambda name, seed: sets[name])
    result = exponents.choice_summary_row(1, 0, data=("good", "poor"))
    assert result["regret_auto_mean"] == pytest.approx(0.05)
    assert result["regret_auto_max"] == pytest.approx(0.1)
    assert result["regret_uniform_max"] == pytest.approx(0.2)
    assert [result[f"near_best_{name}"] for name in ("auto", "p_1.5", "p_2", "uniform")] == [1.0, 1.0, 2.0, 0.0]


# --- noisy views -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("noise", "columns"), [("wide", 5), ("narrow", 2)])
def test_a_noisy_view_is_added_and_nothing_else_changes(noise, columns):
    sizes = {"a": 3, "b": 5, "c": 9}
    data = Views({name: np.ones((40, size)) for name, size in sizes.items()}, np.arange(40) % 4, {"kernel": "linear"})
    noisy = exponents.with_noise(data, noise, np.random.default_rng(0))
    assert list(noisy.views) == ["a", "b", "c", "noise"]
    assert all(noisy.views[name] is view for name, view in data.views.items())
    assert noisy.views["noise"].shape == (40, columns)
    np.testing.assert_allclose(noisy.views["noise"].std(axis=0, ddof=1), 1.0)
    assert noisy.options is data.options


def test_draws_of_noise_differ_and_come_back_with_their_seed(stand_in):
    first, second = exponents.noisy_runs("mfeat-5", 2, 0)
    assert first["wide"]["uniform"].coefficients.shape == (3,)
    assert not np.array_equal(first["wide"]["p_1.5"].coefficients, second["wide"]["p_1.5"].coefficients)
    exponents.noisy_runs.cache_clear()
    again = exponents.noisy_runs("mfeat-5", 1, 0)[0]
    np.testing.assert_array_equal(again["narrow"]["p_2"].coefficients, first["narrow"]["p_2"].coefficients)


def test_drops_are_means_over_the_draws_and_then_over_the_sets(monkeypatch):
    clean = dict.fromkeys(("a", "b"), found_with(auto=0.8, p_1_5=0.9, p_2=0.7, uniform=0.6))
    wide = [
        found_with(auto=0.7, p_1_5=0.8, p_2=0.7, uniform=0.5),
        found_with(auto=0.8, p_1_5=0.7, p_2=0.5, uniform=0.5),
    ]
    narrow = found_with(auto=0.1, p_1_5=0.1, p_2=0.1, uniform=0.3, shares=(0.2, 0.8))
    draws = [{"wide": each, "narrow": narrow} for each in wide]
    flat = [{"wide": clean["b"], "narrow": narrow}] * 2
    monkeypatch.setattr(exponents, "clean_runs", lambda name, seed: clean[name])
    monkeypatch.setattr(exponents, "noisy_runs", lambda name, restarts, seed: draws if name == "a" else flat)
    row = exponents.noise_row(2, 0, data="a")
    assert row["wide_drop_auto_mean"] == pytest.approx(0.05)
    assert row["wide_drop_p_2_mean"] == row["wide_drop_uniform_mean"] == pytest.approx(0.1)
    assert row["wide_nmi_p_1.5_mean"] == pytest.approx(0.75)
    assert row["wide_share_p_2_mean"] == pytest.approx(0.3)
    assert (row["wide_least_p_2"], row["narrow_least_p_2"]) == (1.0, 0.0)
    result = exponents.noise_summary_row(2, 0, data=("a", "b"))
    assert result["wide_drop_auto_mean"] == pytest.approx(0.025)
    assert result["wide_auto_gain_mean"] == pytest.approx(0.025)
    assert (result["wide_auto_drops_less"], result["wide_auto_sets_ahead"]) == (1.0, 1.0)
    assert (result["wide_p_2_sets_ahead"], result["wide_p_2_sets_behind"]) == (0.0, 0.0)
    assert (result["wide_p_1.5_drops_less"], result["wide_p_1.5_sets_behind"]) == (0.0, 1.0)
    assert result["narrow_p_2_drops_less"] == 0.0
    assert result["narrow_nmi_uniform_mean"] == pytest.approx(0.3)


def test_summaries_give_what_is_held_against_them(monkeypatch):
    runs = found_with(p_1=0.5, auto=0.5, p_1_5=0.5, p_2=0.5, uniform=0.5)
    monkeypatch.setattr(exponents, "clean_runs", lambda name, seed: runs)
    monkeypatch.setattr(
        exponents, "noisy_runs", lambda name, restarts, seed: [{"wide": runs, "narrow": runs}] * restarts
    )
    for id_ in ("multi-view-choice-of-p", "multi-view-noisy-view"):
        cell = catalogue()[id_].cells["summary"]
        assert set(cell.printed) <= set(cell.run(restarts=2, seed=0))


def found_with(*, shares=(0.7, 0.3), **nmi):
    """Clusterings by the name of their exponent, ``p_1_5`` standing for ``p_1.5``."""
    return {name.replace("_5", ".5"): Agreement(value, np.array(shares), 2.0) for name, value in nmi.items()}


def fixed(figures, restarts, seed):
    return figures
