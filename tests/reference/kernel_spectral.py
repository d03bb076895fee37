"""Kernel spectral clustering (KSC) and its multi-view form (MVKSC) as printed (MVKSC 2.2 and 3), the slow way.

Every matrix is written out and every eigenproblem is the dense unsymmetric one of the source. Eigenvectors have neither
sign nor length of their own: multiply by ``factors`` before comparing. Rules the source leaves open are those of the
library: a score of zero counts as negative, the first met of equally frequent patterns comes first, the most frequent
of equally near codewords takes a sample, a sample that is like none has no weight, and new samples are centred with the
mean of the training samples.
"""

import numpy as np
from scipy.linalg import eig

# --- one view --------------------------------------------------------------------------------------------------------


def inverse_degrees(K):
    """Return the diagonal of D^-1, (18), with zero for a sample that is like none."""
    return np.array([1.0 / sum(row) if sum(row) > 0 else 0.0 for row in K])


def left_centring(inverse):
    """Return M_D = I - 1 1^T D^-1 / (1^T D^-1 1), as (6) has it."""
    n = len(inverse)
    return np.eye(n) - np.ones((n, n)) @ np.diag(inverse) / inverse.sum()


def leading(values, vectors, m):
    """Return all eigenvalues, largest first, and the vectors of the m largest."""
    order = np.argsort(-values.real, kind="stable")
    return values.real[order], vectors[:, order[:m]].real


def ksc(K, k):
    """Return all eigenvalues of (6), largest first, then alpha, bias and scores for k clusters."""
    inverse = inverse_degrees(K)
    values, alphas = leading(*np.linalg.eig(np.diag(inverse) @ left_centring(inverse) @ K), k - 1)
    bias = np.array([-(inverse @ K @ alpha) / inverse.sum() for alpha in alphas.T])
    return values, alphas, bias, ksc_scores(K, alphas, bias)


def ksc_scores(rows, alphas, bias):
    """Return the scores (8) of samples given by their kernel rows, number by number."""
    result = np.zeros((len(rows), len(bias)))
    for i, row in enumerate(rows):
        for m in range(len(bias)):
            result[i, m] = sum(value * alpha for value, alpha in zip(row, alphas[:, m], strict=True)) + bias[m]
    return result


# --- codebooks -------------------------------------------------------------------------------------------------------


def patterns(scores):
    """Return the sign pattern of every sample."""
    return [tuple(1 if value > 0 else -1 for value in row) for row in scores]


def codebook(scores, k):
    """Return the k patterns that occur most, the most frequent first, the first met of equals."""
    counts = {}
    for pattern in patterns(scores):
        counts[pattern] = counts.get(pattern, 0) + 1
    return sorted(counts, key=lambda pattern: -counts[pattern])[:k]


def decoded(scores, book):
    """Return the codeword with the least Hamming distance to the pattern of every sample, the first of equals."""
    labels = []
    for pattern in patterns(scores):
        distances = [sum(a != b for a, b in zip(pattern, word, strict=True)) for word in book]
        labels.append(distances.index(min(distances)))
    return np.array(labels)


def labelled(scores, k):
    """Return the labels of training samples."""
    return decoded(scores, codebook(scores, k))


# --- several views ---------------------------------------------------------------------------------------------------


def centred(K):
    """Return Omega_c of (16)."""
    M = left_centring(inverse_degrees(K))
    return M @ K @ M.T


def coupled_problem(kernels, gammas):
    """Return both sides of (15), with S = D_v^-1/2 D_u^-1/2."""
    n, n_views = len(kernels[0]), len(kernels)
    A, B = np.zeros((n_views * n, n_views * n)), np.zeros((n_views * n, n_views * n))
    for v, K in enumerate(kernels):
        inverse = inverse_degrees(K)
        rows = slice(v * n, (v + 1) * n)
        B[rows, rows] = np.eye(n) - gammas[v] / n * np.diag(inverse) @ centred(K)
        for u, other in enumerate(kernels):
            if u != v:
                S = np.diag(np.sqrt(inverse)) @ np.diag(np.sqrt(inverse_degrees(other)))
                A[rows, u * n : (u + 1) * n] = S @ centred(other)
    return A, B


def mvksc(kernels, gammas, k):
    """Return all eigenvalues 1 / rho of (15), largest first, then alpha and scores (19) of every view."""
    n = len(kernels[0])
    values, stacked = leading(*eig(*coupled_problem(kernels, gammas)), k - 1)
    alphas = [stacked[v * n : (v + 1) * n] for v in range(len(kernels))]
    return values, alphas, np.array([centred(K) @ alpha for K, alpha in zip(kernels, alphas, strict=True)])


def gamma_limit(K):
    """Return what gamma has to stay below: N / lambda_max(D^-1 Omega_c)."""
    return len(K) / np.linalg.eigvals(np.diag(inverse_degrees(K)) @ centred(K)).real.max()


def joint(scores, weights=None):
    """Return the convex combination (20) of the views' scores; None is equal weights."""
    weights = [1.0 / len(scores)] * len(scores) if weights is None else weights
    return sum(weight * view_scores for weight, view_scores in zip(weights, scores, strict=True))


def new_scores(rows, kernels, alphas):
    """Return the scores (21) of new samples in every view, (22) centred with the training mean of (12)."""
    result = []
    for cross, K, alpha in zip(rows, kernels, alphas, strict=True):
        inverse = inverse_degrees(K)
        mean_row = inverse @ K / inverse.sum()
        result.append((cross - mean_row) @ left_centring(inverse).T @ alpha)
    return np.array(result)


# --- comparing -------------------------------------------------------------------------------------------------------


def factors(scores, like):
    """Return what each column of scores has to be multiplied by to have the length and the sign of ``like``'s."""
    result = []
    for m in range(scores.shape[-1]):
        signed, other = np.ravel(scores[..., m]), np.ravel(like[..., m])
        result.append(np.copysign(np.linalg.norm(other) / np.linalg.norm(signed), signed @ other))
    return np.array(result)


# --- weights of a committee ------------------------------------------------------------------------------------------


def simplex_grid(n_views, steps):
    """Yield all weights that are multiples of 1 / steps and add up to one."""
    if n_views == 1:
        yield (1.0,)
        return
    for first in range(steps + 1):
        if n_views == 2:
            yield first / steps, (steps - first) / steps
        else:
            for second in range(steps - first + 1):
                yield first / steps, second / steps, (steps - first - second) / steps


def committee_error(errors, weights):
    """Return the mean squared error of a committee, sample by sample."""
    return sum(sum(w * e for w, e in zip(weights, column, strict=True)) ** 2 for column in errors.T) / errors.shape[1]


def best_committee(errors, steps):
    """Return the least error on the grid and the weights that reach it."""
    return min((committee_error(errors, weights), weights) for weights in simplex_grid(len(errors), steps))


# --- samples to train on ---------------------------------------------------------------------------------------------


def spread_out(K, wanted, swaps, rng):
    """Return samples with small kernel values: the one most like the others leaves where another is less so."""
    inside = sorted(rng.choice(len(K), wanted, replace=False).tolist())
    outside = [i for i in range(len(K)) if i not in inside]
    for _ in range(swaps):
        sums = [sum(K[i, j] for j in inside) for i in inside]
        leaving, place = sums.index(max(sums)), int(rng.integers(len(outside)))
        others = [*inside[:leaving], outside[place], *inside[leaving + 1 :]]
        if sum(K[outside[place], j] for j in others) < sums[leaving]:
            outside[place], inside = inside[leaving], others
    return sorted(inside)
