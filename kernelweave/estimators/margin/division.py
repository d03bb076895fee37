"""Clusters by dividing in two, again and again: how, within which balance, and what new samples need of it."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from kernelweave.estimators.margin.basis_kernels import BasisKernels, KernelObject
from kernelweave.foundation.array_types import Floats, Ints, Matrix
from kernelweave.foundation.errors import ParameterError
from kernelweave.inputs import check_cluster_count
from kernelweave.kernels.transforms import FLAT


@dataclass(frozen=True)
class Cut:
    """One division of some samples: labels +1 and -1, and the decision, linear in the kernel, that makes them."""

    labels: Floats
    theta: Floats  # parameters of the kernel
    multipliers: Floats
    bias: float


@dataclass(frozen=True)
class Split:
    """A cut as new samples need it."""

    cluster: int  # number of the cluster that is divided; the side decided against keeps it
    new: int  # number of the other side
    theta: Floats
    sources: Floats  # (n,) multipliers; zero for samples of other clusters
    bias: float


@dataclass(frozen=True)
class Division:
    """The clusters after all divisions."""

    labels: Ints
    splits: tuple[Split, ...]


@dataclass(frozen=True)
class DivisionModel:
    """The divisions and the kernels they decide by."""

    splits: tuple[Split, ...]
    kernel: BasisKernels | KernelObject

    def decisions(self, blocks: Sequence[Matrix]) -> Floats:
        """Return the decision values of new samples, view by view, one column per division."""
        columns = np.empty((blocks[0].shape[0], len(self.splits)))
        for column, split in enumerate(self.splits):
            cross = self.kernel.cross(blocks, split.theta)
            columns[:, column] = cross.matmat(split.sources[:, None])[:, 0] + split.bias
        return columns

    def assign(self, blocks: Sequence[Matrix]) -> Ints:
        """Return the clusters of new samples, by the decisions of every division in turn."""
        decisions = self.decisions(blocks)
        labels = np.zeros(len(decisions), dtype=np.intp)
        for column, split in enumerate(self.splits):
            labels[(labels == split.cluster) & (decisions[:, column] > 0)] = split.new
        return labels


def divide(
    K: Floats,
    n_clusters: int,
    cut: Callable[[Ints, int], Cut],
    *,
    progress: Callable[[range], Iterable[int]],
    regularization: float = 0.0,
) -> Division:
    """Divide the cluster of largest scatter until there are ``n_clusters``, or none has scatter under the kernel ``K``.

    ``cut`` takes the members of a cluster and the number of the division, counted from 1; ``progress`` goes through
    these numbers. ``regularization`` is the share of the mean diagonal that ``K`` has had added to its diagonal.
    """
    labels = np.zeros(len(K), dtype=np.intp)
    splits: list[Split] = []
    for new in progress(range(1, n_clusters)):
        cluster = _largest_scatter(K, labels, new, regularization)
        if cluster is None:
            break
        members = np.flatnonzero(labels == cluster)
        halves = cut(members, new)
        sources = np.zeros(len(K))
        sources[members] = halves.multipliers
        splits.append(Split(cluster, new, halves.theta, sources, halves.bias))
        labels[members[halves.labels > 0]] = new
    return Division(labels, tuple(splits))


def _largest_scatter(K: Floats, labels: Ints, n_clusters: int, regularization: float) -> int | None:
    """Return the cluster of largest scatter, None where none has any."""
    scatter = np.zeros(n_clusters)
    for cluster in range(n_clusters):
        inside = labels == cluster
        block = K[np.ix_(inside, inside)]
        scatter[cluster] = float(np.trace(block)) - float(block.sum()) / len(block)
    # What a raised diagonal leaves of equal samples does not count as scatter.
    least = (FLAT + 2.0 * regularization) * float(np.trace(K))
    return int(np.argmax(scatter)) if scatter.max() > least else None


def largest_difference(balance: float, n_members: int, *, first: bool) -> float:
    """Return the most that the sizes of the two clusters may differ by; neither runs empty.

    A cluster that is divided again may have an odd number of members whatever the balance, so that 1 is allowed there.
    """
    limit = min(balance * n_members, n_members - 2.0)
    return limit if first else max(limit, n_members % 2)


def check_division(n_clusters: int, balance: float, n_samples: int) -> None:
    """Raise where the samples cannot be divided into so many clusters, or not within the balance."""
    check_cluster_count(n_clusters, np.ones(n_samples))
    if n_clusters > 1 and largest_difference(balance, n_samples, first=True) < n_samples % 2:
        raise ParameterError(
            f"balance={balance} allows the clusters of {n_samples} samples to differ by {balance * n_samples:.3g}, but "
            f"an odd number of samples differs by 1 at least. Set balance to {1 / n_samples:.3g} or more."
        )
