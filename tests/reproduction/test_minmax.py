"""The rows of PhD chapter 2 on small data, the tables as declared, and what they say of the order of methods."""

import os
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from kernelweave.foundation.random_streams import streams
from kernelweave.kernels.spec.fitting import fit_kernel
from kernelweave.solvers.kmeans.minmax import minmax_kmeans
from reproduction import catalogue, run_experiment
from reproduction.experiments.minmax import KERNEL_TABLES, VECTOR_TABLES
from reproduction.orderings import orderings
from reproduction.rows import minmax as rows

needs_data = pytest.mark.skipif(not os.environ.get("KERNELWEAVE_DATA"), reason="KERNELWEAVE_DATA is not set")
VECTOR_ROWS = ["minmax-0", "minmax-0.1", "minmax-0.3", "k-means", "k-means-pp", "pifs"]
KERNEL_ROWS = ["minmax-0", "minmax-0.1", "minmax-0.3", "k-means"]


# --- one restart -----------------------------------------------------------------------------------------------------


def test_the_last_assignment_is_measured_by_the_centres_it_was_made_with():
    X, target = blobs(width=2.0)
    problem = as_problem(X, target)
    start = rows.random_labels(problem, streams(3, 1)[0])
    run = minmax_kmeans(problem.op, start, problem.weights, n_clusters=3, memory=0.0, max_iter=2)
    centres = np.array([X[run.labels == c].mean(axis=0) for c in range(3)])
    distances = ((X[:, None] - centres) ** 2).sum(axis=2)
    expected = (run.cluster_weights**run.p * distances).argmin(axis=1)
    assert not np.array_equal(expected, run.labels)

    labels, variances, recentred = rows.last_assignment(problem, run)
    np.testing.assert_array_equal(labels, expected)
    np.testing.assert_allclose(variances, [distances[expected == c, c].sum() for c in range(3)])
    np.testing.assert_allclose(
        recentred, [X[expected == c].var(axis=0).sum() * (expected == c).sum() for c in range(3)]
    )
    assert variances.sum() > recentred.sum()


def test_a_run_that_came_to_rest_has_the_same_variances_either_way():
    problem = as_problem(*blobs(width=0.3))
    start = rows.random_labels(problem, streams(0, 1)[0])
    run = minmax_kmeans(problem.op, start, problem.weights, n_clusters=3)
    labels, variances, recentred = rows.last_assignment(problem, run)
    assert run.converged
    np.testing.assert_array_equal(labels, run.labels)
    np.testing.assert_allclose(variances, run.scatter)
    np.testing.assert_allclose(recentred, run.scatter)


def test_an_assignment_that_leaves_a_singleton_is_not_taken():
    problem = as_problem(np.array([[0.0], [1.0], [10.0], [11.0]]), np.array([0, 0, 1, 1]))
    run = minmax_kmeans(problem.op, problem.target, problem.weights, n_clusters=2)
    greedy = replace(run, p=0.9, cluster_weights=np.array([1e-9, 1.0 - 1e-9]))
    labels, variances, _ = rows.last_assignment(problem, greedy)
    np.testing.assert_array_equal(labels, run.labels)
    np.testing.assert_array_equal(variances, run.scatter)


def test_plain_plusplus_draws_a_centre_in_every_group():
    X, target = blobs(width=1e-4)
    problem = as_problem(X, target)
    for rng in streams(0, 20):
        labels = rows.plusplus_labels(problem, rng)
        assert len({(a, b) for a, b in zip(target, labels, strict=True)}) == 3


# --- rows ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", VECTOR_ROWS)
def test_a_row_of_vectors_gives_what_its_table_prints(name, monkeypatch):
    monkeypatch.setitem(rows.VECTORS, "toy", partial(blobs, width=1.5))
    cell = catalogue()["phd-2.9-minmax"].cells[name]
    figures = partial(cell.run.func, **{**cell.run.keywords, "data": "toy"})(restarts=5, seed=0)
    check_figures(figures, cell)


