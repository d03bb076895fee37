"""Proofs that a kernel has a negative eigenvalue, so that no feature space stands behind it."""

import numpy as np

from kernelweave.foundation.array_types import Array, Floats
from kernelweave.foundation.threads import single_threaded_blas
from kernelweave.kernels.operator import KernelOperator


def negative_eigenvalue(op: KernelOperator, *, n_rows: int = 400, n_steps: int = 12) -> float | None:
    """Return an eigenvalue bound that proves the kernel indefinite, or None where no proof was found.

    Every Ritz value lies above the smallest eigenvalue, and so does every eigenvalue of a principal block: a
    clearly negative one is proof. None does not prove the contrary. Costs a block of ``n_rows`` and, where
    products are cheap, ``n_steps`` of them.
    """
    if op.psd:
        return None
    n = op.n_samples
    rows = np.unique(np.linspace(0, n - 1, min(n, n_rows)).astype(np.intp))
    block = np.asarray(op.block(rows, rows), dtype=np.float64)
    ritz = _lanczos(op, n_steps) if n > len(rows) and op.cheap_products else np.zeros(1)
    with single_threaded_blas():  # waking threads takes longer than a block of this size
        # The largest eigenvalue is no smaller than any entry: what is small compared with these is small compared with
        # it.
        least_scale = max(float(np.abs(block).max()), float(np.abs(ritz).max()))
        if ritz.min() >= -op.resolution * least_scale and _has_factor(block, 0.5 * op.resolution * least_scale):
            return None
        values = np.append(np.linalg.eigvalsh(block), ritz)
    scale = float(np.abs(values).max())
    lowest = float(values.min())
    return lowest if lowest < -op.resolution * scale else None


def _has_factor(block: Floats, shift: float) -> bool:
    """Return whether the block has a Cholesky factor after a shift: then no eigenvalue lies below minus the shift.

    That takes a fraction of the time of the eigenvalues.
    """
    shifted = block + shift * np.eye(len(block))
    try:
        np.linalg.cholesky(shifted)
    except np.linalg.LinAlgError:
        return False
    return True


def _lanczos(op: KernelOperator, n_steps: int) -> Array:
    """Return the Ritz values of a short Lanczos run with full reorthogonalisation and a fixed start."""
    n = op.n_samples
    basis = np.empty((n_steps, n))
    vector = np.random.default_rng(0).standard_normal(n)
    images = np.empty_like(basis)
    used = 0
    size = 0.0
    for step in range(n_steps):
        for _ in range(2):
            vector -= basis[:step].T @ (basis[:step] @ vector)
        length = float(np.linalg.norm(vector))
        if length <= 1e-10 * size:
            break
        basis[step] = vector / length
        images[step] = op.backend.host(op.matmat(op.backend.array(basis[step][:, None])))[:, 0]
        vector = images[step].copy()
        size = float(np.linalg.norm(vector))
        used = step + 1
    projected = basis[:used] @ images[:used].T
    return np.linalg.eigvalsh(0.5 * (projected + projected.T))
