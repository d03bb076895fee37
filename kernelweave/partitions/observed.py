"""Partitions of samples that are absent from some views: centres and costs over what was observed.

J = sum_v c_v / W_v sum_{i in v} w_i ||phi_v(x_i) - m_cv||^2, with W_v the weight of the samples of view v and m_cv the
mean of the members of cluster c in this view. A cluster that nobody of a view is in has the mean of the view as its
centre there: nothing of J depends on it, but samples of the view can move into the cluster. A cluster without any
member has no centre, as in other partitions.

Cluster sums of every view are kept, (k, n_v) numbers each; samples that move cost their rows, new coefficients nothing.
All arrays of samples live where the kernels do, which must be one place.
"""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from kernelweave.backends import Assignment, Backend, BackendArray, Moves
from kernelweave.foundation.array_types import Floats, Ints
from kernelweave.partitions import algebra
from kernelweave.partitions.algebra import TIE_TOLERANCE
from kernelweave.partitions.empty import reseed_empty
from kernelweave.partitions.kernel import Kernel
from kernelweave.partitions.views import without_rounding


class ObservedKernels(Protocol):
    """The kernels of several views, each among the samples that the view has."""

    @property
    def operators(self) -> Sequence[Kernel]:
        """The kernel of every view."""

    @property
    def samples(self) -> Sequence[Ints]:
        """The samples of every view."""


class _ViewClusters:
    """Centres of all clusters in one view; weights are divided by their sum W_v. Arrays live with the view's kernel."""

    def __init__(self, op: Kernel, samples: Ints, weights: Floats, n_clusters: int) -> None:
        self.op = op
        self.backend = op.backend
        self.samples: BackendArray = self.backend.array(samples, np.intp)
        self.diag = op.diag()
        self.scale = op.scale()
        own = weights[samples]
        self.weight = float(own.sum())
        self.shares: BackendArray = self.backend.array(own / self.weight if self.weight > 0 else np.zeros(len(samples)))
        self._masses = self.shares * self.diag
        self._k = n_clusters
        self._n_moves = 0

    @property
    def exact(self) -> bool:
        """Whether the sums come straight from a pass over the data."""
        return self._n_moves == 0

    def compute(self, labels: BackendArray) -> None:
        """Recompute everything from the labels of all samples."""
        self.labels = self.backend.take(labels, self.samples)
        self.sums = self.op.cluster_sums(self.labels, self.shares, self._k)
        self._n_moves = 0
        self._measure()

    def follow(self, labels: BackendArray) -> None:
        """Follow samples to other clusters, by their rows or by a pass if that is cheaper."""
        moves = self.backend.moves(self.labels, self.backend.take(labels, self.samples))
        if moves.count == 0:
            return
        if self._n_moves + moves.count > self.op.n_samples:
            self.compute(labels)
            return
        self.op.move_sums(self.sums, moves, self.shares)
        self.labels = moves.labels
        self._n_moves += moves.count
        self._measure()

    def _measure(self) -> None:
        """Take weights and squared lengths of the centres from the sums; where nobody is, those of the view's mean."""
        self.totals = self.backend.segment_sums(self.labels, self.shares, self._k)
        self.within = self.backend.within_sums(self.sums, self.labels, self.shares)
        self.masses = self.backend.segment_sums(self.labels, self._masses, self._k)
        self.norms = algebra.center_norms(self.within, self.totals)
        self._filled = self.totals > 0
        self._mean_sums: BackendArray = None
        if not self._filled.all():
            self._mean_sums = self.backend.weighted_sum(np.ones(self._k), self.sums)
            self.norms = np.where(self._filled, self.norms, self.backend.dot(self.shares, self._mean_sums))

    def inner(self) -> BackendArray:
        """Return <phi(x_i), m_c> of every sample of the view, shape (k, n_v)."""
        means = self.sums / np.where(self._filled, self.totals, 1.0)[:, None]
        if self._mean_sums is None:
            return means
        filled = self.backend.array(self._filled[:, None], np.bool_)
        return self.backend.where(filled, means, self._mean_sums[None])

    def distances(self) -> BackendArray:
        """Return ||phi(x_i) - m_c||^2 of every sample of the view, shape (k, n_v)."""
        return self.diag - 2.0 * self.inner() + self.norms[:, None]

    def center_distances(self) -> Floats:
        """Return the squared distances between centres, shape (k, k)."""
        products = self.backend.cluster_products(self.inner(), self.labels, self.shares)
        of_mean = products.sum(axis=1, keepdims=True)  # with the centre of a cluster that nobody of the view is in
        products = np.where(self._filled, products / np.where(self._filled, self.totals, 1.0), of_mean)
        return self.norms[:, None] + self.norms[None, :] - products - products.T

    def scatters(self) -> Floats:
        """Return the mean squared distances to the centres, cluster by cluster."""
        return algebra.cluster_scatter(self.within, self.totals, self.masses)

    def scatter(self) -> float:
        """Return D_v / W_v, zero where rounding is all that is left."""
        shares = self.within[self._filled] / self.totals[self._filled]
        mass = float(self.masses.sum())
        size = np.abs(self.masses).sum() + np.abs(shares).sum()
        return float(without_rounding(np.array(mass - shares.sum()), np.array(size)))


