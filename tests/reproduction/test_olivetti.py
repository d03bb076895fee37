"""The lines of MSc figures 5.9 and 5.10 on small data, and the claims of the text on lines made by hand."""

import numpy as np
import pytest

from kernelweave import AffinityPropagation, GlobalKernelKMeans, KernelKMeans
from kernelweave.kernels.spec.fitting import fit_kernel
from kernelweave.metrics import misclassification_error
from reproduction import catalogue
from reproduction.experiments import olivetti

ERRORS, MISSES = (catalogue()[f"msc-figure-{number}-olivetti"] for number in ("5.9", "5.10"))


@pytest.fixture
def toy(monkeypatch):
    """Three groups on a plane instead of faces, and two numbers of clusters."""
    rng = np.random.default_rng(0)
    target = np.repeat(np.arange(3), 20)
    X = rng.normal(size=(60, 2)) + 4.0 * np.eye(3, 2)[target]
    K = np.exp(-((X[:, None] - X) ** 2).sum(axis=2) / 8.0)
    op = fit_kernel(K, "precomputed").operator("dense")
    monkeypatch.setattr(olivetti, "faces", lambda: (op, target))
    monkeypatch.setattr(olivetti, "CLUSTERS", (2, 5))
    forget()
    yield K, target
    forget()


def forget():
    for kept in (olivetti.search_paths, olivetti.started, olivetti.propagated):
        kept.cache_clear()


# --- lines -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["exact", "exemplars", "fast"])
def test_a_search_has_the_errors_of_the_estimator_at_every_number_of_clusters(toy, how):
    K, target = toy
    ce, me = (olivetti.search_row(restarts=1, seed=0, how=how, figure=figure) for figure in ("ce", "me"))
    for k in (2, 5):
        options = {"n_exemplars": 3 * k} if how == "exemplars" else {}
        model = GlobalKernelKMeans(k, kernel="precomputed", search=how, **options).fit(K)
        assert ce[f"ce_{k}"] == pytest.approx(model.inertia_)
        assert me[f"me_{k}"] == misclassification_error(target, model.labels_)
    assert ("n_exemplars_5" in ce) == (how == "exemplars")


@pytest.mark.parametrize(("drawn", "init"), [("points", "random"), ("labels", "random_partition")])
def test_the_best_run_is_the_restart_with_the_least_clustering_error_on_both_figures(toy, drawn, init):
    K, target = toy
    ce, me = (olivetti.starts_row(restarts=20, seed=3, figure=figure, drawn=drawn) for figure in ("ce", "me"))
    model = KernelKMeans(5, kernel="precomputed", init=init, n_init=20, random_state=3).fit(K)
    assert ce["ce_5_best_run"] == pytest.approx(model.inertia_)
    assert me["me_5_best_run"] == misclassification_error(target, model.labels_)
    assert ce["ce_5_mean"] > ce["ce_5_best_run"]
    assert ce["ce_5_std"] > 0


def test_affinity_propagation_is_measured_by_its_exemplars(toy):
    K, target = toy
    model = AffinityPropagation(5, kernel="precomputed", random_state=0).fit(K)
    ce, me = (olivetti.affinity_row(restarts=1, seed=0, figure=figure) for figure in ("ce", "me"))
    assert ce["ce_5"] == pytest.approx(model.objective_)
    assert me["me_5"] == misclassification_error(target, model.labels_)


def test_rows_and_claims_come_from_the_same_lines(toy):
    result = olivetti.lines("ce", (2, 5), "points", 20, 3)
    row = olivetti.starts_row(restarts=20, seed=3, figure="ce", drawn="points")
    assert result["mean"] == {k: row[f"ce_{k}_mean"] for k in (2, 5)}
    assert result["best"] == {k: row[f"ce_{k}_best_run"] for k in (2, 5)}
    assert set(result) == {"exact", "exemplars", "fast", "mean", "best", "affinity"}
    assert "affinity" not in olivetti.lines("ce", (2, 5), "points", 20, 3, affinity=False)


# --- claims ----------------------------------------------------------------------------------------------------------


def test_lines_as_the_text_says_meet_every_claim_on_the_clustering_error():
    result = olivetti.error_claims(as_in_the_text())
    assert {result[name] for name in ERRORS.cells["claims"].printed} == {1.0}
    assert result["differences_10"] == pytest.approx(0.04)
    few = olivetti.search_claims({name: {k: line[k] for k in (10, 20)} for name, line in as_in_the_text().items()})
    assert few == dict.fromkeys(ERRORS.cells["claims-few"].printed, 1.0)


