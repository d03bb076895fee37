"""Clusters by dividing in two: the part shared by methods that know two clusters only."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils.validation import check_is_fitted

from kernelweave.estimators.shared.kernel_estimator import warn_if_empty
from kernelweave.foundation.array_types import Floats, Ints, Matrix
from kernelweave.foundation.errors import ParameterError
from kernelweave.foundation.progress import track
from kernelweave.foundation.sklearn_internals import CallbackSupportMixin
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
    """A cut as new samples meet it."""

    cluster: int  # number of the cluster that is divided; the part decided against keeps it
    new: int  # number of the other part
    theta: Floats
    sources: Floats  # (n,) multipliers; zero for samples that did not take part
    bias: float


class DividingClusterer(CallbackSupportMixin, ClusterMixin, BaseEstimator):
    """Base of methods for two clusters; more come from dividing the cluster of largest scatter again."""

    def _check_counts(self, n: int) -> None:
        check_cluster_count(self.n_clusters, np.ones(n))
        if self.n_clusters > 1 and self._limit(n) < n % 2:
            raise ParameterError(
                f"balance={self.balance} allows the clusters of {n} samples to differ by {self.balance * n:.3g}, but "
                f"an odd number of samples differs by 1 at least. Set balance to {1 / n:.3g} or more."
            )

    def _limit(self, n: int) -> float:
        """Return the most that |sum y| may be; neither cluster runs empty."""
        return min(self.balance * n, n - 2.0)

    def _limit_of(self, members: Ints, new: int) -> float:
        """Return the same for a cluster that is divided again; an odd one may differ by 1."""
        limit = self._limit(len(members))
        return limit if new == 1 else max(limit, len(members) % 2)

    def _divide_all(self, K: Floats, X: Any, y: Any) -> None:
        """Divide until there are ``n_clusters`` clusters, or none has scatter under the kernel ``K``."""
        self.labels_: Ints = np.zeros(len(K), dtype=np.intp)
        self._splits: list[Split] = []
        for new in track(self, range(1, self.n_clusters), total=self.n_clusters - 1, what="divisions", X=X, y=y):
            cluster = self._next(K, new)
            if cluster is None:
                break
            members = np.flatnonzero(self.labels_ == cluster)
            cut = self._cut(members, new)
            sources = np.zeros(len(K))
            sources[members] = cut.multipliers
            self._splits.append(Split(cluster, new, cut.theta, sources, cut.bias))
            self.labels_[members[cut.labels > 0]] = new
        warn_if_empty(np.bincount(self.labels_, minlength=self.n_clusters), self.n_clusters)

    @abstractmethod
    def _cut(self, members: Ints, new: int) -> Cut:
        """Divide some samples in two; ``new`` counts the divisions from 1."""

    def _next(self, K: Floats, new: int) -> int | None:
        """Return the cluster of largest scatter, None where none has any."""
        scatter = np.zeros(new)
        for c in range(new):
            inside = self.labels_ == c
            block = K[np.ix_(inside, inside)]
            scatter[c] = float(np.trace(block)) - float(block.sum()) / len(block)
        # What a ridge leaves of equal samples is no scatter.
        least = (FLAT + 2.0 * getattr(self, "ridge", 0.0)) * float(np.trace(K))
        return int(np.argmax(scatter)) if scatter.max() > least else None

    @abstractmethod
    def _blocks(self, X: Any) -> Sequence[Matrix]:
        """Return new samples, view by view."""

    @abstractmethod
    def _decide(self, split: Split, blocks: Sequence[Matrix]) -> Floats:
        """Return the decision values of one division."""

    def decision_function(self, X: Any) -> Floats:
        """Return the signed distance from the border, in margins; positive for the second part of a division.

        Parameters
        ----------
        X : array-like or views, as in ``fit``
            New samples; for precomputed kernels their rows of kernel values with the training samples.

        Returns
        -------
        decision : ndarray of shape (n_new,), or (n_new, n_clusters - 1) with more than two clusters
            One column for each division, in the order they were made.
        """
        check_is_fitted(self)
        blocks = self._blocks(X)
        columns = [self._decide(split, blocks) for split in self._splits]
        if self.n_clusters == 2 and columns:
            return columns[0]
        return np.stack(columns, axis=1) if columns else np.empty((blocks[0].shape[0], 0))

    def predict(self, X: Any) -> Ints:
        """Return the clusters of new samples, by the decisions of every division in turn.

        Parameters
        ----------
        X : array-like or views, as in ``fit``
            New samples.

        Returns
        -------
        labels : ndarray of shape (n_new,)
            Index of the cluster.
        """
        decisions = self.decision_function(X)
        decisions = decisions[:, None] if decisions.ndim == 1 else decisions
        labels = np.zeros(len(decisions), dtype=np.intp)
        for column, split in enumerate(self._splits):
            labels[(labels == split.cluster) & (decisions[:, column] > 0)] = split.new
        return labels
