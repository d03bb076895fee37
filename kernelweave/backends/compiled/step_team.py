"""Who takes the steps of a descent on a stored kernel: the caller, and threads that stay between steps."""

import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from kernelweave.backends.compiled import steps
from kernelweave.backends.compiled.row_loops import PART, add_parts, nearest
from kernelweave.backends.preparing import read_only
from kernelweave.backends.protocol import Assignment, Moves
from kernelweave.foundation import pool
from kernelweave.foundation.array_types import Array, Floats
from kernelweave.foundation.threads import piece_width, worthwhile

# Seconds between looks at helpers that are about to leave.
NAP = 1e-4


class StepTeam:
    """Steps that change the cluster sums of one stored kernel, with what they need laid out once."""

    def __init__(self, K: Array, weights: Floats, sums: Floats) -> None:
        k, n = sums.shape
        self._K = read_only(K)
        self._weights = weights
        self._sums = sums
        self._ways = np.empty((3, n), dtype=np.intp)
        self._carried = np.empty(n)
        self._labels = np.empty(n, dtype=np.intp)
        self._clusters = np.empty((2, k))
        self._parts = np.empty((-(-n // PART), k))
        self._out = np.empty(n, dtype=np.intp)
        self._values = np.empty(n)
        self._leads = np.empty(len(self._parts))
        self._order = np.empty(n, dtype=np.intp)
        self._called: Callable[[], None] | None = None
        self._begin_anew()

    def step(self, moves: Moves, totals: Floats, tolerance: float, diag: Floats) -> tuple[Floats, Assignment]:
        """Move samples; returns the sums inside of clusters, and where all samples go next."""
        n = len(self._labels)
        m = moves.count
        laid_out = (self._ways, self._carried, self._clusters, self._order)
        steps.lay_out(moves.samples, moves.old, moves.new, self._weights, totals, *laid_out)
        self._labels[:] = moves.labels
        self._leads[:] = np.nan
        width = piece_width(n, self._gather(3 * m * n + self._sums.size, tolerance), PART)
        done = steps.take_steps(True, m, width, self._board, *self._arrays(tolerance))
        if not done:
            self._dismiss()
            self._decide_rest(tolerance)
        within = np.empty(len(totals))
        add_parts(self._parts, within)
        return within, Assignment(self._out.copy(), diag + self._values, float(self._leads.min()))

    def end(self) -> None:
        """Send helpers home, who are needed elsewhere; nobody is waited for."""
        self._board[steps.CLOSED] = 1

    def _begin_anew(self) -> None:
        """Take a board on which nobody is present."""
        self._board = np.zeros(steps.BOARD_SIZE, dtype=np.int64)
        self._process = os.getpid()

    def _gather(self, elements: int, tolerance: float) -> int:
        """Return how many threads take a step that touches so many elements; those that are missing are called."""
        if os.getpid() != self._process:  # a fork, which has no helpers
            self._begin_anew()
        wanted = worthwhile(elements) - 1
        present = int(self._board[steps.PRESENT])
        if wanted > present:
            if self._called is not None:
                self._called()
            self._board[steps.WANTED] = wanted
            given = self._arrays(tolerance)
            board = self._board
            self._called = pool.call(lambda: steps.take_steps(False, 0, 0, board, *given), wanted - present)
        return max(wanted, present) + 1

    def _arrays(self, tolerance: float) -> tuple[Any, ...]:
        rows = (self._K, self._ways, self._carried, self._labels, self._weights, self._clusters, tolerance)
        return (*rows, self._sums, self._parts, self._out, self._values, self._leads)

    def _dismiss(self) -> None:
        """Wait until all helpers have left, asleep; others will find a new board."""
        self.end()
        while self._board[steps.PRESENT] > 0:
            time.sleep(NAP)
        self._begin_anew()

    def _decide_rest(self, tolerance: float) -> None:
        """Find the nearest clusters of the samples that helpers have left."""
        totals, slopes = self._clusters
        norms = np.empty(len(totals))
        steps.center_norms(self._parts, totals, norms)
        arrays = (self._sums, slopes, norms, self._labels, tolerance, self._out, self._values)
        for part in np.flatnonzero(np.isnan(self._leads)).tolist():
            ends = (part * PART, min((part + 1) * PART, len(self._labels)))
            self._leads[part] = nearest(*arrays, *ends)
