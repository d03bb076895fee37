"""Graph fusion from its formulas: dense matrices, loops over pairs, every number added up anew."""

import numpy as np

SOFTENING = 0.05
SMALLEST_SHARE = 1e-12


# --- graphs of neighbours --------------------------------------------------------------------------------------------


def distances(Z):
    """Return all distances, pair by pair."""
    n = len(Z)
    D = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            D[i, j] = np.sqrt(sum((Z[i] - Z[j]) ** 2))
    return D


def nearest(D, m):
    """Return the m nearest others of every sample; of equals the first in the data."""
    lists = []
    for i in range(len(D)):
        others = [j for j in range(len(D)) if j != i]
        others.sort(key=lambda j: (D[i, j], j))
        lists.append(others[:m])
    return lists


def self_tuned_graph(D, m):
    """Return the mean of exp(-d^2 / (s_i s_j)) found from either end; s is the distance of the last neighbour."""
    n = len(D)
    near = nearest(D, m)
    radius = [D[i, near[i][-1]] for i in range(n)]
    least = SMALLEST_SHARE * max(radius)
    A = np.zeros((n, n))
    for i in range(n):
        for j in near[i]:
            scale = max(radius[i], least) * max(radius[j], least)
            weight = np.exp(-(D[i, j] ** 2) / scale) if D[i, j] > 0 else 1.0
            A[i, j] += weight / 2
            A[j, i] += weight / 2
    return A


def mean_graph(representations, sizes):
    """Return the mean of the graphs of every representation and size."""
    graphs = [self_tuned_graph(distances(Z), m) for Z in representations for m in sizes]
    return sum(graphs) / len(graphs)


# --- the fused graph -------------------------------------------------------------------------------------------------


def normalized(W):
    """Return w_ij / sqrt(d_i d_j), zero where a degree is."""
    n = len(W)
    degrees = [sum(W[i]) for i in range(n)]
    S = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            if degrees[i] > 0 and degrees[j] > 0:
                S[i, j] = W[i, j] / np.sqrt(degrees[i] * degrees[j])
    return S


def leading(W, count):
    """Return the largest eigenvalues of the graph with degrees normalised, and their vectors."""
    values, vectors = np.linalg.eigh(normalized(W))
    return values[::-1][:count], vectors[:, ::-1][:, :count]


def fuse(graphs, k, start):
    """Return weights of mean 1 after one round from ``start``, and the sum that they make."""
    W = sum(weight * graph for weight, graph in zip(start, graphs, strict=True))
    U = leading(W, k)[1]
    kept = [np.trace(U.T @ normalized(graph) @ U) / k for graph in graphs]
    weights = np.array([max(share, 1e-6) for share in kept])
    weights = weights / np.mean(weights)
    return weights, sum(weight * graph for weight, graph in zip(weights, graphs, strict=True))


def damping(values, k):
    """Return 1 for the first k eigenvectors and (lambda_j / lambda_k)^4 for others, none for negative ones."""
    return np.array([1.0 if j < k else (max(values[j], 0.0) / values[k - 1]) ** 4 for j in range(len(values))])


def embedding(W, k):
    """Return 2k eigenvectors, damped, each row divided by its length."""
    values, vectors = leading(W, 2 * k)
    rows = [row * damping(values, k) for row in vectors]
    return np.array([row / np.linalg.norm(row) for row in rows])


def normalized_cut(W, labels):
    """Return the sum over clusters of the edges that leave one as a share of all that touch it."""
    total = 0.0
    for c in set(labels):
        inside = [i for i in range(len(W)) if labels[i] == c]
        leaving = sum(W[i, j] for i in inside for j in range(len(W)) if labels[j] != c)
        touching = sum(sum(W[i]) for i in inside)
        total += leaving / touching if touching > 0 else 0.0
    return total


# --- new samples -----------------------------------------------------------------------------------------------------


