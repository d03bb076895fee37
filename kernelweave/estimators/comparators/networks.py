"""What methods on networks of samples share: distances in a view, clusters of a network, labels of new samples.

fit_network  ──▶ NetworkView   how the samples of a view are compared, and the training samples it has
NetworkView  ──▶ .shares()     affinities with the nearest training samples, as shares of their sum
Propagation  ──▶ .assign()     the cluster whose training samples have the largest shares
cut_network  ──▶ sets embedding_, labels_ and the rest of what spectral clustering finds on the estimator
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import normalize

from kernelweave.estimators.shared.embedding import relaxed_clusters, round_embedding, unit_rows
from kernelweave.estimators.shared.fit_warnings import warn_if_inexact
from kernelweave.foundation.array_types import Floats, Ints, Matrix
from kernelweave.foundation.threads import for_ranges, single_threaded_blas
from kernelweave.inputs import Views, absent_rows, row_digests
from kernelweave.kernels.operator import KernelOperator
from kernelweave.kernels.representations import view_kind
from kernelweave.kernels.transforms import DegreeKernel, ShiftedKernel
from kernelweave.kernels.weighted_sum import CompositeKernel
from kernelweave.solvers.comparators.network_fusion import Neighborhoods, neighbor_shares, neighborhoods

# Rows of distances computed together.
ROWS = 256
# Squared distances below this share of the squared lengths are rounding: the samples are equal.
EQUAL = 64.0 * float(np.finfo(np.float64).eps)
# A column whose deviation is below this share of its largest value is constant.
CONSTANT = 1e-12


# --- one view --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class NetworkView:
    """The training samples of one view, and how new ones are compared with them."""

    origin: Floats | None  # (d,) taken off for the sake of rounding; None where rows are sparse
    factors: Floats | None  # (d,) that columns are multiplied by; None: they stay
    rows: Matrix  # (n_present, d) the training samples, compared like this
    means: Floats  # (n_present,) their mean distances to their nearest neighbours
    samples: Ints  # (n_present,) which training samples these are
    n_neighbors: int
    mu: float
    unit: bool = False  # whether rows are compared at unit length

    def shares(self, block: Matrix, n_samples: int) -> sp.csr_array:
        """Return the shares of new samples over all ``n_samples`` training samples; absent ones have none."""
        new = np.flatnonzero(~absent_rows(block))
        shape = (block.shape[0], n_samples)
        if len(new) == 0:
            return sp.csr_array(shape)
        D = _distances(_compared(block[new], self.origin, self.factors, self.unit), self.rows)
        here = neighborhoods(D, self.n_neighbors, among=False)
        return spread(neighbor_shares(D, here, self.means, self.mu, among=False), new, self.samples, shape)


@dataclass(frozen=True)
class Network:
    """A view that was compared: the model of it, its distances and its neighbourhoods."""

    view: NetworkView
    distances: Floats  # (n_present, n_present)
    neighborhoods: Neighborhoods

    def shares(self) -> sp.csr_array:
        """Return the shares of the training samples over their neighbours, among those that are present."""
        there = self.neighborhoods.means
        return neighbor_shares(self.distances, self.neighborhoods, there, self.view.mu, among=True)


def fit_network(views: Views, position: int, n_neighbors: int, mu: float, *, standardize: bool | str) -> Network:
    """Return the network of one view; of fewer samples than ``n_neighbors`` all others are neighbours."""
    samples = views.present(position)
    block = views.blocks[position]
    block = block if views.observed is None else block[samples]
    unit = standardize == "auto" and view_kind(block) == "counts"
    factors = _column_factors(block) if standardize and not unit else None
    origin = None if sp.issparse(block) or unit else block.mean(axis=0)
    rows = _compared(block, origin, factors, unit)
    D = _distances(rows, rows)
    np.fill_diagonal(D, 0.0)
    m = min(n_neighbors, len(samples) - 1)
    near = neighborhoods(D, m, among=True)
    return Network(NetworkView(origin, factors, rows, near.means, samples, m, mu, unit), D, near)


def spread(A: sp.csr_array, rows: Ints, columns: Ints, shape: tuple[int, int]) -> sp.csr_array:
    """Return a matrix between some rows and columns as one between all."""
    if A.shape == shape:
        return A
    edges = sp.coo_array(A)
    return sp.csr_array((edges.data, (rows[edges.row], columns[edges.col])), shape=shape)


def _column_factors(block: Matrix) -> Floats:
    """Return one over the deviation of every column, zero for a constant one."""
    if sp.issparse(block):
        means = np.asarray(block.mean(axis=0)).ravel()
        squares = np.asarray(block.multiply(block).mean(axis=0)).ravel()
        deviations = np.sqrt(np.maximum(squares - means**2, 0.0))
        largest = np.asarray(abs(block).max(axis=0).toarray()).ravel()
    else:
        deviations = block.std(axis=0)
        largest = np.abs(block).max(axis=0)
    varies = deviations > CONSTANT * largest
    return np.divide(1.0, deviations, out=np.zeros_like(deviations), where=varies)


def _compared(block: Matrix, origin: Floats | None, factors: Floats | None, unit: bool) -> Matrix:
    """Return samples as they are compared: sparse where there is no origin, of unit length where asked."""
    if origin is None:
        rows = sp.csr_array(normalize(block) if unit else block)
        return rows if factors is None else sp.csr_array(rows.multiply(factors[None]))
    rows = (block.toarray() if sp.issparse(block) else block) - origin
    if factors is not None:
        rows *= factors
    return rows


def _distances(A: Matrix, B: Matrix) -> Floats:
    """Return the Euclidean distances between the rows of two matrices, both dense or both sparse."""
    n = A.shape[0]
    D = np.empty((n, B.shape[0]))
    lengths = [np.asarray((rows * rows).sum(axis=1)).ravel() for rows in (A, B)]
    columns = sp.csr_array(B.T) if sp.issparse(B) else B.T

    def work(lo: int, hi: int) -> None:
        products = A[lo:hi] @ columns
        sizes = lengths[0][lo:hi, None] + lengths[1]
        squares = sizes - 2.0 * (products.toarray() if sp.issparse(products) else products)
        squares[squares <= EQUAL * sizes] = 0.0
        np.sqrt(squares, out=D[lo:hi])

    with single_threaded_blas():
        for_ranges(work, n, width=ROWS, elements=D.size * A.shape[1])
    return D


# --- clusters --------------------------------------------------------------------------------------------------------


def cut_network(estimator: Any, affinities: KernelOperator, X: Any, y: Any) -> None:
    """Cluster a network by the method of Ng, Jordan and Weiss, and keep what it finds on the estimator."""
    k = estimator.n_clusters
    ones = np.ones(affinities.n_samples)
    # What a sample has with itself says nothing, and would tell equal samples apart.
    op = DegreeKernel(ShiftedKernel(affinities, -affinities.diag()), ones)
    relaxed = relaxed_clusters(
        CompositeKernel([op], [1.0]),
        ones,
        np.array([float(k)]),
        n_vectors=k,
        p=1.0,
        view_weights=np.ones(1),
        learned=False,
    )
    warn_if_inexact(relaxed.result.residual)
    estimator.eigenvalues_ = relaxed.result.eigenvalues
    estimator.objective_ = relaxed.result.objective
    estimator.objective_path_ = np.array(relaxed.result.history)
    estimator.embedding_ = unit_rows(relaxed.embedding)
    choices = {"n_clusters": k, "n_init": estimator.n_init, "random_state": estimator.random_state}
    clusters = round_embedding(estimator, estimator.embedding_, X, y, **choices)
    estimator.labels_ = _in_order(clusters.labels)
    estimator.converged_ = clusters.converged


def _in_order(labels: Ints) -> Ints:
    """Return clusters numbered by their first samples.

    In a network that falls apart all starts of k-means meet in one partition, and rounding alone chooses among them.
    """
    _, first, number = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[number.ravel()]


# --- new samples -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Propagation:
    """Labels of the training samples, handed on to new samples in one step."""

    views: tuple[NetworkView, ...]
    labels: Ints  # (n,)
    n_clusters: int
    digests: Ints  # (n,) of the training samples' rows, by which they are recognised

    @classmethod
    def of_training(cls, networks: Sequence[NetworkView], views: Views, labels: Ints, n_clusters: int) -> "Propagation":
        """Return the model of clustered samples."""
        return cls(tuple(networks), labels, n_clusters, row_digests(views.blocks))

    def votes(self, blocks: Sequence[Matrix]) -> Floats:
        """Return the shares of every cluster, summed over the views; a sample's views count the same."""
        n = len(self.labels)
        member = sp.csr_array((np.ones(n), self.labels, np.arange(n + 1)), shape=(n, self.n_clusters))
        votes = np.zeros((blocks[0].shape[0], self.n_clusters))
        for view, block in zip(self.views, blocks, strict=True):
            votes += (view.shares(block, n) @ member).toarray()
        return votes

    def assign(self, blocks: Sequence[Matrix]) -> Ints:
        """Return the cluster of every sample; one that equals a training sample has its label."""
        labels = self.votes(blocks).argmax(axis=1)
        digests = row_digests(blocks)
        order = np.argsort(self.digests, kind="stable")
        place = order[np.minimum(np.searchsorted(self.digests, digests, sorter=order), len(order) - 1)]
        return np.where(self.digests[place] == digests, self.labels[place], labels)
