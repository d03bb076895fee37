"""The rows of MVKSC tables 2 to 5 and of its figures on small data, and the tables as declared."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.utils import Bunch

from kernelweave import (
    CoRegularizedSpectralClustering,
    KernelSpectralClustering,
    MultiViewKernelSpectralClustering,
    MultiViewNMF,
    OptimizedKernelKMeans,
)
from kernelweave.datasets import make_mvksc_synth1, make_mvksc_synth2
from kernelweave.evaluation.principal import centred, principal_components
from kernelweave.metrics import adjusted_rand_index, normalized_mutual_info
from kernelweave.model_selection import score_clustering
from reproduction import Verdict, catalogue, run_experiment
from reproduction.experiment import ERRORS
from reproduction.experiments import kernel_spectral as tables
from reproduction.rows import kernel_spectral as rows
from reproduction.rows import kernel_spectral_figures as figures
from reproduction.rows import spectral_comparators as others
from reproduction.rows.kernel_spectral import Agreement, KeptClustering, Tuned
from reproduction.rows.kernel_spectral_figures import Halves

KEPT = (
    rows.problem,
    rows.fitted,
    rows.fitted_comparator,
    rows.view_kernels,
    rows.one_row,
    figures.boundaries,
    figures.large,
    figures.large_comparator,
)
MINE = [each.id for each in tables.EXPERIMENTS]
TABLES = [name for name in MINE if "figure" not in name]
SOME = ("single-sil", "concatenated-baf", "sum-blf", "product-sil", "per-view-baf", "joint-blf")
SOME += ("okkc-blf", "co-reg-p-baf", "co-reg-c-sil", "mvnmf-blf")
CELLS = {name: [cell for cell in catalogue()[name].cells if cell in SOME or name not in TABLES] for name in MINE}
SIGMA = {"sigma": 1.0}


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Few samples and short searches; every text has six classes of fifteen documents in three sparse views."""
    rng = np.random.default_rng(0)
    target = np.repeat(np.arange(6), 15)
    views = {}
    for name in ("a", "b", "c"):
        counts = rng.poisson(0.2 + 3.0 * (rng.random((6, 40)) < 0.2)[target]).astype(float)
        counts[0, 0] = -1.0
        views[name] = sparse.csr_array(counts)
    monkeypatch.setattr("kernelweave.datasets.load_benchmark", lambda name: Bunch(views=views, target=target))
    monkeypatch.setattr(rows, "SAMPLES", 60)
    monkeypatch.setattr(rows, "EVALUATIONS", 2)
    _forget()
    yield views
    _forget()


def _forget():
    """Forget what other tests computed on whole sets, and what this one did on parts."""
    for function in KEPT:
        getattr(function, "cache_clear", lambda: None)()


# --- data ------------------------------------------------------------------------------------------------------------


def test_synthetic_sets_are_drawn_by_the_seed_and_texts_are_not():
    first, second = rows.problem("synth-1", 0), rows.problem("synth-1", 1)
    drawn = make_mvksc_synth1(60, random_state=1)
    for name, view in drawn.views.items():
        np.testing.assert_array_equal(second.views[name], view)
        assert not np.array_equal(first.views[name], view)
    assert len(rows.problem("synth-2", 0).views) == 3
    assert [rows.drawn_by(data, 5) for data in ("synth-2", "3-sources")] == [5, 0]


def test_texts_have_their_first_views_without_negative_weights(small):
    problem = rows.problem("reuters-1", 0)
    assert list(problem.views) == ["a", "b"]
    assert (problem.kernel, problem.metric, problem.n_clusters) == ("normalized_poly", "cosine", 6)
    for name, view in problem.views.items():
        np.testing.assert_array_equal(view.toarray(), np.maximum(small[name].toarray(), 0.0))
    assert rows.words(np.array([[-1.0, 2.0]])).tolist() == [[0.0, 2.0]]
    assert problem.joined().shape == (90, 80)
    assert rows.problem("synth-1", 0).joined().shape == (60, 4)


def test_silhouettes_are_measured_in_the_view_in_all_side_by_side_or_view_by_view():
    problem = rows.problem("synth-2", 0)
    np.testing.assert_array_equal(rows.judged_samples(problem, "view-1"), problem.views["view_1"])
    assert rows.judged_samples(problem, "concatenated").shape == (60, 6)
    assert (
        list(rows.judged_samples(problem, "sum")) == list(rows.judged_samples(problem, "joint")) == list(problem.views)
    )


