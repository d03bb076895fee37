"""Plain oracles of the measures: loops over samples, straight from the definitions."""

import math
from itertools import permutations


def groups(labels):
    """Return the positions of every distinct label, in sorted order of the labels."""
    return [[i for i, label in enumerate(labels) if label == g] for g in sorted(set(labels))]


def _share(group, n):
    return len(group) / n


def normalized_mutual_info(labels_true, labels_pred):
    n, clusters, classes = len(labels_true), groups(labels_pred), groups(labels_true)
    mutual = 0.0
    for cluster in clusters:
        for members in classes:
            both = len(set(cluster) & set(members)) / n
            if both:
                mutual += both * math.log(both / (_share(cluster, n) * _share(members, n)))
    entropies = -sum(_share(group, n) * math.log(_share(group, n)) for group in clusters + classes)
    return 2 * mutual / entropies if entropies else 1.0


def adjusted_rand_index(labels_true, labels_pred):
    n = len(labels_true)
    together = only_true = only_pred = 0
    for i in range(n):
        for j in range(i):
            same_true, same_pred = labels_true[i] == labels_true[j], labels_pred[i] == labels_pred[j]
            together += same_true and same_pred
            only_true += same_true
            only_pred += same_pred
    pairs = n * (n - 1) / 2
    expected = only_true * only_pred / pairs if pairs else 0.0
    highest = (only_true + only_pred) / 2
    return 1.0 if highest == expected else (together - expected) / (highest - expected)


def average_entropy(labels_true, labels_pred):
    total = 0.0
    for cluster in groups(labels_pred):
        for members in groups(labels_true):
            p = len(set(cluster) & set(members)) / len(cluster)
            if p:
                total -= len(cluster) / len(labels_true) * p * math.log(p)
    return total


def clustering_accuracy(labels_true, labels_pred):
    few, many = sorted([groups(labels_true), groups(labels_pred)], key=len)
    best = 0
    for match in permutations(many, len(few)):
        best = max(best, sum(len(set(a) & set(b)) for a, b in zip(few, match, strict=True)))
    return best / len(labels_true)


def misclassification_error(labels_true, labels_pred):
    wrong = 0
    for cluster in groups(labels_pred):
        inside = [labels_true[i] for i in cluster]
        wrong += len(inside) - max(inside.count(label) for label in inside)
    return wrong / len(labels_true)


def cluster_variances(X, labels, weights):
    """Return sum_i w_i ||x_i - m||^2 of every cluster, from explicit vectors."""
    variances = []
    for cluster in groups(labels):
        weight = sum(weights[i] for i in cluster)
        scatter = 0.0
        for column in range(len(X[0])):
            mean = sum(weights[i] * X[i][column] for i in cluster) / weight if weight else 0.0
            scatter += sum(weights[i] * (X[i][column] - mean) ** 2 for i in cluster)
        variances.append(scatter)
    return variances


def links(A, rows, columns):
    return sum(A[i][j] for i in rows for j in columns)


def normalized_cut(A, labels):
    nodes, total = range(len(labels)), 0.0
    for cluster in groups(labels):
        degree = links(A, cluster, nodes)
        if degree:
            total += links(A, cluster, [j for j in nodes if j not in cluster]) / degree
    return total


def ratio_cut(A, labels):
    nodes = range(len(labels))
    return sum(links(A, c, [j for j in nodes if j not in c]) / len(c) for c in groups(labels))


def ratio_association(A, labels):
    return sum(links(A, c, c) / len(c) for c in groups(labels))


def kernel_silhouette_samples(K, labels):
    def distance(i, j):
        return math.sqrt(max(K[i][i] + K[j][j] - 2 * K[i][j], 0.0))

    def mean_distance(i, others):
        return sum(distance(i, j) for j in others) / len(others)

    values = []
    for i in range(len(labels)):
        mates = [j for j in range(len(labels)) if labels[j] == labels[i] and j != i]
        a = mean_distance(i, mates) if mates else 0.0
        b = min(mean_distance(i, cluster) for cluster in groups(labels) if i not in cluster)
        values.append((b - a) / max(a, b) if mates and max(a, b) > 0 else 0.0)
    return values


def _balance(labels):
    sizes = [len(cluster) for cluster in groups(labels)]
    return min(sizes) / max(sizes)


def _largest_eigenvalue(C, n_steps=2000):
    """Power iteration on C shifted by its trace, from a start with no special direction."""
    d, shift = len(C), sum(C[i][i] for i in range(len(C)))
    v = [1.0 + 0.1 * i for i in range(d)]
    for _ in range(n_steps):
        v = [sum(C[i][j] * v[j] for j in range(d)) + shift * v[i] for i in range(d)]
        norm = math.sqrt(sum(x * x for x in v))
        v = [x / norm for x in v]
    return sum(v[i] * C[i][j] * v[j] for i in range(d) for j in range(d))


def line_fit(points):
    """Return d/(d-1) (z_1 / sum z - 1/d) of the uncentred covariance."""
    d = len(points[0])
    C = [[sum(p[i] * p[j] for p in points) / len(points) for j in range(d)] for i in range(d)]
    trace = sum(C[i][i] for i in range(d))
    return d / (d - 1) * (_largest_eigenvalue(C) / trace - 1 / d) if trace else 0.0


def balanced_line_fit(points, labels, eta):
    """Expect the k-1 scores for k > 2, and (score, row sum) for k = 2."""
    fits = [line_fit([points[i] for i in cluster]) for cluster in groups(labels)]
    return eta * sum(fits) / len(fits) + (1 - eta) * _balance(labels)


def _cosine(u, v):
    lengths = math.sqrt(sum(x * x for x in u)) * math.sqrt(sum(y * y for y in v))
    return sum(x * y for x, y in zip(u, v, strict=True)) / lengths if lengths else 0.0


def balanced_angular_fit(points, labels, eta):
    fits = []
    for cluster in groups(labels):
        members = [points[i] for i in cluster]
        mean = [sum(column) / len(members) for column in zip(*members, strict=True)]
        fits.append(sum(_cosine(p, mean) for p in members) / len(members))
    return eta * sum(fits) / len(fits) + (1 - eta) * _balance(labels)
