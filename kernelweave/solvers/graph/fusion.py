"""Clusters of several graphs of the same samples: one fused graph, its leading eigenvectors, a normalized cut.

Fuse        W = sum_v a_v W_v with a_v = tr(U' S_v U) / k, the share of a view's edges that the common eigenvectors U
            keep; S_v is W_v with degrees normalised. One round, from equal weights. Graphs are summed before degrees
            are normalised, so that a view with few edges counts less.
            Where samples are absent from views, every edge is divided by the share of the views' weight that has both
            its ends: pairs that few views know are not taken for strangers. Pairs that no view has together get the
            mean affinity in the eigenproblem (a sum over patterns of absence, never stored); the cut leaves them out.
Embed       2k eigenvectors of the fused graph, those beyond k damped by (lambda_j / lambda_k)^4, rows of unit length
Round       of several runs of k-means on the rows the one with the lowest normalized cut, then single moves that
            lower the cut further

Source      the embedding after Ng, Jordan and Weiss, NIPS 2001; moves as in MSc 4.3. Fusion, damping and the choice by
            cut were chosen by ablation on the multi-view sets of the benchmarks.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from kernelweave.backends.graphs import product as graph_product
from kernelweave.backends.graphs import scale_rows
from kernelweave.backends.graphs import weighted_sum as sum_of_graphs
from kernelweave.backends.kmeans_runs import descended, spread_out
from kernelweave.foundation.array_types import Bools, Floats, Ints
from kernelweave.foundation.threads import parallel_map
from kernelweave.kernels.features import FeatureKernel
from kernelweave.kernels.graph import GraphKernel
from kernelweave.partitions import algebra
from kernelweave.partitions.graph_moves import GraphMoves
from kernelweave.solvers.kmeans.kernel_kmeans import PATIENCE, kernel_kmeans
from kernelweave.solvers.kmeans.starts import draws_of_a_center
from kernelweave.solvers.spectral.eigenvectors import DEPTH, GUARD, SMALL, leading_of, leading_vectors, search_within

#: Eigenvectors per cluster, and the power by which those beyond the first k are damped.
VECTORS_PER_CLUSTER = 2
DAMPING = 4
#: Relative residual of eigenvectors.
EIGEN_TOLERANCE = 1e-5
# Of graphs with more nodes only the first k eigenvectors are found exactly; others are damped, and cost the most.
MANY = 10_000
# Restarts of the search for eigenvectors: those that are not separated by then tell no clusters.
MOST_RESTARTS = 12
# Blocks of a Krylov basis of such graphs: fewer take less memory and are looked at sooner, with more restarts instead.
DEPTH_OF_MANY = 6
# The least weight of a view before scaling.
LEAST_WEIGHT = 1e-6
# A cut below this share of another is preferred although it comes from fewer eigenvectors.
HALVED = 0.5
# Most sweeps of single moves.
MAX_SWEEPS = 50
# k-means for the rounding is run on at most so many rows: centres are means, which a sample gives well enough.
ROUNDED_ROWS = 10_000
# Rows of a graph whose edges are divided together.
ROWS_TOGETHER = 512
# Most steps of one run of k-means.
KMEANS_STEPS = 100


@dataclass(frozen=True)
class Eigenvectors:
    """Leading eigenpairs of a graph whose degrees are normalised, largest first."""

    values: Floats  # (q,)
    vectors: Floats  # (n, q)
    residual: float
    block: Floats | None = None  # the vectors and a few more, which the next search may start from


@dataclass(frozen=True)
class Background:
    """The affinity of samples that no view has together: that of an average pair, since nothing is known about them.

    Without it, pairs that were never compared would count as strangers, and clusters would say who was measured where.
    """

    pattern: Ints  # (n,) of every sample
    unknown: Floats  # (n_patterns, n_patterns) 1 where two patterns have no view in common
    level: float

    def times(self, X: Floats) -> Floats:
        """Return the affinities times X (n, q)."""
        members = sp.csr_array(
            (np.ones(len(self.pattern)), (self.pattern, np.arange(len(self.pattern)))),
            shape=(len(self.unknown), len(self.pattern)),
        )
        return np.asarray((self.level * (self.unknown @ (members @ X)))[self.pattern])

    def degrees(self) -> Floats:
        """Return the sum of the affinities of every sample."""
        sizes = np.bincount(self.pattern, minlength=len(self.unknown))
        return np.asarray((self.level * (self.unknown @ sizes))[self.pattern])

    def dense(self) -> Floats:
        """Return the affinities of all pairs."""
        return np.asarray(self.level * self.unknown[np.ix_(self.pattern, self.pattern)])


@dataclass(frozen=True)
class Overlap:
    """Which views have two samples in common, by the patterns of views that samples are in."""

    pattern: Ints  # (n,) of every sample
    patterns: Bools  # (n_patterns, n_views) the views of each

    @classmethod
    def of(cls, observed: Bools) -> "Overlap":
        """Read the patterns off a table of samples and views."""
        patterns, pattern = np.unique(observed, axis=0, return_inverse=True)
        return cls(pattern.ravel(), patterns)

    def averaged(self, W: sp.csr_array, weights: Floats) -> sp.csr_array:
        """Return a weighted sum of graphs with every edge divided by the share of the weight that knows both ends.

        It is overwritten, some rows at a time: the ends of all edges would take more than the graph.
        """
        shares = (self.patterns * weights) @ self.patterns.T / weights.sum()
        for start in range(0, W.shape[0], ROWS_TOGETHER):
            ends = W.indptr[start : start + ROWS_TOGETHER + 1]
            edges = slice(ends[0], ends[-1])
            rows = np.repeat(self.pattern[start : start + ROWS_TOGETHER], np.diff(ends))
            W.data[edges] /= shares[rows, self.pattern[W.indices[edges]]]
        return W

    def background(self, W: sp.csr_array) -> Background | None:
        """Return the affinity of pairs without a common view, None where there are none; its level is the mean of W."""
        common = self.patterns.astype(np.int64) @ self.patterns.T > 0
        if common.all():
            return None
        sizes = np.bincount(self.pattern, minlength=len(self.patterns)).astype(np.float64)
        n_known = float(sizes @ common @ sizes) - len(self.pattern)
        level = float(W.sum()) / n_known if n_known > 0 else 0.0
        return Background(self.pattern, (~common).astype(np.float64), level)


@dataclass(frozen=True)
class FusedGraph:
    """The weighted sum of graphs, and its leading eigenvectors."""

    affinity: sp.csr_array
    view_weights: Floats  # (n_views,) of mean 1
    eigenvectors: Eigenvectors
    background: Background | None = None

    @property
    def degrees(self) -> Floats:
        """The degrees by which the eigenvectors were normalised."""
        return _degrees(self.affinity, self.background)


@dataclass(frozen=True)
class GraphClusters:
    """Labels of a graph's nodes with their normalized cut."""

    labels: Ints
    cuts: tuple[float, ...]  # of the best run, and after single moves; that of the labels last
    converged: bool  # whether no single move lowers the cut any more

    @property
    def cut(self) -> float:
        """Normalized cut of the labels."""
        return self.cuts[-1]