# --- one clustering --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "rounded"),
    [
        ({"sigma": 1.1}, (("sigma", 1.0),)),
        ({"sigma": 0.1}, (("sigma", 0.1),)),
        ({"t": 3.0, "degree": 2}, (("degree", 2), ("t", pytest.approx(10 ** (1 / 3))))),
    ],
)
def test_kernel_parameters_are_rounded_to_a_grid(params, rounded):
    assert rows.rounded_kernel(params) == rounded


def test_equal_settings_are_fitted_once():
    rows.fitted.cache_clear()  # of other tests in the same process
    for sigma, shares in ((0.99, (0.29, 0.61)), (1.02, (0.35, 0.5))):
        KeptClustering(method="joint", kernel_params={"sigma": sigma}, gamma_shares=shares).fit()
    KeptClustering(method="per-view", kernel_params=SIGMA, gamma_shares=(0.3, 0.6)).fit()
    assert rows.fitted.cache_info().misses == 1
    KeptClustering(method="joint", kernel_params=SIGMA, gamma_shares=(0.3, 0.9)).fit()
    assert rows.fitted.cache_info().misses == 2


@pytest.mark.parametrize("assignment", ["joint", "per_view"])
def test_both_assignments_are_those_of_the_estimator(assignment):
    problem = rows.problem("synth-2", 0)
    kept = KeptClustering(
        data="synth-2", method=assignment.replace("_", "-"), kernel_params=SIGMA, gamma_shares=(0.0, 0.3, 0.9)
    ).fit()
    model = MultiViewKernelSpectralClustering(
        2, gamma=[0.0, 18.0, 54.0], kernel_params=SIGMA, assignment=assignment
    ).fit(problem.views)
    names = {"joint": "labels_", "per_view": "view_labels_"}
    np.testing.assert_array_equal(getattr(kept, names[assignment]), getattr(model, names[assignment]))
    assert hasattr(kept, "view_labels_") is (assignment == "per_view")
    np.testing.assert_allclose(np.abs(kept.scores_), np.abs(model.scores_), atol=1e-8)
    for criterion in ("silhouette", "blf", "baf"):
        scores = [score_clustering(each, problem.views, criterion=criterion) for each in (kept, model)]
        assert scores[0] == pytest.approx(scores[1])


@pytest.mark.parametrize("method", ["view-1", "concatenated", "sum", "product"])
def test_other_methods_are_kernel_spectral_clustering_of_one_matrix(method):
    problem = rows.problem("synth-1", 0)
    first, second = (np.exp(-0.5 * distances(view)) for view in problem.views.values())
    matrices = {"view-1": second, "concatenated": first * second, "sum": first + second, "product": first * second}
    kept = KeptClustering(method=method, kernel_params=SIGMA).fit()
    model = KernelSpectralClustering(2, kernel="precomputed").fit(matrices[method])
    assert normalized_mutual_info(kept.labels_, model.labels_) == pytest.approx(1.0)
    np.testing.assert_allclose(kept.degrees_, matrices[method].sum(axis=1))


def test_concatenated_words_are_not_multiplied_kernels():
    setting = (("degree", 2), ("t", 1.0))
    joined, product = (rows.combined_kernel("3-sources", 0, method, setting) for method in ("concatenated", "product"))
    assert not np.allclose(joined, product)
    np.testing.assert_allclose(np.diagonal(joined), 1.0)


def test_a_kept_clustering_can_be_cloned_and_set():
    model = clone(KeptClustering(data="synth-2", draw=3, method="sum")).set_params(kernel_params=SIGMA)
    assert model.fit().labels_.shape == (60,)
    assert model.get_params()["draw"] == 3


