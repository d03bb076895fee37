"""One partition and what is known about its clusters, kept up to date while samples move.

The object lives where the data live: labels, weights and distances of samples are arrays of the kernel's backend, and
what the host sees are numbers for each cluster and how many samples would move. Recomputing everything costs a pass
over the data; moving m samples costs their m rows. Rounding of the updates is bounded as they happen, and a pass is
repeated when as many samples have moved as there are.

A cluster that lost all its samples takes the sample farthest from its centre, unless that is the last of its own
cluster. This lowers the objective further, so descent stays monotone. Where no sample lies away from its centre there
are fewer distinct samples than clusters, and the cluster stays empty: it has no centre and is never the nearest.
Clusters whose centres coincide (equal samples, split by the start) can be merged, and the freed one starts again in the
same way.
"""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from kernelweave.backends import Assignment, BackendArray, CandidateRuns, Moves
from kernelweave.foundation.array_types import Floats, Ints
from kernelweave.partitions import algebra
from kernelweave.partitions.algebra import TIE_TOLERANCE
from kernelweave.partitions.empty import reseed_empty
from kernelweave.partitions.kernel import Kernel

#: Gains of candidates closer than this, relatively, are equal.
EQUAL_GAINS = 1e-12


class Partition(ABC):
    """Weights, centres and objective of a partition; the only mutable object of the solvers."""

    within: Floats  # (k,) Q_c, the weighted sum of the kernel over all pairs of members
    totals: Floats  # (k,) weight of each cluster
    members: Ints  # (k,) number of samples with weight
    norms: Floats  # (k,) ||m_c||^2, infinite for a cluster without weight
    #: With a larger share of samples moving at once a pass is cheaper than their rows.
    _expensive_share = 1.0

    def __init__(self, op: Kernel, labels: Any, weights: Any, n_clusters: int) -> None:
        self.backend = op.backend
        self.weights: BackendArray = self.backend.array(weights)
        self.n_clusters = n_clusters
        self._counted = self.weights > 0
        self._measure(op)
        self.labels: BackendArray = self.backend.labels(labels)
        self.refresh()

    def _measure(self, op: Any) -> None:
        """Take what follows from the kernel alone."""
        self.op = op
        self.diag = op.diag()
        #: Size of kernel values.
        self.scale: float = op.scale()
        #: Distances that differ by no more than this are equal: well above what sums pick up in rounding, so that
        #: ties are decided by rule and not by the order of additions.
        self.tolerance = TIE_TOLERANCE * self.scale
        self._masses = self.weights * self.diag
        self._mass = self.backend.total(self._masses)
        #: The objective is known no better than this.
        self.noise = 16.0 * algebra.EPS * self.backend.total(self.weights) * self.scale

    @property
    def objective(self) -> float:
        """The weighted squared distances to the cluster means, summed."""
        filled = self.totals > 0
        return self._mass - float(np.sum(self.within[filled] / self.totals[filled]))

    @property
    def exact(self) -> bool:
        """Whether everything comes straight from a pass over the data."""
        return self._n_moves == 0

    def scatter(self) -> Floats:
        """Return the objective cluster by cluster."""
        return algebra.cluster_scatter(self.within, self.totals, self._cluster_masses)

    def host_labels(self) -> Ints:
        """Return all labels as NumPy: for the end of a run."""
        return self.backend.host(self.labels)

    # Going to another partition

    def refresh(self) -> None:
        """Recompute everything."""
        self._compute()
        self._n_moves = 0
        self._moved_weight = 0.0
        self.members = self.backend.segment_sums(self.labels, self._counted, self.n_clusters).astype(np.intp)
        self.totals = self.backend.segment_sums(self.labels, self.weights, self.n_clusters)
        self._cluster_masses = self.backend.segment_sums(self.labels, self._masses, self.n_clusters)
        self._update_norms()

    def moves_to(self, labels: BackendArray) -> Moves:
        """Return which samples have other labels in another partition."""
        return self.backend.moves(self.labels, labels)

    def move(self, moves: Moves) -> None:
        """Go to another partition, by the rows of the samples that differ or by a pass if that is cheaper."""
        self.labels = moves.labels
        n = self.op.n_samples
        if self._n_moves + moves.count > n or moves.count > self._expensive_share * n:
            self.refresh()
            return
        if moves.count == 0:
            return
        values = [self._counted, self.weights, self._masses]
        members, totals, masses = self.backend.moved_sums_of(moves, values, self.n_clusters)
        self.members = self.members + members.astype(np.intp)
        filled = self.members > 0
        self.totals = np.where(filled, self.totals + totals, 0.0)
        self._cluster_masses = np.where(filled, self._cluster_masses + masses, 0.0)
        self._n_moves += moves.count
        self._moved_weight += moves.count * float(self.totals.max())
        self._update(moves)
        self._update_norms()

    def go_to(self, labels: BackendArray) -> None:
        """Go to the partition of these labels."""
        self.move(self.moves_to(labels))

    def cut_back(self, before: BackendArray, moves: Moves, distances: BackendArray, objective: float) -> bool:
        """Keep the most useful half of the moves, then a quarter, ... until the objective falls; else undo them all.

        ``before`` are the labels the moves started from, ``distances`` those to the clusters they lead to. Returns
        whether the objective fell.
        """
        # A single move has no half: what it would have gained is not asked for.
        if moves.count > 1 and self._keep_part(before, moves, distances, objective):
            return True
        self.go_to(before)
        return False

    def _keep_part(self, before: BackendArray, moves: Moves, distances: BackendArray, objective: float) -> bool:
        at_start: Partition = self.op.partition(before, self.weights, self.n_clusters)
        gains = (distances - at_start.distances_to_centers()) / (self.scale or 1.0)
        size = moves.count // 2
        while size:
            self.go_to(self.backend.best_moves(before, moves, gains, size))
            if self.objective < objective - self.noise:
                return True
            size //= 2
        return False

    # Who would move

    @abstractmethod
    def nearest(self, coefs: Floats | None = None) -> Assignment:
        """Return the nearest cluster of every sample and the squared distance to it.

        With ``coefs``, one positive number per cluster and none above 1, distances are multiplied by them.
        """

    @abstractmethod
    def distances_to_centers(self) -> BackendArray:
        """Return the squared distance of every sample to the centre of its cluster."""

    def certain(self, lead: float) -> bool:
        """Whether recomputing everything would leave every label where it is.

        A distance is off by at most 3 rounding / W; a lead over twice that cannot turn round.
        """
        return self.exact or lead > 6.0 * self._rounding / float(self.totals[self.totals > 0].min())

    @property
    def _rounding(self) -> float:
        """What the sums may be off by since the last pass over the data."""
        return algebra.EPS * self._moved_weight * self.scale

    def reseeded(self, assignment: Assignment) -> BackendArray:
        """Return the labels of an assignment, every empty cluster given the farthest sample that can be spared."""
        return reseed_empty(self.backend, assignment, self.weights, self.n_clusters, self.tolerance)

    def merged(self) -> BackendArray:
        """Return the labels with clusters whose centres coincide under their lowest number."""
        target = coinciding(self._products(), self.totals, self.norms, self.tolerance)
        return self.labels if target is None else self.backend.relabel(self.labels, target)

    # New clusters

    def best_candidate(self) -> int:
        """Return the sample that is sure to lower the objective most as the centre of a new cluster (MSc 3.1, 4.3)."""
        # Without weight a sample may sit in a cluster without a centre.
        distances = self.backend.where(self._counted, self.distances_to_centers(), 0.0)
        gains = self.op.candidate_gains(distances, self.weights, self.diag)
        gains = self.backend.where(self._counted, gains, -np.inf)
        _, best = self.backend.extremes(gains)
        return self.backend.first(gains >= best - EQUAL_GAINS * abs(best))

    def with_candidate(self, sample: int) -> "Partition":
        """Return the partition in which one sample is a cluster of its own, the last one."""
        labels = self.backend.replace(self.labels, np.array([sample]), np.array([self.n_clusters]))
        partition: Partition = self.op.partition(labels, self.weights, self.n_clusters + 1)
        return partition

    def run_candidates(self, candidates: Ints, max_iter: int, deadline: float = np.inf) -> CandidateRuns | None:
        """Run kernel k-means with each candidate in turn as the centre of one more cluster; None where this cannot be
        done faster than one by one.
        """  # noqa: D205
        return None

    # Partitions to come back to

    def snapshot(self) -> BackendArray:
        """Return the labels in a small form, to be kept."""
        return self.backend.compact(self.labels, self.n_clusters)

    def restore(self, snapshot: BackendArray) -> None:
        """Go back to a partition that was kept."""
        self.go_to(self.backend.labels(snapshot))

    def fingerprint(self) -> bytes:
        """Return a digest of the labels."""
        return self.backend.fingerprint(self.snapshot())

    @abstractmethod
    def _compute(self) -> None:
        """Recompute the sums."""

    @abstractmethod
    def _update(self, moves: Moves) -> None:
        """Update the sums after moves."""

    @abstractmethod
    def _within(self) -> Floats:
        """Return Q_c from the sums."""

    @abstractmethod
    def _products(self) -> Floats:
        """Return the kernel summed over all pairs of members of two clusters, shape (k, k)."""

    def _update_norms(self) -> None:
        self.within = self._within()
        self.norms = algebra.center_norms(self.within, self.totals)


def coinciding(products: Floats, totals: Floats, norms: Floats, tolerance: float) -> Ints | None:
    """Return for every cluster the lowest one with the same centre, None where all differ.

    ``products`` holds the kernel summed over all pairs of members of two clusters.
    """
    filled = np.flatnonzero(totals > 0)
    if len(filled) < 2:
        return None
    scale = totals[filled][:, None] * totals[filled][None, :]
    distances = norms[filled][:, None] + norms[filled][None, :] - 2.0 * products[np.ix_(filled, filled)] / scale
    first = filled[np.argmax(np.abs(distances) <= tolerance, axis=1)]
    if np.array_equal(first, filled):
        return None
    target = np.arange(len(totals))
    target[filled] = np.minimum(first, filled)
    return target