def _degrees(W: sp.csr_array, background: Background | None) -> Floats:
    degrees = np.asarray(W.sum(axis=1)).ravel()
    return degrees if background is None else degrees + background.degrees()


def normalized(W: sp.csr_array, background: Background | None = None) -> sp.csr_array:
    """Return D^-1/2 W D^-1/2, degrees with those of a background; a node without edges keeps an empty row."""
    scale = inverse_roots(_degrees(W, background))
    D = sp.dia_array((scale[None], [0]), shape=W.shape)
    return sp.csr_array(D @ W @ D)


def inverse_roots(degrees: Floats) -> Floats:
    """Return 1 / sqrt(degree), zero for a node without edges."""
    return np.asarray(np.divide(1.0, np.sqrt(degrees), out=np.zeros_like(degrees), where=degrees > 0))


def graph_eigenvectors(
    W: sp.csr_array,
    count: int,
    start: Eigenvectors | None = None,
    *,
    exact: int | None = None,
    background: Background | None = None,
    work: float = np.inf,
) -> Eigenvectors:
    """Return the leading eigenvectors of a graph, and of a background if there is one, with degrees normalised.

    A block method, so that every copy of a repeated eigenvalue is found, as a graph in several pieces has them. The
    first ``exact`` ones (by default all) are iterated to the tolerance; others of large graphs are as they come. The
    search takes ``work`` MiB, or as few as it can.
    """
    n = W.shape[0]
    count = min(count, n)
    scale = inverse_roots(_degrees(W, background))
    if n <= SMALL:
        dense = normalized(W, background).toarray()
        if background is not None:
            unknown = background.dense()
            unknown *= scale[:, None]
            unknown *= scale
            dense += unknown
            del unknown
        values, vectors = leading_of(dense, count)
        return Eigenvectors(values, vectors, 0.0)

    def product(X: Floats) -> Floats:
        # Instead of a scaled copy of the graph.
        total = graph_product(W, scale_rows(scale, X, np.empty(X.shape, precision)))
        if background is not None:
            total += background.times(scale[:, None] * X)
        return scale_rows(scale, total, total)

    first = None if start is None else start.block
    needed = count if exact is None else min(exact, count)
    extra = count - needed + GUARD
    search = search_within(work, n, count)
    usual = DEPTH if n <= MANY else DEPTH_OF_MANY
    kept = search.kept if search.depth < usual else 1
    depth = min(usual, search.depth)
    # Products wait for rows of X from all over memory, and half as many bytes take half the time. The matrix has norm
    # 1, so that rounding X to single precision moves a product by at most 6e-8 of its length, far below the tolerance.
    precision = np.float64 if n <= MANY else np.float32
    restarts = MOST_RESTARTS * DEPTH // (depth - kept + 1)
    values, block, residual = leading_vectors(
        product, n, needed, EIGEN_TOLERANCE, first, extra=extra, restarts=restarts, kept=kept, depth=depth
    )
    return Eigenvectors(values[:count], block[:, :count], residual, block)