# --- the other methods -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", rows.COMPARATORS)
def test_comparators_are_the_estimators_on_the_kernels_of_all_views(method):
    problem = rows.problem("synth-2", 0)
    kept = KeptClustering(data="synth-2", method=method, kernel_params=SIGMA, strengths=(0.01, 0.028, 0.052)).fit()
    options = {"kernel_params": SIGMA, "random_state": 0}
    couplings = [0.01, 0.03, 0.05]
    models = {
        "okkc": OptimizedKernelKMeans(2, **options),
        "co-reg-p": CoRegularizedSpectralClustering(2, regularization=couplings, **options),
        "co-reg-c": CoRegularizedSpectralClustering(2, variant="centroid", regularization=couplings, **options),
        "mvnmf": MultiViewNMF(2, regularization=[0.01, 0.01, 0.1], n_init=others.NMF_STARTS, random_state=0),
    }
    views = (
        [view - view.min(axis=0).clip(max=0) for view in problem.views.values()] if method == "mvnmf" else problem.views
    )
    np.testing.assert_array_equal(kept.labels_, models[method].fit(views).labels_)
    assert kept.scores_.shape == (60, 1)
    assert kept.degrees_.shape == (60,)


@pytest.mark.parametrize("method", rows.COMPARATORS)
def test_comparators_are_tuned_over_what_they_have(method):
    problem = rows.problem("synth-2", 0)
    result = rows.space(problem, method)
    assert ("kernel_params" in result) is (method != "mvnmf")
    assert len(result.get("strengths", ())) == (0 if method == "okkc" else 3)
    if method == "okkc":
        return
    low, high = rows.NMF_STRENGTHS if method == "mvnmf" else rows.STRENGTHS
    drawn = result["strengths"][0].rvs(200, random_state=0)
    assert low <= drawn.min()
    assert drawn.max() <= high
    on_grid = {"mvnmf": [0.001, 0.01, 0.1]}.get(method, [0.01, 0.03, 0.05])
    assert sorted(set(rows.rounded(drawn, method))) == on_grid


def test_scores_of_comparators_are_principal_components():
    points = np.random.default_rng(1).normal(size=(30, 5)) * [5, 3, 1, 0.5, 0.1]
    scores = others.principal_scores(points, 2)
    np.testing.assert_allclose(scores.mean(axis=0), 0.0, atol=1e-12)
    kernel = centred(points @ points.T)
    np.testing.assert_allclose(np.abs(principal_components(kernel, 2)[0]), np.abs(scores))
    scaled = others.to_unit_scatter(points @ points.T)
    assert np.trace(centred(scaled)) / 30 == pytest.approx(1.0)


def test_factors_get_no_negative_value_and_no_needless_zeros():
    X = np.array([[-1.0, 2.0], [3.0, 5.0]])
    np.testing.assert_array_equal(others.not_negative(X), [[0.0, 2.0], [4.0, 5.0]])
    assert X[0, 0] == -1.0
    words = np.zeros((4, 20))
    words[:, 3] = 1.0
    assert sparse.issparse(others.not_negative(words))
    kept = sparse.csr_array(words)
    assert others.not_negative(kept) is kept


def test_mvksc_is_at_least_as_good_as_the_best_other_method_to_three_digits(monkeypatch):
    best = dict.fromkeys(rows.COMPARATORS, 0.2) | {"co-reg-c": 0.4504, "joint": 0.4496, "per-view": 0.1}
    monkeypatch.setattr(
        rows, "table_row", lambda restarts, seed, *, data, method, criterion: {"nmi_mean": best[method]}
    )
    assert rows.comparators_row(1, 0, data="synth-1")["at_least_as_good"] == 1.0
    best["okkc"] = 0.46
    result = rows.comparators_row(1, 0, data="synth-1")
    assert (result["at_least_as_good"], result["nmi_okkc"]) == (0.0, 0.46)


def test_mvksc_is_ahead_of_all_on_large_sets_only_if_it_is_for_every_number_of_samples(monkeypatch):
    others_nmi = {10: 0.3, 20: 0.35}
    monkeypatch.setattr(figures, "large", lambda n, draw: 0.35)
    monkeypatch.setattr(figures, "large_comparator", lambda n, draw, method: others_nmi[n])
    assert figures.large_comparators_row(2, 0, sizes=(10,))["ahead_of_all"] == 1.0
    result = figures.large_comparators_row(2, 0, sizes=(10, 20))
    assert (result["ahead_of_all"], result["nmi_okkc_10"], result["nmi_mvksc_20"]) == (0.0, 0.3, 0.35)


