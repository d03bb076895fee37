"""Partitions through cluster sums: any kernel, (k, n) numbers besides it."""

import numpy as np

from kernelweave.backends import Assignment, BackendArray, CandidateRuns, Moves, Steps
from kernelweave.foundation.array_types import Floats, Ints
from kernelweave.partitions.partition import Partition


class SumsPartition(Partition):
    """Clusters of any kernel, through the (k, n) sums of its rows."""

    sums: BackendArray
    #: Rows use up the moves that a pass allows, and the next one comes sooner: with that they cost about twice as much.
    _expensive_share = 0.5
    #: What the last moves led to, where it was found with them: sums inside of clusters, and nearest ones.
    _found: tuple[Floats, Assignment] | None = None
    #: What takes steps on these sums, where the backend has it.
    _steps: Steps | None = None
    #: Whether nearest clusters were asked for last without coefficients: after the next moves they will be again.
    _plain = False

    def nearest(self, coefs: Floats | None = None) -> Assignment:
        """Return the nearest cluster of every sample, from the sums."""
        self._plain = coefs is None
        if self._plain and self._found is not None:
            return self._found[1]
        return self.backend.nearest(self.sums, self.totals, self.norms, self.labels, self.tolerance, self.diag, coefs)

    def distances_to_centers(self) -> BackendArray:
        """Return the squared distance of every sample to its centre, from the sums."""
        return self.backend.distances_to_clusters(self.sums, self.totals, self.norms, self.labels, self.diag)

    def run_candidates(self, candidates: Ints, max_iter: int, deadline: float = np.inf) -> CandidateRuns | None:
        """Run kernel k-means with each candidate in turn as the centre of one more cluster.

        None where the kernel is not stored or the backend has no compiled runs.
        """
        matrix = self.op.stored_matrix()
        run_candidates = self.backend.run_candidates
        if matrix is None or run_candidates is None:
            return None
        return run_candidates(
            matrix,
            self.labels,
            self.weights,
            self.sums,
            self.totals,
            candidates,
            mass=self.backend.dot(self.weights, self.diag),
            tolerance=self.tolerance,
            noise=self.noise,
            max_iter=max_iter,
            deadline=deadline,
        )

    def _compute(self) -> None:
        self._found = None
        if self._steps is not None:
            self._steps.end()
            self._steps = None
        self.sums = self.op.cluster_sums(self.labels, self.weights, self.n_clusters)

    def _update(self, moves: Moves) -> None:
        self._found = self._step(moves)
        if self._found is None:
            self.op.move_sums(self.sums, moves, self.weights)

    def _step(self, moves: Moves) -> tuple[Floats, Assignment] | None:
        """Move samples and find where all go next; None where nobody will ask or the backend cannot."""
        if not self._plain:
            return None
        if self._steps is None:
            matrix = self.op.stored_matrix()
            begin = self.backend.steps
            if matrix is None or begin is None:
                return None
            self._steps = begin(matrix, self.weights, self.sums)
        return self._steps.step(moves, self.totals, self.tolerance, self.diag)

    def _within(self) -> Floats:
        if self._found is not None:
            return self._found[0]
        return self.backend.within_sums(self.sums, self.labels, self.weights)

    def _products(self) -> Floats:
        return self.backend.cluster_products(self.sums, self.labels, self.weights)
