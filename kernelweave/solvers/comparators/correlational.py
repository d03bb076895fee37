"""Kernel canonical correlation analysis of several views: directions along which their projections go together.

Objective   the sum over pairs v != u of a_v^T K_v K_u a_u, over coefficients with
            sum_v a_v^T ((1 - kappa_v) K_v^2 + kappa_v K_v) a_v = 1, one set of coefficients after the other; every K_v
            centred and divided by its trace, so that kappa means the same for kernels of any scale
Input       centred kernels, kappa of each
Cost        one decomposition of every kernel, through the features where they are fewer than the samples, and one
            symmetric eigenproblem of the size of all numerical ranks together
Guarantee   the leading correlations, largest first; those not above zero are left out
Source      Blaschko and Lampert, CVPR 2008; PhD 1.2.3 and 3.4.1; Houthuys, Langone and Suykens 2018, 2.1
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.linalg import eigh

from kernelweave.foundation.array_types import Floats
from kernelweave.foundation.threads import single_threaded_blas
from kernelweave.kernels.operator import KernelOperator
from kernelweave.kernels.transforms import FLAT
from kernelweave.solvers.spectral.eigenvectors import (
    SMALL,
    ZERO_EIGENVALUE,
    coupled_mib,
    leading_of,
    leading_vectors,
)

# Relative residual of eigenvectors computed by products; values are right to about its square.
RESIDUAL = 1e-5


@dataclass(frozen=True)
class Projections:
    """Coefficients of every view: a centred kernel row times them gives the projections of a sample."""

    alphas: tuple[Floats, ...]  # V of shape (n, q)
    correlations: Floats  # (q,) largest first, at most 1


def kernel_cca(
    kernels: Sequence[KernelOperator], kappas: Floats, n_components: int, room: float = np.inf
) -> Projections:
    """Return the leading directions of centred kernels. One view has none to go with: its principal directions.

    With K = Q C Q^T and B = Q (C / ((1 - kappa) C + kappa))^1/2 the problem is the ordinary one of the blocks
    B_v^T B_u beside zeros on the diagonal. A small problem is decomposed as a matrix where ``room`` MiB hold that.
    """
    spectra = [principal_directions(op) for op in kernels]
    roots = []
    for (values, Q), kappa in zip(spectra, kappas.tolist(), strict=True):
        shares = values / values.sum() if len(values) else values
        roots.append(np.sqrt(shares / ((1.0 - kappa) * shares + kappa)))
        Q *= roots[-1]  # B, in place of a copy
    bases = [B for _, B in spectra]
    correlations, coefficients = (
        _coupled(bases, n_components, room) if len(bases) > 1 else _alone(roots[0], n_components)
    )
    alphas = tuple(B @ (weights / values[:, None]) for (values, B), weights in zip(spectra, coefficients, strict=True))
    if len(correlations) == 0:  # all samples are equal
        return Projections(tuple(np.zeros((op.n_samples, 1)) for op in kernels), np.zeros(1))
    return Projections(alphas, correlations)


def principal_directions(op: KernelOperator) -> tuple[Floats, Floats]:
    """Return the eigenvalues above zero of a centred kernel, largest first, and their vectors."""
    n = op.n_samples
    with single_threaded_blas():
        if has_small_factor(op):
            vectors, lengths, _ = np.linalg.svd(op.gram_factor(), full_matrices=False)
            values = lengths**2
        else:
            values, vectors = eigh(op.block(slice(None), slice(None)), overwrite_a=True, check_finite=False)
            values = values[::-1]
            vectors = vectors[:, ::-1]
    least = max(ZERO_EIGENVALUE * float(values.max(initial=0.0)), FLAT * n * op.scale())
    keep = values > least
    return values[keep], vectors[:, keep]


def has_small_factor(op: KernelOperator) -> bool:
    """Whether the kernel is decomposed through a factor of fewer columns than there are samples."""
    return op.rank_bound < op.n_samples


def _alone(root: Floats, n_components: int) -> tuple[Floats, list[Floats]]:
    """Return the principal directions of one view."""
    count = min(n_components, len(root))
    return root[:count] ** 2, [np.eye(len(root), count)]


def _coupled(bases: Sequence[Floats], n_components: int, room: float) -> tuple[Floats, list[Floats]]:
    """Return the leading eigenvalues above zero over V - 1, and the vectors view by view."""
    ends = np.cumsum([0, *(basis.shape[1] for basis in bases)]).tolist()
    spans = list(pairwise(ends))
    size = ends[-1]
    count = min(n_components, size)
    if count == 0:
        return np.empty(0), [np.empty((basis.shape[1], 0)) for basis in bases]
    if size <= SMALL and coupled_mib(len(bases[0]), size) <= room:
        joined = np.hstack(bases)
        with single_threaded_blas():
            A = joined.T @ joined
        for lo, hi in spans:
            A[lo:hi, lo:hi] = 0.0
        values, Y = leading_of(A, count)
    else:

        def product(block: Floats) -> Floats:
            with single_threaded_blas():
                images = [basis @ block[lo:hi] for basis, (lo, hi) in zip(bases, spans, strict=True)]
                total = np.sum(images, axis=0)
                return np.vstack([basis.T @ (total - image) for basis, image in zip(bases, images, strict=True)])

        values, Y, _ = leading_vectors(product, size, count, RESIDUAL)
    correlations = values[:count] / (len(bases) - 1)
    keep = np.flatnonzero(correlations > ZERO_EIGENVALUE)
    return correlations[keep], [Y[lo:hi, keep] for lo, hi in spans]