def fuse_graphs(
    graphs: Sequence[sp.csr_array],
    n_clusters: int,
    view_weights: Floats | None = None,
    *,
    learned: bool = True,
    observed: Bools | None = None,
    work: float = np.inf,
) -> FusedGraph:
    """Return the sum of graphs with weights of mean 1: learned in one round from those given, or as they are.

    ``observed`` (n, n_views) says which samples each graph has; None: all. ``work`` MiB may be taken by eigenvectors.
    """
    count = VECTORS_PER_CLUSTER * n_clusters
    start = np.ones(len(graphs)) if view_weights is None else view_weights / view_weights.mean()
    if observed is not None and observed.all():
        observed = None
    overlap = None if observed is None else Overlap.of(observed)
    W = weighted_sum(graphs, start, overlap)
    background = None if overlap is None else overlap.background(W)
    exact = n_clusters if W.shape[0] > MANY else count
    together = graph_eigenvectors(W, count, exact=exact, background=background, work=work)
    if not learned or len(graphs) == 1:
        return FusedGraph(W, start, together, background)
    U = together.vectors[:, :n_clusters]
    kept = np.array([_kept_share(graph, U) for graph in graphs])
    there = n_clusters if observed is None else np.maximum(observed.T @ np.einsum("ij,ij->i", U, U), LEAST_WEIGHT)
    weights = np.maximum(kept / there, LEAST_WEIGHT)
    weights /= weights.mean()
    W = weighted_sum(graphs, weights, overlap)
    background = None if overlap is None else overlap.background(W)
    together = graph_eigenvectors(W, count, together, exact=exact, background=background, work=work)
    return FusedGraph(W, weights, together, background)


