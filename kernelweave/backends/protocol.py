"""What a backend offers: arrays that live where the data live, and verbs on whole arrays.

A backend array has one entry or one row for every sample, or, for cluster sums, one column. It supports arithmetic and
comparison, element by element, with numbers, with small NumPy arrays and with its like; ``[:, None]`` and slices of
columns; ``shape``. Nothing else is asked of it: anything else is a verb. How a verb splits its work over
threads, devices or machines is the backend's own affair, and its result must not depend on it.

What comes back as a ``float``, an ``int`` or a NumPy array (``Floats``, ``Ints``) is small: one number for each
cluster, view, feature or chosen sample. Arrays of one entry per sample reach the host through ``host`` alone.

Compiled searches are abilities that a backend may lack; they are then None.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np

from kernelweave.backends.tiling import Tiling
from kernelweave.foundation.array_types import Floats, Index, Ints

#: An array of a backend; see the module's docstring for what it can do.
BackendArray: TypeAlias = Any
#: Fills a tile of a kernel: columns along the first axis, rows along the second.
Tile: TypeAlias = Callable[[Index, Index], Any]


@dataclass(frozen=True)
class Assignment:
    """Where every sample would go. Labels and distances live with the data."""

    labels: BackendArray  # (n,) the nearest cluster
    distances: BackendArray  # (n,) the squared distance to it, multiplied by the cluster's coefficient if there is one
    lead: float  # least distance by which a sample that stays prefers its cluster to the next one, plus the tolerance


@dataclass(frozen=True)
class Moves:
    """The samples whose labels differ between two partitions. All but their number lives with the data."""

    count: int
    samples: BackendArray  # (count,)
    old: BackendArray  # (count,) labels before
    new: BackendArray  # (count,) labels after
    labels: BackendArray  # (n,) all labels after


@dataclass(frozen=True)
class CandidateRuns:
    """Where the runs of kernel k-means from many candidates ended."""

    ends: Ints  # for each candidate the position of the one whose end it shares; -1 where time ran out
    objectives: Floats  # at the end of each followed run; NaN where it has to be run by the general solver


class Steps(Protocol):
    """Steps of a descent that find with the moves where samples go next."""

    def step(self, moves: Moves, totals: Floats, tolerance: float, diag: BackendArray) -> tuple[Floats, Assignment]:
        """Move samples; ``totals`` are the weights of clusters after that.

        Returns what ``within_sums`` and, without coefficients, ``nearest`` would return.
        """

    def end(self) -> None:
        """Take no more steps."""


class Backend(Protocol):
    """Arrays, products, sums by cluster, nearest clusters, and small eigenproblems of thin blocks."""

    name: str
    #: Up to this many samples a kernel may be brought to the host as a matrix and decomposed there.
    direct_limit: int
    #: Whether several runs side by side gain nothing here, since each keeps everything busy.
    one_run_at_a_time: bool

    # Searches that only some backends have

    @property
    def run_candidates(self) -> Callable[..., CandidateRuns] | None:
        """Runs of kernel k-means from many candidates on a stored kernel."""

    @property
    def steps(self) -> Callable[..., Steps] | None:
        """Steps on a stored kernel, called with the matrix, the weights of samples and the sums that steps change."""

    @property
    def graph_moves(self) -> Any | None:
        """Growing clusters of a graph and moving single nodes between them: ``grow``, ``best_splits``, ``sweep``,
        ``farthest``.
        """  # noqa: D205

    @property
    def margin_dual(self) -> Any | None:
        """Steps on the dual of a support vector machine: ``descend``, ``descend_near``, ``release``."""

    @property
    def gaussian_sums(self) -> Any | None:
        """Sums of a Gaussian kernel that is not stored, from samples that its formula has prepared: ``cluster_sums``,
        ``move_sums``.
        """  # noqa: D205

    # Arrays

    def array(self, values: Any, dtype: Any = np.float64) -> BackendArray:
        """Return values from the host as an array of the backend; its own arrays come back as they are."""

    def labels(self, values: Any) -> BackendArray:
        """Return a copy of labels as an array of the backend."""

    def host(self, values: BackendArray) -> Any:
        """Return an array as NumPy."""

    def ones(self, n: int) -> BackendArray:
        """Return n ones."""

    def where(self, condition: BackendArray, values: Any, others: Any) -> BackendArray:
        """Return ``values`` where the condition holds and ``others`` elsewhere."""

    def minimum(self, values: BackendArray, others: Any) -> BackendArray:
        """Return the smaller of two, element by element."""

    def maximum(self, values: BackendArray, others: Any) -> BackendArray:
        """Return the larger of two, element by element."""

    # Numbers of all samples

    def total(self, values: BackendArray) -> float:
        """Return the sum of one number per sample."""

    def dot(self, vector: BackendArray, values: BackendArray) -> Any:
        """Return sum_i vector_i values_i: a float, or one number for each column of ``values``."""

    def extremes(self, values: BackendArray) -> tuple[float, float]:
        """Return the smallest and the largest value, (inf, -inf) of none."""

    def first(self, condition: BackendArray) -> int:
        """Return the first sample for which the condition holds, -1 where there is none."""

    def at(self, values: BackendArray, samples: Ints) -> Any:
        """Return the values of a few samples as NumPy."""

    def take(self, values: BackendArray, samples: BackendArray) -> BackendArray:
        """Return the values of many samples, given as an array of the backend, where the data live."""

    def draw(self, mass: BackendArray, uniforms: Floats) -> Ints:
        """Return the samples at which the cumulated mass passes each of ``uniforms`` times its total."""

    def draw_distinct(self, mass: BackendArray, count: int, rng: np.random.Generator) -> Ints:
        """Return ``count`` different samples drawn with probability proportional to ``mass``."""

    # Labels

    def segment_sums(self, labels: BackendArray, values: BackendArray, n_clusters: int) -> Floats:
        """Return the sum of ``values`` over the samples of each cluster."""

    def moves(self, old: BackendArray, new: BackendArray) -> Moves:
        """Return the samples whose labels differ."""

    def moved_sums(self, moves: Moves, values: BackendArray, n_clusters: int) -> Floats:
        """Return what each cluster wins less what it loses when the moved samples take their values along."""

    def moved_sums_of(self, moves: Moves, several: list[BackendArray], n_clusters: int) -> list[Floats]:
        """Return the same for several values of every sample."""

    def best_moves(self, old: BackendArray, moves: Moves, gains: BackendArray, count: int) -> BackendArray:
        """Return the ``old`` labels with only the ``count`` moves of least ``gains`` made, the first of equals.

        Gains, one for every sample, are compared after rounding to nine digits.
        """

    def relabel(self, labels: BackendArray, target: Any) -> BackendArray:
        """Return target[labels]."""

    def replace(self, labels: BackendArray, samples: Ints, new: Ints) -> BackendArray:
        """Return the labels with those of a few samples replaced."""

    def farthest(
        self, assignment: Assignment, weights: BackendArray, unit: float, count: int
    ) -> tuple[Ints, Floats, Ints]:
        """Return the ``count`` farthest samples of positive weight, their distances and labels; the first of equals.

        Distances are compared after division by ``unit`` and rounding to nine digits.
        """

    def first_nearest(self, distances: BackendArray, tolerance: float) -> BackendArray:
        """Return for every row the first column within ``tolerance`` of the smallest."""

    def compact(self, labels: BackendArray, n_clusters: int) -> BackendArray:
        """Return labels in the smallest integers that hold them, to be kept."""

    def fingerprint(self, labels: BackendArray) -> bytes:
        """Return a digest of compact labels: equal for equal labels, different for others."""

    # Stored kernels

    def diagonal(self, K: BackendArray) -> BackendArray:
        """Return the diagonal as float64."""

    def largest_entry(self, K: BackendArray) -> float:
        """Return the largest absolute value of a matrix."""

    def asymmetry(self, K: BackendArray) -> tuple[float, float, int, int]:
        """Return max |K_ij - K_ji|, max |K_ij| and the place of the first; infinite where a value is not finite."""

    def block(self, K: BackendArray, rows: Index, cols: Index) -> Any:
        """Return a dense block as NumPy."""

    def columns(self, K: BackendArray, samples: Ints) -> BackendArray:
        """Return some columns of a symmetric matrix, one row per sample."""

    def product(self, K: BackendArray, H: BackendArray) -> BackendArray:
        """Return K @ H in float64."""

    def cluster_sums(self, K: BackendArray, labels: BackendArray, weights: BackendArray, n_clusters: int) -> Any:
        """Return S of shape (n_clusters, n) with S[c, i] = sum of weights[j] K[i, j] over j in cluster c."""

    def move_sums(self, sums: BackendArray, K: BackendArray, moves: Moves, weights: BackendArray) -> None:
        """Update cluster sums in place; ``weights`` are those of all samples."""

    def candidate_gains(
        self, K: BackendArray, diag: BackendArray, distances: BackendArray, weights: BackendArray
    ) -> BackendArray:
        """Return sum_i w_i max(d_i - (K_nn + K_ii - 2 K_ni), 0) of every sample n."""

    def candidate_gains_of_rows(
        self, rows: BackendArray, start: int, diag: BackendArray, distances: BackendArray, weights: BackendArray
    ) -> BackendArray:
        """Return the same for the samples of some rows of a kernel, the first of which is ``start``."""

    # Kernels of several views that lack samples; ``pattern`` numbers samples by the views that they are in

    def sum_of_pairs(
        self,
        kernels: list[BackendArray],
        samples: list[BackendArray],
        coefficients: Floats,
        pattern: BackendArray,
        factors: Floats,
    ) -> BackendArray:
        """Return the (n, n) sum of coefficients[v] K_v, each among its samples, times factors of pairs of patterns."""

    def add_to_pairs(self, K: BackendArray, pattern: BackendArray, values: Floats) -> None:
        """Add values of pairs of patterns to all entries of a matrix, in place."""

    # Kernels computed tile by tile: ``tile(sources, rows)`` returns the kernel between columns and rows, sources first;
    # ``tiling`` bounds the memory that tiles take

    def tiled_product(
        self, tile: Tile, shape: tuple[int, int], H: BackendArray, tiling: Tiling | None = None
    ) -> BackendArray:
        """Return K @ H in float64."""

    def tiled_cluster_sums(
        self,
        tile: Tile,
        shape: tuple[int, int],
        labels: BackendArray,
        weights: BackendArray,
        n_clusters: int,
        tiling: Tiling | None = None,
    ) -> BackendArray:
        """Return the cluster sums; every tile is computed once."""

    def tiled_move_sums(
        self, sums: BackendArray, tile: Tile, moves: Moves, weights: BackendArray, tiling: Tiling | None = None
    ) -> None:
        """Update cluster sums in place; only the rows of the moved samples are computed."""

    def filled(
        self, tile: Tile, shape: tuple[int, int], dtype: Any = np.float64, tiling: Tiling | None = None
    ) -> BackendArray:
        """Return the whole matrix of a symmetric or rectangular kernel, rows first."""

    # Cluster sums

    def within_sums(self, sums: BackendArray, labels: BackendArray, weights: BackendArray) -> Floats:
        """Return for each cluster the weighted sum over its members of their sum with the cluster."""

    def cluster_products(self, sums: BackendArray, labels: BackendArray, weights: BackendArray) -> Floats:
        """Return the weighted sums of the kernel between all pairs of clusters, shape (k, k)."""

    def nearest(
        self,
        sums: BackendArray,
        totals: Floats,
        norms: Floats,
        labels: BackendArray,
        tolerance: float,
        diag: BackendArray,
        coefs: Floats | None = None,
    ) -> Assignment:
        """Return the cluster of least coefs[c] ||phi(x_i) - m_c||^2 of every sample.

        Distances within ``tolerance`` are equal: a sample keeps its label unless another cluster is nearer by more, and
        then takes the first within ``tolerance`` of the nearest. Clusters of infinite norm are empty.
        """

    def distances_to_clusters(
        self, sums: BackendArray, totals: Floats, norms: Floats, labels: BackendArray, diag: BackendArray
    ) -> BackendArray:
        """Return the squared distance of every sample to the centre of the cluster it is in."""

    def add_to_clusters(self, sums: BackendArray, clusters: Ints, values: BackendArray) -> None:
        """Add to the sums of some clusters in place."""

    def add_to_samples(self, sums: BackendArray, samples: BackendArray, values: BackendArray) -> None:
        """Add ``values`` of shape (k, m) in place to the columns of m different samples."""

    def stack(self, arrays: list[BackendArray]) -> Any:
        """Return arrays of one shape as one thing that can be indexed; what it yields may be changed in place."""

    def weighted_sum(self, coefficients: Floats, stack: Any) -> BackendArray:
        """Return sum_v coefficients[v] stack[v]."""

    # Features

    def squared_lengths(self, Phi: BackendArray) -> BackendArray:
        """Return the squared length of every row."""

    def feature_products(self, Phi: BackendArray, H: BackendArray) -> Floats:
        """Return Phi^T H, shape (d, q)."""

    def spread(self, Phi: BackendArray, vectors: Floats) -> BackendArray:
        """Return Phi @ vectors, shape (n, q)."""

    def spread_rows(self, Phi: BackendArray, vectors: Floats) -> BackendArray:
        """Return vectors @ Phi^T, shape (k, n)."""

    def feature_sums(self, Phi: BackendArray, labels: BackendArray, weights: BackendArray, n_clusters: int) -> Floats:
        """Return the weighted sums of the rows of each cluster, shape (n_clusters, d)."""

    def moved_features(self, Phi: BackendArray, moves: Moves, weights: BackendArray, n_clusters: int) -> Floats:
        """Return by how much the sums of rows change with the moves."""

    def nearest_means(
        self,
        Phi: BackendArray,
        means: Floats,
        norms: Floats,
        labels: BackendArray,
        tolerance: float,
        diag: BackendArray,
        coefs: Floats,
    ) -> Assignment:
        """Return the mean of least coefs[c] ||phi_i - m_c||^2 of every row; ties as in :meth:`nearest`."""

    def distances_to_means(
        self, Phi: BackendArray, means: Floats, norms: Floats, labels: BackendArray, diag: BackendArray
    ) -> BackendArray:
        """Return the squared distance of every row to the mean of the cluster it is in."""

    def assign_by_size(
        self,
        Phi: BackendArray,
        means: Floats,
        norms: Floats,
        labels: BackendArray,
        tolerance: float,
        diag: BackendArray,
        weights: BackendArray,
        totals: Floats,
    ) -> BackendArray:
        """Return labels chosen sample after sample by least size * ||phi_i - m_c||^2, sizes changing with each."""

    def gram(self, Phi: BackendArray, weights: BackendArray) -> Floats:
        """Return Phi^T W Phi."""

    # Thin blocks: one row per sample and few columns

    def start_block(self, n: int, width: int) -> BackendArray:
        """Return an orthonormal block to start a search for eigenvectors from, always the same."""

    def inner(self, blocks: list[BackendArray], others: list[BackendArray]) -> Floats:
        """Return B^T C, where B has the first blocks side by side and C the others."""

    def combine(self, blocks: list[BackendArray], matrix: Floats) -> BackendArray:
        """Return B @ matrix, where B has the blocks side by side."""

    def column_norms(self, block: BackendArray) -> Floats:
        """Return the length of every column."""

    def join(self, blocks: list[BackendArray]) -> BackendArray:
        """Return blocks side by side."""

    def together(self, blocks: list[BackendArray]) -> list[BackendArray]:
        """Return blocks as they are best multiplied together several times: as they are, or one that joins them."""

    def orthonormal(self, block: BackendArray, basis: list[BackendArray]) -> BackendArray:
        """Return an orthonormal basis of what ``block`` adds to that of some blocks, maybe without columns."""
