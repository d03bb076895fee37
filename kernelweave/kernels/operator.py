"""What a solver may ask of a kernel: a matrix that may never be stored.

Rows are the samples asked about, columns the samples clusters are made of. In a kernel on one sample set they are the
same; in a cross-kernel the rows are new samples. Arrays of one entry per sample belong to the operator's backend and
live where its data live; sums are float64. A new operator writes three methods (``diag``, ``matmat``, ``block``); the
others have defaults made of these and are overridden where the storage allows a cheaper way.
"""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np

from kernelweave.backends import Backend, BackendArray, Moves, get_backend
from kernelweave.foundation.array_types import Array, Floats, Index, Ints
from kernelweave.foundation.memory import rows_within
from kernelweave.partitions.partition import Partition
from kernelweave.partitions.sums import SumsPartition

if TYPE_CHECKING:
    import scipy.sparse as sp

NO_DIAGONAL = (
    "A precomputed kernel between new and training samples does not hold k(x, x) of the new samples, so distances "
    "to the centres cannot be computed. Use predict, or pass features and a kernel name."
)
# Columns taken together where a default has to form dense blocks.
CHUNK = 256
# Entries of the blocks of rows from which gains of candidates are computed, and arrays of that size alive at a time.
GAIN_ENTRIES = 2**22
ARRAYS_HELD = 8


def entries_within(limit: float) -> int:
    """Return the entries of blocks of rows that, with what is made of them, fit into ``limit`` MiB."""
    return rows_within(limit, ARRAYS_HELD * 8, GAIN_ENTRIES)


class KernelOperator(ABC):
    """A kernel matrix that may never be stored. Immutable: changes give a new operator that shares the data."""

    shape: tuple[int, int]
    backend: Backend = get_backend()
    #: True if positive semidefinite by construction, False if known not to be, None if unknown.
    psd: bool | None = None
    #: Whether a product costs little beside what is stored, so that a few more of them do not matter.
    cheap_products: bool = False
    #: Entries of the blocks of rows that are computed together.
    held_entries: int = GAIN_ENTRIES
    #: Eigenvalues smaller than this share of the largest are rounding.
    resolution: float = 1e-9
    #: Vectors beyond those asked for that a product takes along at little cost: computing the kernel is most of it.
    spare_vectors: int = 0
    #: MiB of a limit that are set aside for tiles.
    tiles_mib: float = 0.0

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return self.shape[0]

    @property
    def largest_is_known(self) -> bool:
        """Whether ``scale`` is the largest absolute value, found by a check that read all values."""
        return False

    @property
    def recomputed(self) -> bool:
        """Whether kernel values are computed again at every pass, which keeps all threads busy."""
        return False

    @property
    def reads_a_matrix(self) -> bool:
        """Whether blocks are read from a stored matrix, as it is or scaled."""
        return self.stored_matrix() is not None

    @property
    def rank_bound(self) -> int:
        """A bound on the rank, known without reading values; where it is below n, ``gram_factor`` is cheap."""
        return self.shape[0]

    def gram_factor(self) -> Floats:
        """Return F with K = F F^T, of ``rank_bound`` columns where that is below n; needs explicit features."""
        raise NotImplementedError(f"{type(self).__name__} is not made of features.")

    @abstractmethod
    def diag(self) -> BackendArray:
        """Return k(x_i, x_i) of every row, shape (n_rows,)."""

    @abstractmethod
    def matmat(self, H: BackendArray) -> BackendArray:
        """Return K @ H, shape (n_rows, q), for H of shape (n_columns, q)."""

    @abstractmethod
    def block(self, rows: Index, cols: Index) -> Array:
        """Return the dense block K[rows][:, cols] as NumPy."""

    def scale(self) -> float:
        """Return a bound on the size of kernel values; the diagonal holds it where the kernel is semidefinite."""
        low, high = self.backend.extremes(self.diag())
        return max(abs(low), abs(high)) if self.shape[0] else 0.0

    def columns(self, samples: Ints) -> BackendArray:
        """Return K[:, samples], one row per sample, where the data live."""
        return self.block(slice(None), samples)

    def cluster_sums(self, labels: BackendArray, weights: BackendArray, n_clusters: int) -> BackendArray:
        """Return S of shape (n_clusters, n_rows) with S[c, i] = sum of weights[j] K[i, j] over j in cluster c."""
        H = np.zeros((self.shape[1], n_clusters))
        H[np.arange(self.shape[1]), labels] = weights
        return np.ascontiguousarray(self.matmat(H).T)

    def move_sums(self, sums: BackendArray, moves: Moves, weights: BackendArray) -> None:
        """Update ``sums`` in place after the moves; ``weights`` are those of all columns."""
        carried = weights[moves.samples]
        for start in range(0, moves.count, CHUNK):
            chunk = slice(start, start + CHUNK)
            samples = moves.samples[chunk]
            signed = np.zeros((len(samples), sums.shape[0]))
            places = np.arange(len(samples))
            signed[places, moves.new[chunk]] += carried[chunk]
            signed[places, moves.old[chunk]] -= carried[chunk]
            sums += (self.block(slice(None), samples) @ signed).T

    def partition(self, labels: Any, weights: Any, n_clusters: int) -> Partition:
        """Return what is known about the clusters of a partition, kept where the data live."""
        return SumsPartition(self, labels, weights, n_clusters)

    def candidate_gains(self, distances: BackendArray, weights: BackendArray, diag: BackendArray) -> BackendArray:
        """Return b_n = sum_i w_i max(d_i - ||phi(x_n) - phi(x_i)||^2, 0) of every sample n (MSc 4.3).

        A sample that becomes the centre of a new cluster lowers the objective by at least b_n, d being the present
        distances to the centres.
        """
        gains = np.empty(self.n_samples)
        step = max(1, self.held_entries // self.n_samples)
        for start in range(0, self.n_samples, step):
            rows = slice(start, min(start + step, self.n_samples))
            block = self.block(rows, slice(None))
            gained = self.backend.candidate_gains_of_rows(block, start, diag, distances, weights)
            gains[rows] = self.backend.host(gained)
        return self.backend.array(gains)

    def cluster_links(self, labels: Ints, n_clusters: int) -> tuple[Floats, Floats]:
        """Return links(V_c, V_c) and links(V_c, V minus V_c) of every cluster, the kernel read as a graph.

        Each is summed by itself: taking one from the degree would leave rounding where the answer is 0.
        """
        sums = self.cluster_sums(labels, np.ones(self.shape[1]), n_clusters)
        within = self.backend.within_sums(sums, labels, np.ones(self.shape[0]))
        sums[labels, np.arange(self.shape[0])] = 0.0
        return within, np.asarray(sums.sum(axis=1))

    def stored_matrix(self) -> BackendArray | None:
        """Return the kernel as the matrix it is stored as, None where it is not stored."""
        return None

    def sparse_matrix(self) -> "sp.csr_array | None":
        """Return the kernel as one sparse matrix, None where it is not a graph."""
        return None

    def for_products(self) -> "KernelOperator":
        """Return the kernel in the form in which products with it are cheapest."""
        return self
