"""Kernel k-means with coefficients of the kernels learned in turn with the clusters.

Objective   F(theta, labels) = lambda sum_c y_c^T (Omega + lambda I)^-1 y_c, Omega = sum_v theta_v K_v, y_c the centred
            indicator of cluster c over the root of its size: what ridge regression on the kernel leaves unexplained of
            the clusters, so that the least F has the largest ratio of scatter between clusters to all scatter. theta is
            not negative and has 1-norm or 2-norm one
Input       centred kernel matrices, what is added to their diagonals to make them semidefinite, a partition
Cost        a step of the coefficients is one Cholesky factor, n^3 / 3; labels follow by kernel k-means
Guarantee   F is convex in theta. A round is kept only if F falls
Source      in the spirit of Yu, Tranchevent, Liu, Glanzel, Suykens, De Moor and Moreau, IEEE TPAMI 2012, who solve
            a semi-infinite program for the coefficients instead
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from kernelweave.foundation.array_types import Floats, Ints
from kernelweave.foundation.checkpoints import NOTHING, Keeper
from kernelweave.foundation.threads import single_threaded_blas
from kernelweave.kernels.dense import DenseKernel
from kernelweave.kernels.parametric import WeightedKernels
from kernelweave.solvers.kmeans.kernel_kmeans import kernel_kmeans

# Share of F that the coefficients may still lie above their best, steps towards it, and halvings of one step.
OPTIMALITY_GAP = 1e-6
MOST_STEPS = 200
MOST_HALVINGS = 30
# Share of the expected fall that a step must reach.
ARMIJO = 1e-4


@dataclass(frozen=True)
class FusedClusters:
    """Clusters and coefficients of the kernels."""

    labels: Ints  # (n,)
    coefficients: Floats  # (V,) theta
    history: tuple[float, ...]  # F after every round
    converged: bool
    totals: Floats  # (k,) sizes of the clusters

    @property
    def objective(self) -> float:
        """F at the end."""
        return self.history[-1]

    @property
    def n_iter(self) -> int:
        """Rounds kept."""
        return len(self.history)


@dataclass(frozen=True)
class Fusion:
    """Kernels whose coefficients are sought: centred matrices, shifts of their diagonals, and lambda."""

    kernels: WeightedKernels
    shifts: Floats  # (V,)
    ridge: float

    def unexplained(self, theta: Floats, Y: Floats) -> tuple[float, Floats]:
        """Return F and its derivatives by theta: -lambda sum_c a_c^T K_v a_c with (Omega + lambda I) a_c = y_c."""
        matrix = self.kernels.matrix(theta)
        matrix[np.diag_indices_from(matrix)] += self.ridge + float(self.shifts @ theta)
        with single_threaded_blas():
            # Transposed, the symmetric matrix is in the order of LAPACK and is factored in place.
            A = cho_solve(cho_factor(matrix.T, lower=True, overwrite_a=True, check_finite=False), Y)
            squares = float(np.square(A).sum())
            slopes = np.array([float(np.sum(A * (K @ A))) for K in self.kernels.kernels])
        return self.ridge * float(np.sum(Y * A)), -self.ridge * (slopes + squares * self.shifts)

    def gap(self, theta: Floats, gradient: Floats) -> float:
        """Return a bound on how far F lies above its least value."""
        least = gradient.min() if self.kernels.norm == 1 else -np.linalg.norm(gradient)
        return float(gradient @ theta - least)


def indicators(labels: Ints, n_clusters: int) -> Floats:
    """Return centred indicators of the clusters over the roots of their sizes, shape (n, k); zeros for empty ones."""
    sizes = np.bincount(labels, minlength=n_clusters).astype(np.float64)
    members = labels[:, None] == np.arange(n_clusters)
    filled = np.sqrt(np.where(sizes > 0, sizes, 1.0))
    return np.asarray(members / filled - np.sqrt(sizes) / len(labels))


def best_coefficients(fusion: Fusion, Y: Floats, theta: Floats) -> tuple[Floats, float]:
    """Return the coefficients of least F and that value, by projected gradient steps from ``theta``.

    Lengths after Barzilai and Borwein, halved until F falls enough.
    """
    value, gradient = fusion.unexplained(theta, Y)
    length = 1.0 / max(float(np.linalg.norm(gradient)), np.finfo(np.float64).tiny)
    for _ in range(MOST_STEPS):
        if fusion.gap(theta, gradient) <= OPTIMALITY_GAP * value:
            break
        for _ in range(MOST_HALVINGS):
            trial = fusion.kernels.project(theta - length * gradient)
            expected = float(gradient @ (theta - trial))
            trial_value, trial_gradient = fusion.unexplained(trial, Y)
            if trial_value <= value - ARMIJO * expected:
                break
            length *= 0.5
        else:
            break
        step = trial - theta
        curvature = float(step @ (trial_gradient - gradient))
        length = float(step @ step) / curvature if curvature > 0 else 2.0 * length
        theta = trial
        value = trial_value
        gradient = trial_gradient
    return theta, value


def optimized_kernel_kmeans(
    fusion: Fusion,
    labels: Ints,
    *,
    n_clusters: int,
    max_iter: int = 100,
    tol: float = 1e-5,
    keeper: Keeper = NOTHING,
    on_step: Callable[[float], object] | None = None,
) -> FusedClusters:
    """Alternate from ``labels`` until they stay, F does not fall, or falls by at most ``tol * F``."""
    weights = np.ones(len(labels))
    known = keeper.known()
    if known is None:
        theta, value = best_coefficients(fusion, indicators(labels, n_clusters), fusion.kernels.first())
        known = {"labels": labels, "theta": theta, "history": [value], "converged": False}
    labels = known["labels"]
    theta = known["theta"]
    history = known["history"]
    converged = known["converged"]
    while not converged and len(history) < max_iter:
        op = DenseKernel(fusion.kernels.matrix(theta))
        moved = kernel_kmeans(op, labels, weights, n_clusters=n_clusters).labels
        if np.array_equal(moved, labels) or len(np.unique(moved)) < len(np.unique(labels)):
            converged = True
            break
        new_theta, value = best_coefficients(fusion, indicators(moved, n_clusters), theta)
        if not value < history[-1]:
            converged = True
            break
        labels = moved
        theta = new_theta
        history.append(value)
        converged = history[-2] - value <= tol * value
        keeper.keep(dict, labels=labels, theta=theta, history=history, converged=converged)
        if on_step is not None:
            on_step(value)
    totals = np.bincount(labels, minlength=n_clusters).astype(np.float64)
    return FusedClusters(labels, theta, tuple(history), converged, totals)