@pytest.mark.parametrize("name", KERNEL_ROWS)
def test_a_row_of_kernels_gives_what_its_table_prints(name, monkeypatch):
    monkeypatch.setitem(rows.KERNELS, "toy", partial(blobs, width=1.5))
    cell = catalogue()["phd-2.12-minmax-kernel"].cells[name]
    figures = partial(cell.run.func, **{**cell.run.keywords, "data": "toy", "sigma": 2.0})(restarts=5, seed=0)
    check_figures(figures, cell)


def test_starts_that_collapse_are_counted_and_left_out_of_the_means(monkeypatch):
    monkeypatch.setitem(rows.VECTORS, "toy", lambda: (np.array([[0.0], [5.0], [9.0]]), np.arange(3)))
    figures = rows.vector_row(restarts=4, seed=0, data="toy", method="minmax")
    assert figures["share_collapsed"] == 1.0
    assert figures["share_converged"] == figures["share_free"] == 0.0
    assert np.isnan(figures["e_sum_mean"])


def test_the_true_partition_is_noticed(monkeypatch):
    monkeypatch.setitem(rows.VECTORS, "toy", partial(blobs, width=0.01))
    figures = rows.vector_row(restarts=10, seed=0, data="toy", method="k-means++")
    assert figures["share_correct"] == 1.0
    assert figures["nmi_mean"] == pytest.approx(1.0)


# --- data ------------------------------------------------------------------------------------------------------------


def test_a_face_rotated_by_nothing_keeps_its_central_window():
    face = np.random.default_rng(0).random((64, 64))
    np.testing.assert_allclose(rows._rotated(face, 0, 1.0), face[7:57, 7:57])


def test_faces_are_rotated_and_scaled_about_their_centre():
    across = np.arange(64) - 31.5
    radii = np.hypot(across[:, None], across)
    round_face, larger = np.exp(-((radii / 12) ** 2)), np.exp(-((radii / 13.2) ** 2))
    left, right = rows._rotated(round_face, 10, 1.0), rows._rotated(round_face, -10, 1.0)
    np.testing.assert_allclose(left, right[:, ::-1], atol=1e-12)
    np.testing.assert_allclose(left, round_face[7:57, 7:57], atol=5e-3)
    np.testing.assert_allclose(rows._rotated(round_face, 10, 1.1), larger[7:57, 7:57], atol=5e-3)


@pytest.mark.golden
@needs_data
def test_faces_have_mean_0_and_deviation_0_1_and_fewer_coordinates_keep_their_distances():
    X, target = rows.olivetti(folded=False)
    assert X.shape == (900, 2500)
    assert np.bincount(target).tolist() == [90] * 10
    np.testing.assert_allclose(X.mean(axis=1), 0.0, atol=1e-12)
    np.testing.assert_allclose(X.std(axis=1, ddof=1), 0.1)
    folded = rows.olivetti(folded=True)[0]
    assert folded.shape == (900, 900)
    np.testing.assert_allclose(folded @ folded.T, X @ X.T, atol=1e-9)


@pytest.mark.golden
@needs_data
@pytest.mark.parametrize(
    ("data", "n_samples", "n_features", "n_classes", "mass"),
    [
        ("pixel-averages", 2000, 240, 10, 1999),  # sum of squares: n - 1 for features of variance 1 / d
        ("profile-correlations", 2000, 216, 10, 1999),
        ("pendigits", 10992, 16, 10, 16 * 10991),
        ("ecoli", 307, 7, 4, None),
        ("dermatology", 358, 34, 6, 34 * 357),
    ],
)
def test_vectors_are_scaled_as_in_the_thesis(data, n_samples, n_features, n_classes, mass):
    X, target = rows.VECTORS[data]()
    assert X.shape == (n_samples, n_features)
    assert len(np.unique(target)) == n_classes
    assert np.isfinite(X).all()
    if mass is not None:
        assert (X**2).sum() == pytest.approx(mass)