@pytest.mark.parametrize(
    ("name", "k", "value", "broken"),
    [
        ("best", 50, 69.0, {"exact_lowest": 0.8, "exemplars_second_from_20": 0.75}),
        ("exemplars", 20, 100.15, {"exemplars_second_from_20": 0.75}),
        ("fast", 20, 91.0, {"fast_above_best_run_to_50": 2 / 3, "fast_nearest_to_best_run": 0.8}),
        ("fast", 150, 39.5, {"fast_below_best_run_from_70": 0.5, "mean_highest": 0.8}),
        ("mean", 10, 101.0, {"mean_highest": 0.8}),
        ("mean", 10, 150.0, {"differences_wider_than_at_10": 0.0}),
        ("affinity", 70, 1.0, {"affinity_highest": 0.8}),
        ("fast", 70, 500.0, {"order_overall": 0.0}),
    ],
)
def test_a_line_that_lies_elsewhere_breaks_the_claims_on_it(name, k, value, broken):
    ce = as_in_the_text()
    ce[name][k] = value
    result = olivetti.error_claims(ce)
    assert {claim: result[claim] for claim in broken} == pytest.approx(broken)


def test_lines_of_one_partition_do_not_lie_above_each_other():
    ce = as_in_the_text()
    ce["best"][10] = ce["exact"][10] * (1.0 - 1e-12)
    assert olivetti.error_claims(ce)["exact_lowest"] == 1.0


@pytest.mark.parametrize("starts", ["mean", "best"])
def test_lines_as_the_text_says_meet_every_claim_on_the_misclassification_error(starts):
    result = olivetti.misclassification_claims(as_in_the_text(), missed_as_in_the_text(starts), starts)
    assert {result[name] for name in MISSES.cells["claims"].printed} == {1.0}
    assert 0.0 < result["pairs_opposed_to_ce"] < 1.0


@pytest.mark.parametrize(
    ("name", "k", "value", "broken"),
    [
        ("fast", 50, 0.45, {"falls_with_clusters": 19 / 20, "variants_below_kernel_kmeans_50_70": 0.75}),
        ("exact", 20, 0.405, {"exact_among_two_best": 0.8}),
        ("mean", 70, 0.10, {"kernel_kmeans_worst_at_70": 0.0, "kernel_kmeans_sinks_to_70": 0.5}),
        ("affinity", 10, 0.5, {"affinity_worst_at_10": 0.0, "affinity_above_exact_to_50": 2 / 3}),
        ("affinity", 150, 0.12, {"affinity_best_at_150": 0.0, "affinity_nearer_exact_from_70": 0.5}),
        ("fast", 70, 0.11, {"variants_above_exact_50_70": 0.75}),
    ],
)
def test_a_line_of_misses_that_lies_elsewhere_breaks_the_claims_on_it(name, k, value, broken):
    me = missed_as_in_the_text("mean")
    me[name][k] = value
    result = olivetti.misclassification_claims(as_in_the_text(), me, "mean")
    assert {claim: result[claim] for claim in broken} == pytest.approx(broken)


def as_in_the_text():
    """Return errors by which every statement of MSc 5.4 holds."""
    return {
        "exact": by_clusters(100, 90, 70, 60, 30),
        "exemplars": by_clusters(101, 91, 71, 61, 31),
        "fast": by_clusters(102.2, 93.2, 75.2, 65, 37),
        "best": by_clusters(102, 93, 75, 65.2, 37.2),
        "mean": by_clusters(104, 97, 79, 69, 39),
        "affinity": by_clusters(150, 140, 120, 110, 60),
    }


def missed_as_in_the_text(starts):
    return {
        "exact": by_clusters(0.50, 0.33, 0.17, 0.12, 0.06),
        "exemplars": by_clusters(0.56, 0.38, 0.19, 0.14, 0.07),
        "fast": by_clusters(0.57, 0.40, 0.20, 0.15, 0.10),
        starts: by_clusters(0.55, 0.36, 0.23, 0.18, 0.09) | {20: 0.41},
        "affinity": by_clusters(0.60, 0.42, 0.22, 0.125, 0.055),
    }


def by_clusters(*errors):
    return dict(zip(olivetti.CLUSTERS, errors, strict=True))
