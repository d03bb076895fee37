"""Cuts of graphs by labels."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.utils import check_random_state

from kernelweave import GraphCut
from kernelweave.evaluation.metrics.cuts import cut_of


def random_graph(seed, n=30):
    rng = check_random_state(seed)
    weights = np.triu(rng.random_sample((n, n)) * (rng.random_sample((n, n)) < 0.3))
    return weights + np.triu(weights, 1).T  # with self-loops


@pytest.mark.parametrize("seed", range(3))
def test_a_cut_is_what_its_definition_says(seed):
    A = random_graph(seed)
    labels = check_random_state(seed).randint(0, 3, len(A)) * 7
    cut = cut_of(sp.csr_array(A), labels)
    groups = [labels == name for name in np.unique(labels)]
    inside = [A[np.ix_(group, group)].sum() for group in groups]
    volumes = [A[group].sum() for group in groups]
    assert cut.normalized == pytest.approx(sum((v - i) / v for v, i in zip(volumes, inside, strict=True)))
    assert cut.share == pytest.approx(1 - sum(inside) / A.sum())
    expected = sum((v / A.sum()) ** 2 for v in volumes)
    assert cut.modularity == pytest.approx(sum(inside) / A.sum() - expected)


def test_the_normalized_cut_is_that_of_graph_cut():
    A = sp.csr_array(random_graph(5))
    model = GraphCut(3, random_state=0).fit(A)
    assert cut_of(A, model.labels_).normalized == pytest.approx(model.cut_value_)


def test_nodes_without_edges_and_graphs_without_weight_cut_nothing():
    A = sp.csr_array(np.array([[0, 1.0, 0], [1.0, 0, 0], [0, 0, 0]]))
    assert cut_of(A, np.array([0, 0, 1])).normalized == 0.0
    assert cut_of(sp.csr_array((3, 3)), np.array([0, 1, 2])).share == 0.0
