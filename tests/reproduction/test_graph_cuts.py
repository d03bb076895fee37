import math
import sys

import numpy as np
import pytest
import scipy.sparse as sp

from kernelweave import GraphCut, metrics
from kernelweave.metrics import normalized_cut, ratio_association
from reproduction import catalogue
from reproduction.experiments import graph_cuts

GRAPHS = [each for each in catalogue().values() if "exact" in each.cells and each.id.startswith("msc-5.5")]


@pytest.fixture
def chain(monkeypatch):
    """Eight groups of four nodes, joined in a chain, in the place of every benchmark."""
    A = np.kron(np.eye(8), np.ones((4, 4))) - np.eye(32)
    ends = np.arange(3, 31, 4)
    A[ends, ends + 1] = A[ends + 1, ends] = 1.0
    monkeypatch.setattr(graph_cuts, "_graph", lambda name: sp.csr_array(A))
    monkeypatch.setattr(graph_cuts, "COUNTS", (2, 4, 8))
    return A


def rival_wins():
    """A graph of which the fast search finds six clusters that are better than those of every other candidate."""
    rng = np.random.default_rng(6)
    A = np.triu(rng.random((40, 40)) * (rng.random((40, 40)) < 0.1), 2)
    A[np.arange(39), np.arange(1, 40)] = rng.random(39)
    return A + A.T


@pytest.mark.parametrize(("objective", "best"), [("normalized_cut", 2 / 3), ("ratio_association", 2.0)])
def test_the_best_partition_counts_and_one_with_too_few_clusters_does_not(objective, best):
    path = sp.csr_array(np.diag(np.ones(3), 1) + np.diag(np.ones(3), -1))
    halves, worse, whole = ([0, 0, 1, 1], [0, 1, 0, 1], [0, 0, 0, 0])
    result = graph_cuts.best_value(path, map(np.array, (worse, whole, halves)), objective, 2)
    assert result == pytest.approx(best)
    assert math.isnan(graph_cuts.best_value(path, [np.array(whole)], objective, 2))


@pytest.mark.parametrize("row", ["fast", "exemplars", "polished"])
def test_every_search_of_ours_finds_the_groups_of_a_chain(chain, row):
    groups = np.repeat(np.arange(8), 4)
    for objective, measure in (("normalized_cut", normalized_cut), ("ratio_association", ratio_association)):
        run = catalogue()[f"msc-5.5-{objective.replace('_', '-')}-uk"].cells[row].run
        options = {"counts": (2, 4, 8)} if "how" in run.keywords else {}
        result = run(restarts=1, seed=0, **options)
        assert list(result) == ["value_2", "value_4", "value_8"]
        assert result["value_8"] == pytest.approx(measure(chain, groups))


@pytest.mark.parametrize("objective", ["normalized_cut", "ratio_association"])
def test_the_exact_search_tells_who_won_and_what_it_finds_alone(chain, objective):
    counts = (2, 8)
    result = graph_cuts.exact_row(restarts=1, seed=0, graph="chain", objective=objective, counts=counts)
    spectral = graph_cuts.spectral_row(restarts=1, seed=0, graph="chain", objective=objective)
    sign = -1.0 if objective == "ratio_association" else 1.0
    assert len(result) == 5 * len(counts)
    for k in counts:
        assert sign * result[f"value_{k}"] <= sign * result[f"alone_{k}"] + 1e-9
        assert result[f"no_worse_than_spectral_{k}"] == (
            sign * result[f"value_{k}"] <= sign * spectral[f"value_{k}"] + 1e-9
        )
        assert result[f"alone_no_worse_than_spectral_{k}"] == (
            sign * result[f"alone_{k}"] <= sign * spectral[f"value_{k}"] + 1e-9
        )
        model = GraphCut(k, objective=objective, search="exact", random_state=0).fit(chain)
        assert result[f"won_by_{model.winner_}_{k}"] == 1.0
        assert result[f"alone_{k}"] == model.candidate_objectives_["search"]
        assert result[f"value_{k}"] == pytest.approx(model.cut_value_)
    groups = np.repeat(np.arange(8), 4)
    assert result["value_8"] == pytest.approx(getattr(metrics, objective)(chain, groups))


def test_the_figures_tell_where_a_rival_and_not_the_search_won(monkeypatch):
    A = rival_wins()
    monkeypatch.setattr(graph_cuts, "_graph", lambda name: sp.csr_array(A))
    result = graph_cuts.exact_row(restarts=1, seed=0, graph="any", objective="normalized_cut", counts=(6,))
    assert result["won_by_fast_6"] == 1.0
    assert "won_by_search_6" not in result
    assert result["value_6"] < result["alone_6"]


@pytest.mark.parametrize(
    ("ours", "theirs", "objective", "expected"),
    [
        (1.0, 1.5, "normalized_cut", 1.0),
        (1.5, 1.0, "normalized_cut", 0.0),
        (1.0, 1.5, "ratio_association", 0.0),
        (1.5, 1.0, "ratio_association", 1.0),
        (1.0 + 1e-13, 1.0, "normalized_cut", 1.0),
        (1.0 + 1e-6, 1.0, "normalized_cut", 0.0),
    ],
)
def test_no_worse_follows_the_objective_and_forgives_rounding_alone(ours, theirs, objective, expected):
    assert graph_cuts.no_worse(ours, theirs, objective) == expected
    assert math.isnan(graph_cuts.no_worse(ours, math.nan, objective))


@pytest.mark.parametrize("row", [graph_cuts.kernel_kmeans_row, graph_cuts.spectral_row, graph_cuts.metis_row])
def test_other_rows_give_the_same_figures(chain, row):
    if row is graph_cuts.metis_row:
        pytest.importorskip("pymetis")
    result = row(restarts=3, seed=0, graph="chain", objective="normalized_cut")
    assert list(result) == ["value_2", "value_4", "value_8"]
    assert min(result.values()) > 0


def test_without_pymetis_the_row_has_no_figures(monkeypatch):
    monkeypatch.setitem(sys.modules, "pymetis", None)
    result = graph_cuts.metis_row(restarts=1, seed=0, graph="uk", objective="normalized_cut")
    assert list(result) == ["value_32", "value_64", "value_128"]
    assert all(map(math.isnan, result.values()))


@pytest.mark.parametrize("experiment", GRAPHS, ids=lambda each: each.id)
def test_nothing_measured_by_us_stands_as_printed(experiment):
    assert [name for name, cell in experiment.cells.items() if cell.printed] == []
    assert "nan where pymetis is not installed" in experiment.protocol
    assert experiment.cells["metis"].label == "METIS"
    assert experiment.cells["exemplars"].label == "Search by 2k exemplars"
