"""What a solver may ask of a kernel.

Five members, chosen so that every solver of the library needs no other: the diagonal, products, dense blocks,
and the two that make kernel k-means fast, cluster sums and their update when samples move. The last two have
defaults made of the first three; an operator overrides them when its storage allows a cheaper way. Everything
else (distances, objectives, degrees, traces) is a function in ``algebra``.

Rows are the samples asked about, columns the samples clusters are made of. In a kernel on one sample set they
are the same; in a cross-kernel the rows are new samples. Every array returned is NumPy, sums are float64.
"""

from abc import ABC, abstractmethod

import numpy as np

from kernelweave.foundation.array_types import Array, Floats, Index, Ints

NO_DIAGONAL = (
    "A precomputed kernel between new and training samples does not hold k(x, x) of the new samples, so distances "
    "to the centres cannot be computed. Use predict, or pass features and a kernel name."
)
# Columns taken together where a default has to form dense blocks.
CHUNK = 256


class KernelOperator(ABC):
    """A kernel matrix that may never be stored. Immutable: changes give a new operator that shares the data."""

    shape: tuple[int, int]
    #: True if positive semidefinite by construction, False if known not to be, None if unknown.
    psd: bool | None = None

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return self.shape[0]

    @property
    def recomputed(self) -> bool:
        """Whether kernel values are computed again at every pass, which keeps all threads busy."""
        return False

    @property
    def rank_bound(self) -> int:
        """A bound on the rank that is known without looking at values; where it is below n, ``gram_factor`` is cheap."""
        return self.shape[0]

    def gram_factor(self) -> Floats:
        """Return F with K = F F^T, of ``rank_bound`` columns where these are fewer than rows; needs explicit features."""
        raise NotImplementedError(f"{type(self).__name__} is not made of features.")

    @abstractmethod
    def diag(self) -> Floats:
        """Return k(x_i, x_i) of every row, shape (n_rows,)."""

    @abstractmethod
    def matmat(self, H: Array) -> Floats:
        """Return K @ H, shape (n_rows, q), for H of shape (n_columns, q)."""

    @abstractmethod
    def block(self, rows: Index, cols: Index) -> Array:
        """Return the dense block K[rows][:, cols]."""

    def scale(self) -> float:
        """Return a bound on the size of kernel values; the diagonal holds it where the kernel is semidefinite."""
        return float(np.abs(self.diag()).max(initial=0.0))

    def cluster_sums(self, labels: Ints, weights: Floats, n_clusters: int) -> Floats:
        """Return S of shape (n_clusters, n_rows) with S[c, i] = sum of weights[j] K[i, j] over j in cluster c."""
        H = np.zeros((self.shape[1], n_clusters))
        H[np.arange(self.shape[1]), labels] = weights
        return np.ascontiguousarray(self.matmat(H).T)

    def move_sums(self, sums: Floats, moved: Ints, old: Ints, new: Ints, weights: Floats) -> None:
        """Update ``sums`` in place after the columns ``moved`` went from clusters ``old`` to ``new``.

        ``old``, ``new`` and ``weights`` run along ``moved``.
        """
        for start in range(0, len(moved), CHUNK):
            part = slice(start, start + CHUNK)
            signed = np.zeros((len(moved[part]), sums.shape[0]))
            at = np.arange(len(signed))
            signed[at, new[part]] += weights[part]
            signed[at, old[part]] -= weights[part]
            sums += (self.block(slice(None), moved[part]) @ signed).T


def indices(index: Index, n: int) -> Ints:
    """Return a slice or an integer array as integers below ``n``."""
    return np.arange(n)[index] if isinstance(index, slice) else np.asarray(index, dtype=np.intp)
