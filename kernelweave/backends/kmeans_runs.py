"""Runs of k-means on rows of features on this machine: compiled ones, which other threads need not wait for."""

from contextlib import nullcontext
from types import ModuleType

import numpy as np

from kernelweave.backends.host import FEATURE_TILE
from kernelweave.backends.preparing import read_only
from kernelweave.foundation.array_types import Floats, Ints
from kernelweave.foundation.threads import SMALL_PRODUCT, single_threaded_blas


def _runs() -> ModuleType:
    """Return the compiled runs, imported on first use: numba takes a second to load."""
    from kernelweave.backends.compiled import kmeans_runs

    return kmeans_runs


def spread_out(Phi: Floats, diag: Floats, n_clusters: int, trials: int, tie: float, rng: np.random.Generator) -> Ints:
    """Return labels by the nearest of centres drawn far apart, with the draws of k-means++ for a feature kernel.

    ``diag`` are squared lengths; distances that differ by no more than ``tie`` leave a row where it is.
    """
    labels = np.empty(len(Phi), dtype=np.intp)
    uniforms = np.zeros((n_clusters, trials))
    uniforms[0, 0] = rng.random()
    uniforms[1:] = rng.random((n_clusters - 1, trials))
    _runs().spread_out(read_only(Phi), diag, uniforms, tie, labels)
    return labels


def descended(
    Phi: Floats, diag: Floats, start: Ints, n_clusters: int, tolerance: float, noise: float, steps: int, patience: int
) -> Ints | None:
    """Return the labels at the end of a descent from a start, None where it takes the general solver."""
    labels = start.copy()
    large = FEATURE_TILE * Phi.shape[1] * n_clusters > SMALL_PRODUCT
    with single_threaded_blas() if large else nullcontext():
        ended = _runs().descend(read_only(Phi), diag, n_clusters, tolerance, noise, steps, patience, labels)
    return labels if ended else None
