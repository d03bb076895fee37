"""Places of samples from their inner products or distances: principal components, and a layout in the plane."""

from typing import Any

import numpy as np
from scipy.sparse.linalg import ArpackError, eigsh

from kernelweave.foundation.array_types import Floats
from kernelweave.solvers.spectral.eigenvectors import leading_of

# Eigenvalues below this share of the trace are rounding errors.
ZERO_EIGENVALUE = 1e-13
# Matrices up to this size are decomposed in full.
SMALL = 600
# Steps of a layout; fewer where its stress falls by less than this share.
MOST_STEPS = 500
LEAST_FALL = 1e-7
# How far points of a layout are moved apart at the start, as a share of their mean distance.
APART = 0.05


def kernel_components(K: Floats, count: int) -> tuple[Floats, Floats]:
    """Return ``count`` kernel principal components of the samples, and their shares of the scatter."""
    return principal_components(centred(K), count)


def scaling_components(squares: Floats, count: int) -> tuple[Floats, Floats]:
    """Return the same from squared distances (classical scaling)."""
    return principal_components(-0.5 * centred(squares), count)


def centred(K: Floats) -> Floats:
    """Return the inner products, or squared distances, of the samples less their mean; symmetric to the last bit."""
    means = K.mean(axis=0)
    inner = K - means - means[:, None] + means.mean()
    return np.asarray(0.5 * (inner + inner.T))


def principal_components(G: Floats, count: int) -> tuple[Floats, Floats]:
    """Return ``count`` coordinates of samples with these centred inner products, and their shares of the scatter.

    Coordinates beyond what the samples have are zero.
    """
    total = float(np.trace(G))
    n = len(G)
    if total <= 0:
        return np.zeros((n, count)), np.zeros(count)
    values, vectors = leading(G, min(count, n))
    values = np.where(values > ZERO_EIGENVALUE * total, values, 0.0)
    points = np.zeros((n, count))
    points[:, : len(values)] = with_positive_peaks(vectors) * np.sqrt(values)
    return points, np.pad(values / total, (0, count - len(values)))


def leading(G: Any, count: int, **options: Any) -> tuple[Floats, Floats]:
    """Return the largest eigenvalues, largest first, and their vectors."""
    n = G.shape[0]
    if n > SMALL:
        try:
            values, vectors = eigsh(G, count, which="LA", v0=np.random.default_rng(0).standard_normal(n), **options)
            return values[::-1], vectors[:, ::-1]
        except ArpackError:
            if options:
                raise
    return leading_of(G @ np.eye(n), count)


def with_positive_peaks(vectors: Floats) -> Floats:
    """Return eigenvectors with the sign that makes their largest entry positive."""
    largest = np.abs(np.round(vectors, 9)).argmax(axis=0)
    signs = np.sign(vectors[largest, np.arange(vectors.shape[1])])
    return vectors * np.where(signs == 0, 1.0, signs)


def planar_layout(distances: Floats) -> Floats:
    """Return points in the plane whose distances are near those given: the squared differences fall in every step.

    Points that are all equally far from each other, as the corners of a simplex, fill a disc. (De Leeuw 1977: each
    step minimises a bound of the stress.) It starts from two principal components, which may have such points on
    one spot; a spiral moves them apart.
    """
    n = len(distances)
    turns = np.arange(n) * np.pi * (3.0 - np.sqrt(5.0))
    radii = APART * float(distances.mean()) * np.sqrt(np.arange(n) + 1.0)
    points = scaling_components(distances**2, 2)[0] + radii[:, None] * np.column_stack([np.cos(turns), np.sin(turns)])
    before = np.inf
    for _ in range(MOST_STEPS):
        points = points - points.mean(axis=0)
        now = np.sqrt(((points[:, None] - points) ** 2).sum(axis=2))
        stress = float(((now - distances) ** 2).sum())
        if before - stress <= LEAST_FALL * stress:
            break
        before = stress
        ratios = np.divide(distances, now, out=np.zeros_like(now), where=now > 0)
        points = (ratios.sum(axis=1)[:, None] * points - ratios @ points) / n
    return points - points.mean(axis=0)
