"""Kernels with parameters that can be learned: weights of stored matrices, or hyperparameters of a kernel object.

Each has its matrix at any parameters, the derivatives that the ratio of variance to margin needs, and the nearest
admissible parameters.
"""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from kernelweave.foundation.array_types import Array, Floats

Norm = Literal[1, 2] | None
# Rows of matrices added up together.
ROWS = 256


class WeightedKernels:
    """sum_v theta_v K_v with theta >= 0, of 1-norm or 2-norm one or without a norm."""

    def __init__(self, kernels: Sequence[Floats], norm: Norm = 1) -> None:
        self.kernels = tuple(kernels)
        self.norm = norm
        self.n = len(self.kernels[0])
        self._traces = np.array([np.trace(K) for K in self.kernels])
        self._totals = np.array([K.sum() for K in self.kernels])

    def take(self, samples: Any) -> "WeightedKernels":
        """Return the kernels among chosen samples."""
        return WeightedKernels([np.ascontiguousarray(K[np.ix_(samples, samples)]) for K in self.kernels], self.norm)

    def first(self) -> Floats:
        """Return equal weights."""
        return self.project(np.ones(len(self.kernels)))

    def matrix(self, theta: Floats) -> Floats:
        """Return the weighted sum."""
        total = np.zeros((self.n, self.n))
        for weight, K in zip(theta.tolist(), self.kernels, strict=True):
            if weight == 0.0:
                continue
            for lo in range(0, self.n, ROWS):  # some rows at a time: a whole product would be one matrix more
                total[lo : lo + ROWS] += weight * K[lo : lo + ROWS]
        return total

    def slopes(self, theta: Floats, multipliers: Floats, labels: Floats) -> tuple[Floats, Floats]:
        """Return b^T K_v b and E_v, which are the derivatives of b^T K b and E by theta_v."""
        inside = (labels > 0).astype(np.float64)
        columns = np.stack([multipliers, inside], axis=1)
        products = [K @ columns for K in self.kernels]
        quadratic = np.array([multipliers @ Z[:, 0] for Z in products])
        within = np.array([inside @ Z[:, 1] for Z in products])
        outward = np.array([Z[:, 1].sum() for Z in products])
        return quadratic, _variances(self._traces, self._totals, within, outward, inside)

    def project(self, theta: Floats) -> Floats:
        """Return the nearest weights that are not negative and have the norm; equal ones where all would be zero."""
        if self.norm == 1:
            return onto_simplex(theta)
        positive = np.maximum(theta, 0.0)
        size = float(np.linalg.norm(positive))
        if size == 0.0:
            positive = np.ones_like(theta)
            size = float(np.sqrt(len(theta)))
        return positive / size if self.norm == 2 else positive

    def step_length(self, theta: Floats) -> float:
        """Return the norm of the weights, the length of a first step along a gradient."""
        return float(np.linalg.norm(theta))


class ProcessFamily:
    """A scikit-learn kernel object on samples X; theta are its free hyperparameters, as logarithms within bounds."""

    def __init__(self, kernel: Any, X: Array, regularization: float = 0.0) -> None:
        self.kernel = kernel
        self.X = X
        self.regularization = regularization
        self.n = len(X)
        self._bounds = np.atleast_2d(kernel.bounds)

    def take(self, samples: Any) -> "ProcessFamily":
        """Return the family on chosen samples."""
        return ProcessFamily(self.kernel, self.X[samples], self.regularization)

    def first(self) -> Floats:
        """Return the hyperparameters the kernel came with."""
        return self.project(np.array(self.kernel.theta, dtype=np.float64))

    def at(self, theta: Floats) -> Any:
        """Return the kernel object with these hyperparameters."""
        return self.kernel.clone_with_theta(theta)

    def matrix(self, theta: Floats) -> Floats:
        """Return the kernel matrix, the diagonal raised by ``regularization`` times its mean."""
        K = np.ascontiguousarray(self.at(theta)(self.X), dtype=np.float64)
        K[np.diag_indices_from(K)] += self.regularization * float(np.trace(K)) / len(K)
        return K

    def slopes(self, theta: Floats, multipliers: Floats, labels: Floats) -> tuple[Floats, Floats]:
        """Return the derivatives of b^T K b and of E from the gradients of the kernel object."""
        _, gradients = self.at(theta)(self.X, eval_gradient=True)
        traces = np.einsum("iip->p", gradients)
        inside = (labels > 0).astype(np.float64)
        products = np.einsum("ijp,j->ip", gradients, inside)
        quadratic = np.einsum("ijp,i,j->p", gradients, multipliers, multipliers, optimize=True)
        if self.regularization:
            quadratic = quadratic + self.regularization * traces / self.n * float(multipliers @ multipliers)
        slopes = _variances(traces, gradients.sum(axis=(0, 1)), inside @ products, products.sum(axis=0), inside)
        if self.regularization:
            slopes = slopes + self.regularization * traces / self.n * (self.n - 2.0) / self.n
        return quadratic, slopes

    def project(self, theta: Floats) -> Floats:
        """Return the hyperparameters within their bounds."""
        return np.clip(theta, self._bounds[:, 0], self._bounds[:, 1])

    def step_length(self, theta: Floats) -> float:
        """Return one, the length of a first step along a gradient: factors of e are a unit that fits all logarithms."""
        return 1.0


def _variances(traces: Floats, totals: Floats, within: Floats, outward: Floats, inside: Floats) -> Floats:
    """Return E (PhD 5.7) of several matrices K from sums over each.

    ``traces`` and ``totals`` are over all samples, ``within`` over pairs inside the first cluster, and ``outward`` over
    pairs of one of its members and any sample; ``inside`` marks the members.
    """
    size = float(inside.sum())
    n = len(inside)
    within_other = totals - 2.0 * outward + within
    return (traces - within / max(size, 1.0) - within_other / max(n - size, 1.0)) / n


def onto_simplex(theta: Floats) -> Floats:
    """Return the nearest point with entries that are not negative and add up to 1 (Duchi and others, ICML 2008)."""
    falling = np.sort(theta)[::-1]
    excess = (np.cumsum(falling) - 1.0) / np.arange(1, len(theta) + 1)
    last = int(np.flatnonzero(falling > excess)[-1])
    return np.maximum(theta - excess[last], 0.0)
