import math
import sys

import numpy as np
import pytest
import scipy.sparse as sp

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


@pytest.mark.parametrize(("objective", "best"), [("normalized_cut", 2 / 3), ("ratio_association", 2.0)])
def test_the_best_partition_counts_and_one_with_too_few_clusters_does_not(objective, best):
    path = sp.csr_array(np.diag(np.ones(3), 1) + np.diag(np.ones(3), -1))
    halves, worse, whole = ([0, 0, 1, 1], [0, 1, 0, 1], [0, 0, 0, 0])
    result = graph_cuts.best_value(path, map(np.array, (worse, whole, halves)), objective, 2)
    assert result == pytest.approx(best)
    assert math.isnan(graph_cuts.best_value(path, [np.array(whole)], objective, 2))


@pytest.mark.parametrize("row", ["fast", "exact", "exemplars", "polished"])
def test_every_search_of_ours_finds_the_groups_of_a_chain(chain, row):
    groups = np.repeat(np.arange(8), 4)
    for objective, measure in (("normalized_cut", normalized_cut), ("ratio_association", ratio_association)):
        run = catalogue()[f"msc-5.5-{objective.replace('_', '-')}-uk"].cells[row].run
        options = {"counts": (2, 4, 8)} if "how" in run.keywords else {}
        result = run(restarts=1, seed=0, **options)
        assert list(result) == ["value_2", "value_4", "value_8"]
        assert result["value_8"] == pytest.approx(measure(chain, groups))


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
def test_no_figure_is_called_printed_that_a_source_only_plots(experiment):
    # tests/golden/test_graph_cuts.py holds the searches against spectral clustering, run there and then.
    assert not any(cell.printed for cell in experiment.cells.values())