@pytest.mark.parametrize("method", rows.COMPARATORS)
def test_other_methods_use_all_samples_of_a_large_set(method):
    assert 0.0 <= figures.large_comparator(40, 1, method) <= 1.0
    assert figures.large_comparator(40, 1, method) == figures.large_comparator.__wrapped__(40, 1, method)


def distances(X):
    return ((X[:, None] - X) ** 2).sum(axis=2)


# --- searches --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("criterion", rows.CRITERIA)
def test_a_search_never_sees_the_classes(criterion, monkeypatch):
    problem, result = rows.problem("synth-1", 0), []
    for target in (problem.target, problem.target[::-1].copy()):
        monkeypatch.setattr(rows, "problem", partial(always, replace(problem, target=target)))
        models = []
        monkeypatch.setattr(rows, "agreements", partial(noted, models))
        rows.searched("synth-1", "joint", criterion, 0.75, 0, None)
        result.append(models[-1].labels_)
    np.testing.assert_array_equal(*result)


def always(value, *_):
    return value


def noted(models, problem, model):
    models.append(model)
    return (Agreement(0.0, 0.0),)


def test_a_search_is_judged_by_the_clusters_it_found_and_the_best_it_met():
    result = rows.searched("synth-1", "per-view", "sil", 0.75, 0, None)
    assert len(result.agreements) == 2
    assert result.best.nmi == max(each.nmi for each in result.agreements)
    assert result.best_met >= result.best.nmi
    assert len(rows.searched("synth-1", "sum", "sil", 0.75, 0, None).agreements) == 1


def test_agreement_is_nmi_and_ari_view_by_view():
    problem = rows.problem("synth-1", 0)
    model = KeptClustering(method="per-view", kernel_params=SIGMA, gamma_shares=(0.3, 0.3)).fit()
    for agreement, labels in zip(rows.agreements(problem, model), model.view_labels_, strict=True):
        expected = normalized_mutual_info(problem.target, labels), adjusted_rand_index(problem.target, labels)
        assert agreement == Agreement(*expected)


def test_the_best_eta_and_view_stand_beside_a_fixed_eta_and_the_mean_over_views(monkeypatch):
    by_eta = {0.75: (0.2, 0.3), 0.80: (0.5, 0.1), 0.85: (0.4, 0.4), 0.90: (0.0, 0.0), 0.95: (0.1, 0.1)}

    def tuned(data, method, criterion, eta, seed, metric=None):
        return Tuned(tuple(Agreement(nmi, nmi / 2) for nmi in by_eta[eta]), 0.6 + eta / 10)

    monkeypatch.setattr(rows, "tuned", tuned)
    assert rows.one_row("synth-1", "per-view", "blf", 0) == pytest.approx(
        {
            "nmi": 0.5,
            "ari": 0.25,
            "nmi_fixed_eta": 0.3,
            "ari_fixed_eta": 0.15,
            "nmi_views": 0.3,
            "ari_views": 0.15,
            "nmi_best_met": 0.695,
        }
    )
    only = rows.one_row("synth-1", "per-view", "sil", 0)
    assert (only["nmi"], only["nmi_best_met"], "nmi_fixed_eta" in only) == (0.3, pytest.approx(0.675), False)
    assert "nmi_euclidean" in rows.one_row("3-sources", "per-view", "sil", 0)


def test_single_views_are_tuned_one_by_one(monkeypatch):
    result = {"view-0": Agreement(0.1, 0.0), "view-1": Agreement(0.4, 0.3)}
    monkeypatch.setattr(
        rows, "searched", lambda data, method, *rest: Tuned((result[method],), 0.5 if method == "view-0" else 0.45)
    )
    assert rows.tuned("synth-1", "single", "sil", 0.75, 0) == Tuned(tuple(result.values()), 0.5)


def test_rows_are_means_over_draws(monkeypatch):
    monkeypatch.setattr(rows, "one_row", lambda data, method, criterion, seed: {"nmi": seed / 10, "nmi_views": 0.2})
    assert rows.table_row(3, 1, data="synth-1", method="joint", criterion="blf") == pytest.approx(
        {"nmi_mean": 0.2, "nmi_std": 0.1, "nmi_std_error": np.sqrt(0.5), "nmi_views_mean": 0.2}
    )


