"""What a partition asks of a kernel. Kernel operators have it all; partitions know nothing else of them."""

from typing import Any, Protocol

from kernelweave.backends import Assignment, Backend, BackendArray, Moves
from kernelweave.foundation.array_types import Array, Floats, Index, Ints


class Kernel(Protocol):
    """A kernel as partitions see it; see ``kernels.operator`` for what the members mean."""

    backend: Backend
    shape: tuple[int, int]

    @property
    def n_samples(self) -> int:
        """Number of rows."""

    def diag(self) -> BackendArray:
        """Return k(x_i, x_i)."""

    def scale(self) -> float:
        """Return a bound on the size of kernel values."""

    def block(self, rows: Index, cols: Index) -> Array:
        """Return a dense block as NumPy."""

    def columns(self, samples: Ints) -> BackendArray:
        """Return some columns."""

    def cluster_sums(self, labels: Any, weights: Any, n_clusters: int) -> BackendArray:
        """Return the cluster sums."""

    def move_sums(self, sums: BackendArray, moves: Moves, weights: BackendArray) -> None:
        """Update cluster sums in place."""

    def partition(self, labels: Any, weights: Any, n_clusters: int) -> Any:
        """Return another partition of the same samples."""

    def candidate_gains(self, distances: BackendArray, weights: BackendArray, diag: BackendArray) -> BackendArray:
        """Return the gain every sample is sure of as a new centre."""

    def stored_matrix(self) -> BackendArray | None:
        """Return the matrix, where it is stored."""


class Graph(Kernel, Protocol):
    """A kernel of few entries."""

    def sparse_matrix(self) -> Any:
        """Return the affinities as a sparse matrix."""


class RoughKernel(Kernel, Protocol):
    """A kernel with sums in single precision beside exact ones."""

    def rough_sums(self, labels: BackendArray, weights: BackendArray, n_clusters: int) -> BackendArray:
        """Return the cluster sums in single precision."""

    def move_rough_sums(self, sums: BackendArray, moves: Moves, weights: BackendArray) -> None:
        """Update them in place."""

    def correct_sums(
        self,
        sums: BackendArray,
        labels: BackendArray,
        weights: BackendArray,
        totals: Floats,
        norms: Floats,
        tolerance: float,
        carried: float,
    ) -> int:
        """Compute the sums of samples again, exactly, whose nearest cluster the errors leave open; return how many.

        ``carried`` is the weight of samples that moved since the last pass.
        """

    def largest_error(self) -> float:
        """Return by how much a rough sum may be off, as a share of it."""

    def within_sums(self, labels: BackendArray, weights: BackendArray, n_clusters: int) -> Floats:
        """Return the kernel summed over the pairs inside each cluster, exactly."""

    def within_change(self, moves: Moves, weights: BackendArray, n_clusters: int) -> Floats:
        """Return by how much these change with moves, exactly."""


class Features(Kernel, Protocol):
    """A kernel of explicit features."""

    def feature_sums(self, labels: BackendArray, weights: BackendArray, n_clusters: int) -> Floats:
        """Return the sums of features by cluster."""

    def moved_features(self, moves: Moves, weights: BackendArray, n_clusters: int) -> Floats:
        """Return by how much the sums change."""

    def lengths(self, sums: Floats) -> Floats:
        """Return squared lengths of sums of features."""

    def inner(self, sums: Floats) -> Floats:
        """Return inner products among sums of features."""

    def nearest_means(
        self, means: Floats, norms: Floats, coefs: Floats, diag: BackendArray, labels: BackendArray, tolerance: float
    ) -> Assignment:
        """Return the nearest mean of every sample."""

    def distances_to_means(
        self, means: Floats, norms: Floats, diag: BackendArray, labels: BackendArray
    ) -> BackendArray:
        """Return the squared distance of every sample to the mean of its cluster."""

    def assign_by_size(
        self,
        means: Floats,
        norms: Floats,
        diag: BackendArray,
        labels: BackendArray,
        weights: BackendArray,
        totals: Floats,
        tolerance: float,
    ) -> BackendArray:
        """Return labels given one after the other by size times distance."""


class ViewKernels(Kernel, Protocol):
    """A weighted sum of kernels, one per view."""

    coefficients: Floats

    def with_weights(self, coefficients: Any) -> Any:
        """Return the sum with other coefficients."""

    def view_traces(self, weights: BackendArray) -> Floats:
        """Return sum_i w_i K_v(x_i, x_i) of every view."""

    def view_operators(self) -> list[Any]:
        """Return the kernel of every view."""


class ViewFeatures(Features, ViewKernels, Protocol):
    """The same of features side by side."""

    def view_lengths(self, sums: Floats) -> Floats:
        """Return squared lengths of sums of features view by view, shape (V, k)."""