def new_edges(apart, D, sizes):
    """Return the mean weight over sizes from new samples to their nearest training samples, by their distances.

    An edge counts in full where the new sample lies within the other's own neighbourhood, else by half. ``D`` are the
    distances among training samples.
    """
    total = np.zeros(apart.shape)
    for m in sizes:
        radius = [D[j, near[-1]] for j, near in enumerate(nearest(D, m))]
        for i, row in enumerate(apart):
            chosen = sorted(range(len(D)), key=lambda j: (row[j], j))[:m]
            reach = row[chosen[-1]]
            for j in chosen:
                weight = np.exp(-(row[j] ** 2) / (reach * radius[j]))
                total[i, j] += weight if row[j] <= radius[j] else weight / 2
    return total / len(sizes)


def extended(edges, W, k):
    """Return sum_j e_ij u_j / (sqrt(d_j) lambda), damped, each row divided by its length."""
    values, vectors = leading(W, 2 * k)
    factors = [each / value if value > 0 else 0.0 for each, value in zip(damping(values, k), values, strict=True)]
    rows = edges @ (vectors / np.sqrt(W.sum(axis=1))[:, None]) * factors
    return np.array([row / np.linalg.norm(row) for row in rows])


# --- the number of clusters ------------------------------------------------------------------------------------------


def modularity(W, labels):
    """Return the share of edges inside clusters beyond that of a random graph of the same degrees."""
    n = len(W)
    degrees = W.sum(axis=1)
    total = degrees.sum()
    Q = 0.0
    for i in range(n):
        for j in range(n):
            if labels[i] == labels[j]:
                Q += W[i, j] / total - degrees[i] * degrees[j] / total**2
    return Q


def clearness(W, labels, k):
    """Return Q / (1 - 1/k), 0 for one cluster."""
    return modularity(W, labels) / (1 - 1 / k) if k > 1 else 0.0


def gap(q, null_qs):
    """Return mean log(1 - q0 + e) - log(1 - q + e)."""
    return np.mean([np.log(1 - q0 + SOFTENING) for q0 in null_qs]) - np.log(1 - q + SOFTENING)


def valley_of_two(W, U, labels):
    """Return the valley between clusters 0 and 1, the shallower of the two seen from either."""
    return max(_valley_from(W, U, labels), _valley_from(W, U, 1 - labels))


def _valley_from(W, U, labels, border=0.1):
    """Return the least cut close to the border of clusters 0 and 1 over cuts through the middle half of either.

    Samples go in order from one centre to the other, those of cluster 0 first. Cuts are less by what chance links
    between the far halves of both would give, and of the middles the lower quartile counts.
    """
    rows = np.array([row / np.linalg.norm(row) for row in U[:, :2]])
    axis = rows[labels == 1].mean(axis=0) - rows[labels == 0].mean(axis=0)
    here = sorted(np.flatnonzero(labels == 0), key=lambda i: rows[i] @ axis)
    there = sorted(np.flatnonzero(labels == 1), key=lambda i: rows[i] @ axis)
    order = [*here, *there]
    n = len(order)
    size = len(here)
    other = len(there)
    far_here = order[: size // 2]
    far_there = order[size + other // 2 :]
    chance = sum(W[i, j] for i in far_here for j in far_there) / max(1, len(far_here) * len(far_there))
    cuts = []
    for place in range(1, n):
        crossing = sum(W[i, j] for i in order[:place] for j in order[place:])
        cuts.append(crossing - chance * place * (n - place))
    reach = max(1, round(border * min(size, other)))
    least = max(min(cuts[max(0, size - 1 - reach) : size + reach]), 0.0)
    middle = min(
        np.quantile(cuts[size // 4 : 3 * size // 4], 0.25),
        np.quantile(cuts[size + other // 4 : size + 3 * other // 4], 0.25),
    )
    return min(1.0, least / middle) if middle > 0 else 1.0
