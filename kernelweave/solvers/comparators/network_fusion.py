"""Networks of the samples of several views made one: similarity network fusion, and the averaged networks of NEMO.

Affinity    exp(-d_ij^2 / (mu e_ij)), e_ij the mean of d_ij and of the mean distances of i and j to their nearest
            neighbours. Both methods use shares of rows alone, so that exponents are measured from the largest of the
            row and nothing underflows
Neighbours  those no further away than the K-th: of samples equally far away all are taken
Fusion      P_v <- S_v (mean of the other P) S_v^T, round after round; P_v has shares over all others, 1/2 in all and
            1/2 for the sample itself, made symmetric, S_v shares over the neighbours. The result is the mean of the
            P_v. One view is its own other, as if it were there twice
NEMO        R_v + R_v^T, R_v shares over the neighbours, averaged over the views that have both samples
Objective   none
Input       distances among the samples of every view
Cost        O(n^2) for shares; a round of fusion is two products of an n x n matrix with K entries a row, for every view
Guarantee   none; neither the order of the views nor that of the samples matters
Source      Wang et al., Nature Methods 11, 2014; Rappoport and Shamir, Bioinformatics 35, 2019
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from kernelweave.foundation.array_types import Bools, Floats, Ints
from kernelweave.foundation.threads import for_ranges

# Rows handled together.
ROWS = 256
# Distances that differ by no more than this share are equal.
TIE = 1e-10


@dataclass(frozen=True)
class Neighborhoods:
    """How far the nearest neighbours of every sample are."""

    means: Floats  # (n,) mean distance of the K nearest
    radii: Floats  # (n,) distance of the K-th


def neighborhoods(D: Floats, n_neighbors: int, *, among: bool) -> Neighborhoods:
    """Return how far the nearest columns of every row are; ``among`` says that rows and columns are the same samples.

    A sample is not its own neighbour.
    """
    n = len(D)
    means = np.empty(n)
    radii = np.empty(n)

    def work(lo: int, hi: int) -> None:
        rows = D[lo:hi].copy()
        if among:
            rows[np.arange(hi - lo), np.arange(lo, hi)] = np.inf
        rows.partition(n_neighbors - 1, axis=1)
        means[lo:hi] = rows[:, :n_neighbors].mean(axis=1)
        radii[lo:hi] = rows[:, n_neighbors - 1]

    for_ranges(work, n, width=ROWS, elements=D.size)
    return Neighborhoods(means, radii)


def _exponents(distances: Floats, here: Floats, there: Floats, mu: float) -> Floats:
    """Return d^2 / (mu e), e the mean of d, ``here`` and ``there``; zero between equal samples."""
    widths = (here + there + distances) * (mu / 3.0)
    return np.divide(distances * distances, widths, out=np.zeros_like(distances), where=widths > 0)


def neighbor_shares(D: Floats, here: Neighborhoods, there: Floats, mu: float, *, among: bool) -> sp.csr_array:
    """Return the affinities of every row with its neighbours as shares of their sum.

    ``there`` has the mean distances of the columns; ``among`` is as in :func:`neighborhoods`.
    """
    n = len(D)

    def work(lo: int, hi: int) -> tuple[Ints, Ints, Floats]:
        near = D[lo:hi] <= here.radii[lo:hi, None] * (1.0 + TIE)
        if among:
            near[np.arange(hi - lo), np.arange(lo, hi)] = False
        rows, columns = np.nonzero(near)
        counts = np.bincount(rows, minlength=hi - lo)
        starts = np.cumsum(counts) - counts
        values = _exponents(D[lo:hi][near], here.means[lo + rows], there[columns], mu)
        values = np.exp(np.minimum.reduceat(values, starts)[rows] - values)
        values /= np.add.reduceat(values, starts)[rows]
        return counts, columns, values

    parts = for_ranges(work, n, width=ROWS, elements=D.size)
    counts, columns, values = (np.concatenate(part) for part in zip(*parts, strict=True))
    ends = np.concatenate([[0], np.cumsum(counts)])
    return sp.csr_array((values, columns, ends), shape=D.shape)


# --- NEMO ------------------------------------------------------------------------------------------------------------


def average_similarity(shares: Sequence[sp.csr_array], observed: Bools | None = None) -> sp.csr_array:
    """Return the mean of R_v + R_v^T over the views that have both samples; zero where none has.

    Matrices are of all samples; ``observed`` (n, n_views) says which of them each view has, None that it has all.
    """
    total = sp.csr_array(shares[0].shape)
    for view in shares:
        total = total + view
    total = sp.csr_array(total + total.T)
    total.eliminate_zeros()  # shares too small for a number
    if observed is None:
        return total / len(shares)
    rows = np.repeat(np.arange(total.shape[0]), np.diff(total.indptr))
    counts = np.zeros(total.nnz)
    for there in observed.T:
        counts += there[rows] & there[total.indices]
    total.data /= counts
    return total


# --- similarity network fusion ---------------------------------------------------------------------------------------


def full_shares(D: Floats, means: Floats, mu: float) -> Floats:
    """Return P: affinities with all others as shares that add up to 1/2, and 1/2 for the sample itself; symmetric."""
    n = len(D)
    P = np.empty((n, n))

    def work(lo: int, hi: int) -> None:
        exponents = _exponents(D[lo:hi], means[lo:hi, None], means[None], mu)
        exponents[np.arange(hi - lo), np.arange(lo, hi)] = np.inf  # so that the sample itself has no share
        np.exp(exponents.min(axis=1, keepdims=True) - exponents, out=P[lo:hi])

    for_ranges(work, n, width=ROWS, elements=D.size)
    return _normalised(P)


def fuse_networks(
    networks: Sequence[Floats],
    shares: Sequence[sp.csr_array],
    max_iter: int,
    on_round: Callable[[float], object] | None = None,
) -> Floats:
    """Return the mean network after ``max_iter`` rounds; ``on_round`` gets how much each round changed, relatively.

    ``networks`` are P_v and ``shares`` S_v; neither is changed.
    """
    current = list(networks)
    total = current[0].copy()
    for P in current[1:]:
        total += P
    others = np.empty_like(total)
    for _ in range(max_iter):
        following = np.zeros_like(total)
        for v, S in enumerate(shares):
            if len(current) > 1:
                np.subtract(total, current[v], out=others)  # normalised below: the sum serves as well as the mean
            else:
                np.copyto(others, total)
            current[v] = _normalised(_diffused(S, others))
            following += current[v]
        if on_round is not None:
            before = float(np.linalg.norm(total))
            total -= following
            on_round(float(np.linalg.norm(total)) / before)
        total = following
    total /= len(current)
    return total


def _diffused(S: sp.csr_array, P: Floats) -> Floats:
    """Return S P S^T for a symmetric P, which is overwritten."""
    result = np.empty_like(P)
    _multiply(S, P, result)
    np.copyto(P, result.T)
    _multiply(S, P, result)
    return result


def _multiply(S: sp.csr_array, P: Floats, out: Floats) -> None:
    """Write S P into ``out``."""

    def work(lo: int, hi: int) -> None:
        out[lo:hi] = S[lo:hi] @ P

    for_ranges(work, len(P), width=ROWS, elements=S.nnz * P.shape[1])


def _normalised(P: Floats) -> Floats:
    """Divide rows so that all others have 1/2 together, and the sample itself 1/2; then make it symmetric, in place."""
    np.fill_diagonal(P, 0.0)
    sums = 2.0 * P.sum(axis=1, keepdims=True)
    P /= np.where(sums > 0, sums, 1.0)
    for lo in range(0, len(P), ROWS):
        rows = slice(lo, lo + ROWS)
        for start in range(lo, len(P), ROWS):
            columns = slice(start, start + ROWS)
            block = 0.5 * (P[rows, columns] + P[columns, rows].T)
            P[rows, columns] = block
            P[columns, rows] = block.T
    np.fill_diagonal(P, 0.5)
    return P