def _kept_share(graph: sp.csr_array, U: Floats) -> float:
    """Return tr(U' S U) of a graph with degrees normalised."""
    scaled = scale_rows(inverse_roots(_degrees(graph, None)), U, np.empty(U.shape))
    return float(np.einsum("ij,ij->", scaled, graph_product(graph, scaled)))


def weighted_sum(graphs: Sequence[sp.csr_array], weights: Floats, overlap: Overlap | None = None) -> sp.csr_array:
    """Return the weighted sum of graphs, over the views that pairs of samples are in where some are absent."""
    total = sum_of_graphs(graphs, weights.tolist())
    return total if overlap is None else overlap.averaged(total, weights)


def damping(values: Floats, n_clusters: int) -> Floats:
    """Return the factor of every eigenvector: 1 for the first k, (lambda_j / lambda_k)^4 for others."""
    positive = np.maximum(values, 0.0)
    last = max(float(positive[min(n_clusters, len(positive)) - 1]), np.finfo(np.float64).tiny)
    factors = np.minimum(1.0, positive / last) ** DAMPING
    factors[:n_clusters] = 1.0
    return np.asarray(factors)


def unit_rows(E: Floats) -> Floats:
    """Return rows scaled to unit length; rows of zeros stay."""
    lengths = np.linalg.norm(E, axis=1, keepdims=True)
    tiny = np.finfo(np.float64).eps
    return np.asarray(np.divide(E, lengths, out=np.zeros_like(E), where=lengths > tiny))


def join_copies(W: sp.csr_array, clusters: GraphClusters, copies: Ints, n_clusters: int) -> GraphClusters:
    """Return the clusters with equal samples in the same one: that of most copies, or one each if these are enough."""
    n_distinct = int(copies.max()) + 1
    if n_distinct <= n_clusters:
        labels = copies
    else:
        votes = sp.csr_array((np.ones(len(copies)), (copies, clusters.labels)), shape=(n_distinct, n_clusters))
        labels = votes.toarray().argmax(axis=1)[copies]
    if (labels == clusters.labels).all():
        return clusters
    cut = GraphMoves(GraphKernel(W), "normalized_cut").value(labels, n_clusters)
    return GraphClusters(labels, (cut,), clusters.converged)


def cut_clusters(
    W: sp.csr_array,
    embedding: Floats,
    n_clusters: int,
    rngs: Sequence[np.random.Generator],
    *,
    polish: bool = True,
    other: Floats | None = None,
    follow: Callable[[Iterator[Any]], Iterable[Any]] = iter,
) -> GraphClusters:
    """Return the clusters of lowest normalized cut among runs of k-means on the embedding, improved by single moves.

    Every fourth generator also serves a run on the ``other`` embedding, which is preferred where it halves the cut. The
    runs pass through ``follow`` one by one.
    """
    moves = GraphMoves(GraphKernel(W), "normalized_cut")
    runs = _Rounding(embedding, n_clusters)
    beside = None if other is None else _Rounding(other, n_clusters)
    best = _Lowest(moves, n_clusters)
    rival = _Lowest(moves, n_clusters)
    spares = [rng.spawn(1)[0] for rng in rngs]

    def begin(number: int) -> tuple[Any, Any]:
        mine = runs.begun(rngs[number])
        return mine, None if beside is None or number % 4 else beside.begun(spares[number])

    for mine, theirs in follow(parallel_map(begin, range(len(rngs)), even_few=True)):
        best.see(runs.placed(mine))
        if beside is not None and theirs is not None:
            rival.see(beside.placed(theirs))
    if rival.cut < HALVED * best.cut:
        best = rival
    return _polished(moves, best, n_clusters, polish=polish)