def test_claims_compare_every_method_at_its_best_criterion(monkeypatch):
    best = {"single": 0.3, "concatenated": 0.5, "sum": 0.4, "product": 0.1, "per-view": 0.45, "joint": 0.2}

    def table_row(restarts, seed, *, data, method, criterion):
        return {"nmi_mean": best[method] if criterion == "baf" else 0.0}

    monkeypatch.setattr(rows, "table_row", table_row)
    result = rows.claims_row(1, 0, data="synth-1")
    assert [result[f"ahead_of_{method}"] for method in ("single", "concatenated", "sum", "product")] == [1, 0, 1, 1]
    assert result["nmi_per-view"] == 0.45


# --- figures ---------------------------------------------------------------------------------------------------------


def test_clusters_of_figure_2_have_the_printed_width_and_gamma(monkeypatch):
    monkeypatch.setattr(rows, "SAMPLES", 120)
    drawn = make_mvksc_synth2(120, random_state=4)
    width = {"gamma": 5.0}  # exp(-d^2 / (2 sigma^2)) with sigma^2 = 0.1
    labels = MultiViewKernelSpectralClustering(2, gamma=1.0, kernel_params=width).fit(drawn.views).labels_
    result = figures.boundaries(4)
    assert len(result) == 4
    assert result[0].nmi == pytest.approx(normalized_mutual_info(drawn.target, labels))
    assert result[0].size_ratio == pytest.approx(
        min(labels.sum(), 120 - labels.sum()) / max(labels.sum(), 120 - labels.sum())
    )


def test_claims_on_figures_2_and_3_are_about_means(monkeypatch):
    draws = [
        [Halves(0.9, 0.9), Halves(0.1, 0.1), Halves(0.2, 0.1), Halves(0.3, 0.6)],
        [Halves(0.5, 0.8), Halves(0.6, 0.1), Halves(0.2, 0.1), Halves(0.3, 0.2)],
    ]
    monkeypatch.setattr(figures, "boundaries", lambda draw: draws[draw])
    result = figures.boundaries_row(2, 0)
    assert (result["mean_nmi_ahead"], result["draws_ahead"], result["mvksc_nmi_mean"]) == (1.0, 0.5, 0.7)
    sizes = figures.sizes_row(2, 0)
    assert (sizes["mvksc_almost_equal"], sizes["draws_almost_equal"]) == (1.0, 1.0)
    assert (sizes["ksc_one_dominant"], sizes["draws_one_dominant"]) == (1.0, 0.5)
    draws[1][0] = Halves(0.1, 0.5)
    assert figures.boundaries_row(2, 0)["mean_nmi_ahead"] == 1.0
    assert figures.boundaries_row(1, 1)["mean_nmi_ahead"] == 0.0
    assert figures.sizes_row(2, 0)["mvksc_almost_equal"] == 0.0


def test_large_sets_are_trained_on_a_part(monkeypatch):
    monkeypatch.setattr(figures, "TRAINED", 50)
    drawn = make_mvksc_synth1(200, random_state=2)
    model = MultiViewKernelSpectralClustering(2, kernel_params=SIGMA, n_train_samples=50, random_state=2)
    assert figures.large(200, 2) == normalized_mutual_info(drawn.target, model.fit(drawn.views).labels_)
    assert 0.0 <= figures.large(30, 2) <= 1.0


def test_nmi_stays_the_same_within_a_band(monkeypatch):
    nmi = {10: 0.40, 20: 0.43, 30: 0.46}
    monkeypatch.setattr(figures, "large", lambda n, draw: nmi[n])
    assert figures.large_claims_row(2, 0, sizes=(10, 20)) == {"stays_the_same": 1.0, "spread": pytest.approx(0.03)}
    assert figures.large_claims_row(2, 0, sizes=(10, 20, 30))["stays_the_same"] == 0.0


# --- declarations ----------------------------------------------------------------------------------------------------


# Rows of an experiment share clusterings, so that they are one test.
@pytest.mark.parametrize("experiment", [name for name, cells in CELLS.items() if cells])
def test_a_row_gives_what_its_table_prints(experiment, monkeypatch):
    monkeypatch.setattr(figures, "TRAINED", 40)
    monkeypatch.setattr(rows, "ETAS", (0.75, 0.9))
    monkeypatch.setattr(figures, "large", lambda n, draw, plain=figures.large.__wrapped__: plain(min(n, 60), draw))
    other = figures.large_comparator.__wrapped__
    monkeypatch.setattr(figures, "large_comparator", lambda n, draw, method: other(min(n, 60), draw, method))
    cells = catalogue()[experiment].cells
    for name in CELLS[experiment]:
        cell = cells[name]
        row = cell.run(restarts=2, seed=0)
        assert set(cell.printed) <= set(row), name
        assert not np.isnan(list(row.values())).any(), name


