"""Graph cuts from their definitions: dense matrices, plain lists, every cost added up anew. And graphs to try them on.

Weights of generated graphs are multiples of 1/16 unless asked otherwise: sums of them are exact in any order, so that
equal shares are equal numbers and the growth of a cluster has one right outcome.
"""

import itertools

import numpy as np
from hypothesis import strategies as st

from kernelweave import metrics

OBJECTIVES = ("normalized_cut", "ratio_association", "ratio_cut")
KINDS = ("random", "components", "isolated", "star", "path", "cliques")


# --- graphs ----------------------------------------------------------------------------------------------------------


def path(n):
    """Return n nodes in a row."""
    return np.diag(np.ones(n - 1), 1) + np.diag(np.ones(n - 1), -1)


def cliques(*sizes, chain=True):
    """Return cliques of the given sizes, the last node of each tied to the first of the next where ``chain``."""
    n, A, lo = sum(sizes), np.zeros((sum(sizes),) * 2), 0
    for size in sizes:
        A[lo : lo + size, lo : lo + size] = 1.0 - np.eye(size)
        lo += size
        if chain and lo < n:
            A[lo - 1, lo] = A[lo, lo - 1] = 1.0
    return A


def draw_graph(rng, n, kind):
    """Return the unit edges of a graph of n nodes, above the diagonal."""
    if kind == "star":
        A = np.zeros((n, n))
        A[0, 1:] = 1.0
        return A
    if kind == "path":
        return np.triu(path(n))
    if kind == "cliques":
        return np.triu(cliques(*(len(nodes) for nodes in np.array_split(np.arange(n), max(1, n // 4)))))
    A = np.triu(rng.random((n, n)) < rng.choice([0.15, 0.35, 0.8]), 1).astype(float)
    if kind == "components":
        side = rng.integers(3, size=n)
        A *= side[:, None] == side[None, :]
    elif kind == "isolated":
        alone = rng.random(n) < 0.3
        A[alone] = A[:, alone] = 0.0
    return A


@st.composite
def graphs(draw, min_n=3, max_n=14, kinds=KINDS):
    """Draw a symmetric affinity matrix: unit or weighted edges, self-loops or none, nodes in any order."""
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    n, kind = draw(st.integers(min_n, max_n)), draw(st.sampled_from(kinds))
    A = draw_graph(rng, n, kind)
    if draw(st.booleans()):
        A *= rng.integers(1, 64, size=(n, n)) / 16.0
    A += A.T
    if draw(st.booleans()):
        A[np.diag_indices(n)] = rng.integers(0, 3, size=n)
    order = rng.permutation(n) if draw(st.booleans()) else np.arange(n)
    return A[np.ix_(order, order)]


@st.composite
def partitioned_graphs(draw, max_clusters=4, objectives=OBJECTIVES, **options):
    """Draw a graph, an objective and labels in which every cluster has a node with a mass, and their number."""
    A, objective = draw(graphs(**options)), draw(st.sampled_from(objectives))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    usable = rng.permutation(np.flatnonzero(masses(A, objective) > 0))
    k = draw(st.integers(1, max(1, min(len(usable), max_clusters))))
    labels = rng.integers(k, size=len(A))
    labels[usable[:k]] = np.arange(k)[: len(usable)]
    return A, objective, labels, k


# --- costs -----------------------------------------------------------------------------------------------------------


def masses(A, objective):
    return A.sum(axis=1) if objective == "normalized_cut" else np.ones(len(A))


def value(A, labels, objective):
    """Return the objective as users read it."""
    return getattr(metrics, objective)(A, labels)


def cost(A, labels, objective):
    """Return the sum of (cut_share * degree - association) / mass over the clusters that have a mass."""
    total = 0.0
    for c in np.unique(labels):
        inside = labels == c
        mass = masses(A, objective)[inside].sum()
        cut_share = A[inside].sum() if objective == "ratio_cut" else 0.0
        total += (cut_share - A[np.ix_(inside, inside)].sum()) / mass if mass > 0 else 0.0
    return total


def stats(A, labels, objective, k):
    """Return association, degree, mass and number of nodes with a mass, node by node."""
    table, weight = np.zeros((4, k)), masses(A, objective)
    for i, c in enumerate(labels):
        table[0, c] += sum(A[i, j] for j in range(len(A)) if labels[j] == c)
        table[1, c] += A[i].sum()
        table[2, c] += weight[i]
        table[3, c] += weight[i] > 0
    return table


# --- moves -----------------------------------------------------------------------------------------------------------


def growth(A, labels, objective, seed):
    """Return the nodes in the order in which the seed's cluster takes them, one at least left behind."""
    weight, degree = masses(A, objective), A.sum(axis=1)
    home = [i for i in range(len(A)) if labels[i] == labels[seed] and weight[i] > 0]
    half = sum(weight[i] for i in home) / 2
    taken, reached = [], [seed]
    while len(taken) < len(home) - 1:
        open_ = [i for i in reached if i not in taken]
        if not open_:
            break
        shares = [sum(A[i, j] for j in taken) / degree[i] if degree[i] > 0 else 0.0 for i in open_]
        node = open_[shares.index(max(shares))]  # the first of equals was found first
        if taken and sum(weight[i] for i in taken) + weight[node] > half:
            break
        taken.append(node)
        reached += [j for j in home if A[node, j] > 0 and j not in reached]
    return taken


def split_changes(A, labels, objective, seed):
    """Return the order of growth and the change of the cost at every prefix of it; empty for who cannot found."""
    weight = masses(A, objective)
    if weight[seed] <= 0 or np.count_nonzero(weight[labels == labels[seed]] > 0) < 2:
        return [], np.array([np.inf])
    order, before, changes = growth(A, labels, objective, seed), cost(A, labels, objective), []
    for size in range(1, len(order) + 1):
        moved = labels.copy()
        moved[order[:size]] = labels.max() + 1
        changes.append(cost(A, moved, objective) - before)
    return order, np.array(changes)


def single_moves(A, labels, objective, k):
    """Return the change of the cost by every allowed move (node, cluster); no cluster may lose its last mass."""
    weight, before, changes = masses(A, objective), cost(A, labels, objective), {}
    for node in range(len(A)):
        if weight[node] <= 0 or np.count_nonzero(weight[labels == labels[node]] > 0) < 2:
            continue
        for c in set(range(k)) - {labels[node]}:
            moved = labels.copy()
            moved[node] = c
            changes[node, c] = cost(A, moved, objective) - before
    return changes


def polished(A, labels, objective, k, tolerance):
    """Return labels after moving node by node, in order, each to its best cluster, until a sweep moves none."""
    labels, moved = labels.copy(), True
    while moved:
        moved = False
        for node in range(len(A)):
            changes = {c: change for (i, c), change in single_moves(A, labels, objective, k).items() if i == node}
            best = min(sorted(changes), key=changes.get, default=None)
            if best is not None and changes[best] < -tolerance:
                labels[node], moved = best, True
    return labels


def merge_changes(A, labels, objective, k):
    """Return the change of the cost by joining every pair of clusters with an edge between them."""
    before, changes = cost(A, labels, objective), {}
    for a, b in itertools.combinations(range(k), 2):
        if A[np.ix_(labels == a, labels == b)].any():
            changes[a, b] = cost(A, np.where(labels == b, a, labels), objective) - before
    return changes


def optimum(A, objective, k):
    """Return the least cost of all partitions into k clusters that each have a mass."""
    weight, best = masses(A, objective), np.inf
    for rest in itertools.product(range(k), repeat=len(A) - 1):
        labels = np.array((0, *rest))
        if (np.bincount(labels, weight > 0, k) > 0).all():
            best = min(best, cost(A, labels, objective))
    return best


def n_components(A):
    """Return how many connected components have an edge."""
    unseen, components = set(np.flatnonzero(A.any(axis=1)).tolist()), 0
    while unseen:
        stack, components = [unseen.pop()], components + 1
        while stack:
            near = unseen & set(np.flatnonzero(A[stack.pop()]).tolist())
            unseen -= near
            stack.extend(near)
    return components