# --- tables ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("table", [*VECTOR_TABLES, *KERNEL_TABLES], ids=lambda table: table.number)
def test_every_table_holds_mean_and_deviation_of_three_columns_in_a_and_b(table):
    kernel = table in KERNEL_TABLES
    experiment = catalogue()[f"phd-{table.number}-minmax" + ("-kernel" if kernel else "")]
    assert list(experiment.cells) == (KERNEL_ROWS if kernel else VECTOR_ROWS)
    for name, cell in experiment.cells.items():
        plain = [f"{column}_{kind}" for column in ("e_max", "e_sum", "nmi") for kind in ("mean", "std")]
        refined = [] if name.startswith("k-means") else [f"refined_{metric}" for metric in plain]
        assert [metric for metric in cell.printed if "share" not in metric] == plain + refined
        assert cell.printed["e_max_mean"].value < cell.printed["e_sum_mean"].value
        assert cell.restarts == (250 if table.number == "2.15" else 500)


def test_columns_come_from_their_place_in_the_table():
    printed = catalogue()["phd-2.7-minmax"].cells["minmax-0.1"].printed
    assert (printed["e_max_mean"].value, printed["e_max_std"].value) == (17497.21, 5431.65)
    assert (printed["refined_e_sum_mean"].value, printed["refined_e_sum_mean"].spread) == (60447.71, 751.37)
    assert printed["refined_e_sum_mean"].source == "PhD table 2.7(b), MinMax (beta = 0.1), e_sum"
    assert catalogue()["phd-2.12-minmax-kernel"].cells["minmax-0.3"].printed["refined_share_correct"].value == 29 / 500


# --- order of methods ------------------------------------------------------------------------------------------------


def test_printed_figures_keep_every_order_and_two_rows_exchanged_break_those_between_them():
    experiment = catalogue()["phd-2.10-minmax"]
    printed = {
        name: {key: figure.value for key, figure in cell.printed.items()} for name, cell in experiment.cells.items()
    }
    ordered = orderings(run_experiment(with_figures(experiment, printed)))
    assert all(order.reproduced for order in ordered)
    assert {(order.metric, order.lower, order.higher) for order in ordered} >= {
        ("e_max_mean", "minmax-0.3", "k-means"),
        ("e_max_mean", "minmax-0.1", "pifs"),
        ("refined_e_sum_mean", "minmax-0.3", "pifs"),
        ("refined_e_sum_mean", "pifs", "k-means-pp"),
    }
    assert not any(
        {order.lower, order.higher} == {"minmax-0", "minmax-0.1"} for order in ordered if "sum" in order.metric
    )

    printed["minmax-0.3"]["e_max_mean"], printed["k-means"]["e_max_mean"] = 2247.59, 1368.05
    broken = [order for order in orderings(run_experiment(with_figures(experiment, printed))) if not order.reproduced]
    assert ("minmax-0.3", "k-means") in [(order.lower, order.higher) for order in broken]
    assert {order.metric for order in broken} == {"e_max_mean"}
    assert any(order.contradicted for order in broken)


@pytest.mark.golden
@needs_data
def test_the_order_of_methods_on_dermatology_comes_out():
    ordered = orderings(run_experiment(catalogue()["phd-2.10-minmax"], restarts=60))
    assert not [order for order in ordered if order.contradicted]
    wide = [order for order in ordered if order.printed > 4.0 * order.error]
    assert len(wide) > 10
    assert all(order.reproduced for order in wide)


# --- helpers ---------------------------------------------------------------------------------------------------------


def blobs(width):
    """Three groups of 20 points around the corners of a triangle."""
    corners = np.repeat([[0.0, 0.0], [5.0, 0.0], [0.0, 7.0]], 20, axis=0)
    return corners + width * np.random.default_rng(0).standard_normal((60, 2)), np.repeat(np.arange(3), 20)


def as_problem(X, target):
    return rows.Problem(fit_kernel(X, "linear").operator(), np.ones(len(X)), target, len(np.unique(target)))


def check_figures(figures, cell):
    assert set(cell.printed) <= set(figures)
    assert figures["e_max_mean"] <= figures["e_sum_mean"]
    if "refined_e_sum_mean" in figures:
        assert figures["refined_e_sum_mean"] <= figures["e_sum_mean"] * (1 + 1e-9)


def with_figures(experiment, figures):
    """The same table, its cells giving the stated figures at once."""
    cells = {name: replace(cell, run=partial(stated, figures=figures[name])) for name, cell in experiment.cells.items()}
    return replace(experiment, cells=cells, data=())


def stated(restarts, seed, *, figures):
    return figures