@pytest.mark.parametrize("name", ["claims", "claims-others"])
@pytest.mark.parametrize("experiment", TABLES)
def test_claims_on_a_table_give_what_is_held_against_them(experiment, name, monkeypatch):
    monkeypatch.setattr(rows, "one_row", lambda *_: {"nmi": 0.5, "ari": 0.5})
    cell = catalogue()[experiment].cells[name]
    assert set(cell.printed) <= set(cell.run(restarts=2, seed=0))


def test_every_method_and_criterion_of_a_table_is_a_cell():
    for name in TABLES:
        declared = set(catalogue()[name].cells)
        methods = {f"{method}-{each}" for method in rows.METHODS for each in rows.CRITERIA}
        assert declared == methods | {"claims", "claims-others"}


def test_the_printed_tables_are_whole():
    printed = tables.printed_tables()
    assert len(printed) == 5 * 10 * 3
    assert printed["synth-2", "okkc", "sil"] == (0.428, 0.306)
    assert printed["synth-1", "mvnmf", "baf"] == (0.00635, 1.20e-7)
    assert printed["reuters-2", "co-reg-p", "sil"] == (0.403, 0.294)
    assert printed["3-sources", "co-reg-c", "blf"] == (0.640, 0.535)
    assert printed["synth-1", "joint", "blf"] == (0.404, 0.505)
    assert printed["synth-2", "joint", "sil"] == (0.989, 0.996)
    assert printed["reuters-1", "per-view", "baf"] == (0.479, 0.394)
    assert printed["reuters-2", "joint", "sil"] == (0.161, 0.095)
    assert printed["3-sources", "single", "baf"] == (0.555, 0.609)
    assert printed["3-sources", "joint", "baf"] == (0.627, 0.633)


def test_mvksc_is_behind_where_the_printed_tables_say_so():
    printed = tables.printed_tables()
    for data in ("synth-1", "synth-2", "reuters-1", "reuters-2", "3-sources"):
        best = {
            methods: max(printed[data, method, each][0] for method in methods for each in rows.CRITERIA)
            for methods in (rows.COUPLED, rows.COMPARATORS)
        }
        assert (best[rows.COUPLED] >= best[rows.COMPARATORS]) is (data != tables.BEHIND)


@pytest.mark.parametrize("name", ["2-synth-1", "4-3-sources"])
def test_one_draw_or_search_is_judged_by_the_deviation_of_ours(name):
    experiment = catalogue()[f"mvksc-{name}"]
    cell = experiment.cells["joint-blf"]
    row = {"nmi_mean": 0.5, "nmi_std": 0.03, "ari_mean": 0.4, "ari_std": np.nan}
    fake = replace(experiment, data=(), cells={"joint-blf": replace(cell, run=partial(fixed, row))})
    nmi, ari, *_ = run_experiment(fake, restarts=3).cells[0].figures
    assert nmi.allowed == pytest.approx(0.0005 + ERRORS * 0.03 * np.sqrt(1 / 3 + 1))
    assert ari.allowed == pytest.approx(0.0005)


@pytest.mark.parametrize(
    ("cell", "change"), [("joint-blf", {"nmi_mean": 0.25}), ("single-baf", {"ari_mean": 0.15}), ("claims", {})]
)
def test_a_figure_that_is_off_is_caught(cell, change):
    experiment = catalogue()["mvksc-2-synth-1"]
    declared = experiment.cells[cell]
    printed = {name: figure.value for name, figure in declared.printed.items()}
    off = change or {"ahead_of_sum": 0.0}
    for row, verdict in ((printed, Verdict.AGREES), (printed | off, Verdict.DIFFERS)):
        result = run_experiment(replace(experiment, cells={cell: replace(declared, run=partial(fixed, row))}))
        assert verdict in result.verdicts
        assert (Verdict.DIFFERS in result.verdicts) is (verdict is Verdict.DIFFERS)


def fixed(row, restarts, seed):
    return row
