"""Non-negative factors of several views drawn to a common one.

Objective   sum_v ||X_v - V_v U_v^T||^2 + lambda_v ||V_v Q_v - V*_v||^2 with all factors >= 0, Q_v = diag of the column
            sums of U_v, which makes the V_v of different views comparable. X_v and V_v have the samples of view v, and
            V*_v their rows of V*: nothing is said about samples that are absent from a view
Input       the non-negative features of every view among its samples, of sum 1, or n_v / n where it has n_v of n, so
            that a sample is as heavy in one view as in another; a starting partition
Cost        O((nnz + n k + d k) k) per iteration, nnz the entries of X that are not zero; sparse views stay sparse
Guarantee   no update raises the objective: those of U_v and V_v minimise a bound that touches it (both are Lee and
            Seung's for a quadratic form with non-negative coefficients), row i of V* is the mean over the views that
            have sample i, weighted by lambda_v
Source      Liu, Wang, Gao and Han, SDM 2013; a comparator in MVKSC 4.2. There each view runs to its end before V* is
            updated; here V* follows every sweep over the views, which lowers the same objective. There every
            view has every sample
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from kernelweave.foundation.array_types import Floats, Ints, Matrix
from kernelweave.kernels.features import FeatureKernel
from kernelweave.partitions import algebra
from kernelweave.partitions.algebra import TIE_TOLERANCE
from kernelweave.solvers.comparators.observed_starts import around_drawn
from kernelweave.solvers.kmeans.kernel_kmeans import Descent, kernel_kmeans
from kernelweave.solvers.kmeans.starts import start_labels
from kernelweave.solvers.shared.best_run import best_of

#: Which of all samples a view has.
Samples = Ints | slice
#: Those of a complete view.
EVERY = slice(None)
# What a starting factor has beside the indicators of the start: no entry may be zero, or it stays so.
BACKGROUND = 0.2
# Starts of the k-means that makes clusters of the common factor.
STARTS = 10
_TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class Factors:
    """Factors of all views and the common one."""

    consensus: Floats  # V*, (n, k)
    samples: tuple[Floats, ...]  # V_v, (n_v, k); U_v has columns of sum 1
    features: tuple[Floats, ...]  # U_v, (d_v, k)
    history: tuple[float, ...]  # the objective at the start and after every round
    converged: bool  # the last round lowered it by no more than tol

    @property
    def objective(self) -> float:
        """The objective of the factors."""
        return self.history[-1]

    @property
    def n_iter(self) -> int:
        """Rounds taken."""
        return len(self.history) - 1


class FactoredView:
    """One view with its two factors; ``samples`` says which of all samples its rows are."""

    def __init__(self, X: Matrix, weight: float, labels: Ints, k: int, samples: Samples = EVERY) -> None:
        self.X = X
        self.weight = weight
        self.samples = samples
        self.size = float((X.multiply(X) if sp.issparse(X) else X * X).sum())
        members = (labels[samples, None] == np.arange(k)) + BACKGROUND
        # Every sample as heavy as the mean one, every cluster with the features of its samples and a little of all.
        self.V: Floats = members * (float(X.sum()) / members.sum())
        self.U = np.asarray(X.T @ members) + BACKGROUND * np.asarray(X.sum(axis=0)).reshape(-1, 1)
        self.U /= np.maximum(self.U.sum(axis=0), _TINY)
        self.product = np.asarray(X @ self.U)

    def _balance(self) -> None:
        """Give the columns of U sum 1 and V the rest; U V^T and V Q stay as they are."""
        sums = self.U.sum(axis=0)
        self.V *= sums
        self.U /= np.where(sums > 0, sums, 1.0)

    def improve(self, common: Floats) -> None:
        """Update U, then V, towards the view and the common factor."""
        U = self.U
        V = self.V
        weight = self.weight
        common = common[self.samples]
        raising = np.asarray(self.X.T @ V) + weight * (V * common).sum(axis=0)
        lowering = U @ (V.T @ V) + weight * U.sum(axis=0) * (V * V).sum(axis=0)
        U *= raising / np.maximum(lowering, _TINY)
        self._balance()
        self.product = np.asarray(self.X @ U)
        V *= (self.product + weight * common) / np.maximum(V @ (U.T @ U) + weight * V, _TINY)

    def objective(self, common: Floats) -> float:
        """Return the view's share of the objective."""
        inner = float((self.V * self.product).sum())
        error = self.size - 2.0 * inner + float(((self.V.T @ self.V) * (self.U.T @ self.U)).sum())
        return max(error, 0.0) + self.weight * float(((self.V - common[self.samples]) ** 2).sum())


def joint_factors(
    blocks: Sequence[Matrix],
    weights: Sequence[float],
    labels: Ints,
    samples: Sequence[Samples] | None = None,
    *,
    n_clusters: int,
    max_iter: int,
    tol: float,
) -> Factors:
    """Factorise from a starting partition until a round lowers the objective by no more than ``tol`` sum ||X_v||^2.

    ``weights`` are the lambda_v, all positive. ``samples`` says which samples the rows of every view are, None that all
    views have all; every sample must be in a view.
    """
    rows = [EVERY] * len(blocks) if samples is None else samples
    parts = zip(blocks, weights, rows, strict=True)
    views = [FactoredView(X, weight, labels, n_clusters, known) for X, weight, known in parts]
    shape = (len(labels), n_clusters)
    common = _consensus(views, shape)
    size = sum(view.size for view in views)
    history = [sum(view.objective(common) for view in views)]
    converged = False
    while not converged and len(history) <= max_iter:
        for view in views:
            view.improve(common)
        common = _consensus(views, shape)
        history.append(sum(view.objective(common) for view in views))
        converged = history[-2] - history[-1] <= tol * size
    factors = tuple(view.V for view in views), tuple(view.U for view in views)
    return Factors(common, *factors, tuple(history), converged)


def _consensus(views: Sequence[FactoredView], shape: tuple[int, int]) -> Floats:
    """Return V*: of every sample the mean of the V_v Q_v that it has, weighted by lambda_v; all Q_v are 1 here."""
    total = np.zeros(shape)
    weights = np.zeros((shape[0], 1))
    for view in views:
        total[view.samples] += view.weight * view.V
        weights[view.samples] += view.weight
    return total / weights


# --- start and end ---------------------------------------------------------------------------------------------------


def nmf_start(op: FeatureKernel, n_clusters: int, rng: np.random.Generator) -> Ints:
    """Return a starting partition by samples drawn far apart.

    Equal samples are never separated, or their factors would be.
    """
    diag = op.diag()
    slack = TIE_TOLERANCE * op.scale()

    def distances(samples: Ints) -> Floats:
        squared = algebra.distances_to_samples(op, samples, diag).T
        return np.where(squared > slack, squared, 0.0)

    return around_drawn(distances, slack, np.ones(len(diag)), n_clusters, rng)


def consensus_labels(common: Floats, n_clusters: int, rng: np.random.Generator) -> Descent:
    """Return k-means of the rows of V* at unit length, the best of some starts."""
    lengths = np.linalg.norm(common, axis=1, keepdims=True)
    # Rounded, so that equal samples, whose rows differ by rounding, stay equal.
    op = FeatureKernel(np.round(common / np.where(lengths > 0, lengths, 1.0), 9))
    weights = np.ones(len(common))
    starts = [start_labels(op, "k-means++", weights, n_clusters, rng) for _ in range(STARTS)]
    return best_of(kernel_kmeans(op, start, weights, n_clusters=n_clusters) for start in starts)
