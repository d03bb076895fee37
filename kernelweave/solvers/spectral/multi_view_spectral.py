"""Multi-view spectral clustering (MVSpec): relaxed clusters and view weights in turn.

Objective   J(Y, w) = sum_v w_v^p D_v(Y), D_v = t_v - tr(Y^T K_v Y), over orthonormal Y and w on the simplex; t_v is
            the trace of K_v, or the number of eigenvectors where K_v is divided by degrees (D_v is then a relaxed
            normalized cut)
Input       a weighted sum of kernels with its spectrum, view weights to begin with
Cost        an outer step is one set of leading eigenvectors: an eigenproblem of the size of the features, or a few
            block products with the kernels
Guarantee   J never rises; Y is not made discrete on the way
Source      PhD 4.2.2 and (4.8)-(4.10); Tzortzis and Likas, ICDM 2012
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelweave.backends import BackendArray
from kernelweave.foundation.array_types import Floats
from kernelweave.foundation.checkpoints import NOTHING, Keeper, State
from kernelweave.partitions import algebra
from kernelweave.partitions.views import without_rounding
from kernelweave.solvers.shared.view_weights import best_view_weights, start_of_weights
from kernelweave.solvers.spectral.eigenvectors import Eigenpairs, Spectrum, StoredBlock

# Relative residual of eigenvectors on the way, at first and at last, and at the end. The sum of the traces is right to
# its square, but the trace of a view, which its weight follows, only to its size. So it is a share of how far weights
# moved last; good vectors cost little once weights hardly move.
ROUGHEST = 1e-3
ROUGH = 1e-5
SHARE_OF_MOVE = 0.03
FINE = 1e-6


@dataclass(frozen=True)
class MultiViewSpectrum:
    """Relaxed solution: view weights, and the spectrum at them."""

    view_weights: Floats  # (V,) add up to 1
    view_scatters: Floats  # (V,) D_v
    eigenvalues: Floats  # (k,) of the weighted sum
    history: tuple[float, ...]  # J after every outer step
    converged: bool
    pairs: Eigenpairs  # at these weights

    @property
    def objective(self) -> float:
        """J at the end."""
        return self.history[-1]

    @property
    def residual(self) -> float:
        """How far the eigenvectors are from being exact."""
        return self.pairs.residual

    def embedding(self) -> BackendArray:
        """Return the eigenvectors at every sample, shape (n, k), where the data live."""
        return self.pairs.embedding()

    def sources(self) -> BackendArray:
        """Return what the kernel rows of new samples are multiplied by, shape (n, k)."""
        return self.pairs.sources()

    @property
    def n_iter(self) -> int:
        """Outer steps."""
        return len(self.history)


def multi_view_spectral(
    spectrum: Spectrum,
    totals: Floats,
    *,
    n_vectors: int,
    p: float,
    view_weights: Floats,
    learned: bool = True,
    max_iter: int = 100,
    tol: float = 1e-6,
    keeper: Keeper = NOTHING,
    on_step: Callable[[float], object] | None = None,
    first: Eigenpairs | None = None,
    residual: float | None = None,
) -> MultiViewSpectrum:
    """Alternate from ``view_weights`` until J falls by at most ``tol * J``; ``totals`` are the t_v.

    J is taken after the weights have followed the eigenvectors. With ``learned=False`` one decomposition is all;
    infinite ``p`` stands for equal weights that stay. ``first`` are the eigenpairs of equal weights, where these are
    ``view_weights``: their coefficients are in proportion for any ``p``. With ``residual`` the run is a rough one: all
    eigenvectors are found to it, in place of ``ROUGHEST`` to ``ROUGH`` on the way, and those at the end are the last
    that weights followed from, instead of others to ``FINE``.
    """
    p, view_weights, learned = start_of_weights(p, view_weights, learned)
    begun = begun_at(keeper.known(), view_weights)
    view_weights = begun.view_weights
    history = begun.history
    converged = begun.converged
    move = begun.move
    rough = ROUGH if residual is None else residual
    roughest = ROUGHEST if residual is None else residual
    fine = FINE if residual is None else residual
    pairs: Eigenpairs | None = None
    start: Eigenpairs | StoredBlock | None = begun.start
    while not converged and len(history) < max_iter:
        wanted = float(np.clip(SHARE_OF_MOVE * move, rough, roughest)) if learned else fine
        known = first if start is None else None
        pairs = spectrum.leading(view_weights**p, n_vectors, wanted, start) if known is None else known
        start = pairs
        scatters = _scatters(totals, pairs.traces)
        if learned:
            before = view_weights
            view_weights = best_view_weights(scatters, p)
            move = float(np.abs(view_weights - before).max())
        history.append(float(view_weights**p @ scatters))
        if on_step is not None:
            on_step(history[-1])
        if not learned:
            converged = True
        elif len(history) > 1:
            fall = history[-2] - history[-1]
            least = rough * float(view_weights**p @ np.abs(totals))  # less is not known about J on the way
            converged = fall <= tol * max(abs(history[-1]), least) or move <= algebra.EPS
        if learned:
            keeper.keep(state_of, view_weights, history, converged, start, move)
    if learned and residual is None:  # eigenvectors of the weights reported
        pairs = spectrum.leading(view_weights**p, n_vectors, fine, start)
    assert pairs is not None  # max_iter is at least 1
    return MultiViewSpectrum(
        view_weights, _scatters(totals, pairs.traces), pairs.values, tuple(history), converged, pairs
    )


@dataclass(frozen=True)
class Begun:
    """Where a run begins: at its weights, or where it was when it was stopped."""

    view_weights: Floats
    history: list[float]
    converged: bool
    start: StoredBlock | None
    move: float = np.inf  # how far the last step moved a weight


def begun_at(known: State | None, view_weights: Floats) -> Begun:
    """Return where a run begins whose state, if any, is known."""
    if known is None:
        return Begun(view_weights, [], False, None)
    values = known["view_weights"], known["history"], known["converged"], StoredBlock(known["block"])
    return Begun(*values, known.get("move", 0.0))


def state_of(view_weights: Floats, history: list[float], converged: bool, pairs: Any, move: float = 0.0) -> State:
    """Return what a run goes on from."""
    block = getattr(pairs, "host_block", None)
    return {
        "view_weights": view_weights,
        "history": history,
        "converged": converged,
        "block": block,
        "move": move,
    }


def _scatters(totals: Floats, traces: Floats) -> Floats:
    return without_rounding(totals - traces, np.abs(totals) + np.abs(traces))