class _Lowest:
    """The labels of lowest cut seen."""

    def __init__(self, moves: GraphMoves, n_clusters: int) -> None:
        self._moves = moves
        self._k = n_clusters
        self.cut = np.inf
        self.labels: Ints | None = None

    def see(self, labels: Ints) -> None:
        """Keep the labels if they cut less."""
        cut = self._moves.value(labels, self._k)
        if cut < self.cut - self._moves.tolerance:
            self.cut = cut
            self.labels = labels


def _polished(moves: GraphMoves, found: _Lowest, n_clusters: int, *, polish: bool) -> GraphClusters:
    best = found.labels
    lowest = found.cut
    if best is None:
        raise ValueError("cut_clusters needs at least one generator.")
    if not polish:
        return GraphClusters(best, (lowest,), True)
    labels, ended = moves.polished(best, n_clusters, MAX_SWEEPS)
    cuts = (lowest, min(lowest, moves.value(labels, n_clusters)))
    return GraphClusters(labels.astype(np.intp), cuts, ended)


def kmeans_on(embedding: Floats, n_clusters: int) -> Callable[[np.random.Generator], Ints]:
    """Return the function that clusters the rows of an embedding by one run of k-means, on a sample of many rows."""
    runs = _Rounding(embedding, n_clusters)
    return lambda rng: runs.placed(runs.begun(rng))


class _Rounding:
    """Runs of k-means on the rows of an embedding, each in two steps: the first may be taken for several at a time."""

    def __init__(self, embedding: Floats, n_clusters: int) -> None:
        self._everyone = FeatureKernel(embedding)
        self._diag = self._everyone.diag()
        self._k = n_clusters

    def begun(self, rng: np.random.Generator) -> "Ints | _Centers":
        """Return the labels of a run on all rows, or the centres of one on a sample of many."""
        n = len(self._diag)
        if n <= ROUNDED_ROWS:
            return self._labels(self._everyone, self._diag, rng)
        sample = np.sort(rng.choice(n, ROUNDED_ROWS, replace=False))
        rows = FeatureKernel(self._everyone.Phi[sample])
        labels = self._labels(rows, self._diag[sample], rng)
        sizes = np.bincount(labels, minlength=self._k)
        sums = rows.feature_sums(labels, np.ones(len(sample)), self._k)
        norms = algebra.center_norms(rows.lengths(sums), sizes.astype(np.float64))
        return _Centers(sums / np.maximum(sizes, 1.0)[:, None], norms)

    def placed(self, run: "Ints | _Centers") -> Ints:
        """Return the labels of all rows."""
        if not isinstance(run, _Centers):
            return run
        nobody = np.zeros(len(self._diag), dtype=np.intp)
        nearest = self._everyone.nearest_means(run.means, run.norms, np.ones(self._k), self._diag, nobody, 0.0)
        return np.asarray(self._everyone.backend.host(nearest.labels))

    def _labels(self, rows: FeatureKernel, diag: Floats, rng: np.random.Generator) -> Ints:
        """Return the end of one run."""
        k = self._k
        Phi: Floats = rows.Phi
        scale = float(diag.max(initial=0.0))
        tie = algebra.TIE_TOLERANCE * scale
        noise = 16.0 * algebra.EPS * len(diag) * scale
        start = spread_out(Phi, diag, k, draws_of_a_center(k), tie, rng)
        labels = descended(Phi, diag, start, k, tie, noise, KMEANS_STEPS, PATIENCE)
        if labels is not None:
            return labels
        return kernel_kmeans(rows, start, np.ones(len(start)), n_clusters=k, max_iter=KMEANS_STEPS).labels


@dataclass(frozen=True)
class _Centers:
    """The centres at the end of a run on a sample."""

    means: Floats  # (k, q)
    norms: Floats  # (k,) infinite for an empty cluster