class ObservedPartition:
    """One partition of samples that are absent from some views, where the kernels are; it moves as others do."""

    def __init__(
        self, views: ObservedKernels, labels: Ints, weights: Floats, n_clusters: int, coefficients: Floats
    ) -> None:
        self.backend: Backend = views.operators[0].backend
        self.weights: BackendArray = self.backend.array(weights)
        self.n_clusters = n_clusters
        pairs = zip(views.operators, views.samples, strict=True)
        self._views = [_ViewClusters(op, samples, weights, n_clusters) for op, samples in pairs]
        self.labels: BackendArray = self.backend.labels(labels)
        self._nothing = 0.0 * self.weights  # costs are distances already; k(x, x) adds nothing
        self.refresh()
        self.reweigh(coefficients)

    def reweigh(self, coefficients: Floats) -> None:
        """Change the coefficients of the views."""
        self.coefficients = np.asarray(coefficients, dtype=np.float64)
        weights = np.array([view.weight for view in self._views])
        #: What a squared distance in each view costs a sample, per unit of its weight.
        self.prices = np.divide(self.coefficients, weights, out=np.zeros(len(weights)), where=weights > 0)
        scales = np.array([view.scale for view in self._views])
        #: Costs that differ by no more than this are equal.
        self.tolerance = TIE_TOLERANCE * float(np.abs(self.prices) @ scales)
        #: The objective is known no better than this.
        self.noise = 16.0 * algebra.EPS * float(np.abs(self.coefficients) @ scales)

    # What is known about the clusters

    @property
    def norms(self) -> Floats:
        """The squared lengths of the centres at the prices of the views, infinite for a cluster without weight."""
        return np.where(self.totals > 0, self.prices @ self.view_norms(), np.inf)

    def view_norms(self) -> Floats:
        """Return the squared lengths of the centres in every view, shape (V, k)."""
        return np.stack([view.norms for view in self._views])

    def view_totals(self) -> Floats:
        """Return the weight of each cluster among the samples of every view, shape (V, k)."""
        return np.stack([view.weight * view.totals for view in self._views])

    def view_scatters(self) -> Floats:
        """Return D_v / W_v, the mean squared distance to the centres in every view."""
        return np.array([view.scatter() for view in self._views])

    def scatter(self) -> Floats:
        """Return the objective cluster by cluster."""
        return np.asarray(self.coefficients @ np.stack([view.scatters() for view in self._views]))

    @property
    def objective(self) -> float:
        """J of the partition."""
        return float(self.scatter().sum())

    def host_labels(self) -> Ints:
        """Return all labels as NumPy: for the end of a run."""
        return self.backend.host(self.labels)

    # Going to another partition

    def refresh(self) -> None:
        """Recompute everything."""
        for view in self._views:
            view.compute(self.labels)
        self._weigh()

    def moves_to(self, labels: BackendArray) -> Moves:
        """Return which samples have other labels in another partition."""
        return self.backend.moves(self.labels, labels)

    def move(self, moves: Moves) -> None:
        """Go to another partition."""
        self.labels = moves.labels
        for view in self._views:
            view.follow(self.labels)
        self._weigh()

    def _weigh(self) -> None:
        #: The weight of each cluster, whatever views its samples are in.
        self.totals: Floats = self.backend.segment_sums(self.labels, self.weights, self.n_clusters)

    def cut_back(self, before: BackendArray, moves: Moves, distances: BackendArray, objective: float) -> bool:
        """Keep the most useful half of the moves, then a quarter, ... until the objective falls; else undo them all.

        ``before`` are the labels the moves started from, ``distances`` the costs in the clusters they lead to. Returns
        whether the objective fell.
        """
        self.move(self.moves_to(before))
        gains = (distances - self._costs_now()) / (self.tolerance / TIE_TOLERANCE or 1.0)
        size = moves.count // 2
        while size:
            self.move(self.moves_to(self.backend.best_moves(before, moves, gains, size)))
            if self.objective < objective - self.noise:
                return True
            size //= 2
        self.move(self.moves_to(before))
        return False

    # Who would move

    def costs(self) -> BackendArray:
        """Return what every sample costs in each cluster, over the views it is in, shape (k, n)."""
        total = self._nothing[None] * np.ones((self.n_clusters, 1))  # made where the kernels are
        for view, price in zip(self._views, self.prices.tolist(), strict=True):
            if price != 0.0:
                self.backend.add_to_samples(total, view.samples, price * view.distances())
        return total

    def _costs_now(self) -> BackendArray:
        ones = np.ones(self.n_clusters)
        return self.backend.distances_to_clusters(-0.5 * self.costs(), ones, 0.0 * ones, self.labels, self._nothing)

    def nearest(self) -> Assignment:
        """Return the cluster in which every sample costs least, and that cost; a tie leaves a sample where it is."""
        norms = np.where(self.totals > 0, 0.0, np.inf)
        ones = np.ones(self.n_clusters)
        # The rule of other partitions, whose distances are norms - 2 sums / totals + diag.
        return self.backend.nearest(-0.5 * self.costs(), ones, norms, self.labels, self.tolerance, self._nothing)

    def certain(self, lead: float) -> bool:
        """Whether recomputing everything would leave every label where it is."""
        return all(view.exact for view in self._views)

    def reseeded(self, assignment: Assignment) -> BackendArray:
        """Return the labels of an assignment, every empty cluster given the costliest sample that can be spared."""
        return reseed_empty(self.backend, assignment, self.weights, self.n_clusters, self.tolerance)

    def merged(self) -> BackendArray:
        """Return the labels with clusters whose centres coincide in every view under their lowest number."""
        filled = np.flatnonzero(self.totals > 0)
        if len(filled) < 2:
            return self.labels
        apart: Any = sum(
            price * view.center_distances() for view, price in zip(self._views, self.prices.tolist(), strict=True)
        )
        equal = np.abs(apart[np.ix_(filled, filled)]) <= self.tolerance
        target = np.arange(self.n_clusters)
        target[filled] = np.minimum(filled[equal.argmax(axis=1)], filled)
        return self.backend.relabel(self.labels, target)
