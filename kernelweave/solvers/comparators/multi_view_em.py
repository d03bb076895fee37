"""Mixtures of several views that exchange posteriors: the mixture of a view is fitted to the posteriors of another.

Objective   none is maximised for certain; L = mean over samples and views of log p(x_i^(v)), each mixture fitted to the
            posteriors of the view before, is what rounds are compared by
Input       the features of every view, which samples it has, its kind of distribution, and a starting partition, that
            of the first view
Cost        O(n d k) per iteration, d the features of all views
Guarantee   L of the result is the largest of all rounds. With one view this is EM: L rises, but for what the floor of
            variances and the smoothing of probabilities take
Source      PhD 1.2.3; Bickel and Scheffer, ICDM 2004, for two views; here any number, each handing on to the next

A Gaussian has variances alone, no correlations: one per feature or one for all, of each cluster or shared. Variances
stay above a small share of those of the view. A multinomial has probabilities of features; one average sample, the mean
of all samples, is added to every cluster, so that no probability becomes zero.

Samples that a view lacks keep the posteriors that the last view that has them gave them; its mixture is fitted to its
own samples, and L is the mean over the pairs of a sample and a view that has it. A cluster that none of its samples has
a share in is not in the mixture of a view. Samples without a starting cluster (-1) get posteriors before the first
round, from a view that has them.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.special import logsumexp
from sklearn.preprocessing import normalize

from kernelweave.foundation.array_types import Floats, Index, Ints, Matrix
from kernelweave.solvers.comparators.exchange import next_to_learn, turns

#: Kinds of variances.
COVARIANCES = ("diagonal", "spherical", "shared_diagonal", "shared_spherical")
# Rounds in a row without a gain of more than tol before a run ends; with one view the first such round ends it.
PATIENCE = 5
# Least variance as a share of the view's; a weight of a cluster as a share of all below which it is lost.
FLOOR = 1e-3
LOST = 1e-12
# Posteriors that differ by no more than this are equal.
EQUAL_POSTERIORS = 1e-9


@dataclass(frozen=True)
class Density:
    """The mixture of one view."""

    log_weights: Floats  # (k,) minus infinity for a lost cluster
    centres: Floats  # (k, d) means, or probabilities of the features
    variances: Floats | None  # (k, d); None for a multinomial

    def log_joint(self, X: Matrix) -> Floats:
        """Return log p(x, c) of samples and clusters, shape (n, k), up to a constant of the sample."""
        if self.variances is None:
            logs = np.log(np.where(self.centres > 0, self.centres, 1.0))  # features never seen tell nothing
            return np.asarray(X @ logs.T) + self.log_weights
        inverse = 1.0 / self.variances
        distances = np.asarray(_squares(X) @ inverse.T) - 2.0 * np.asarray(X @ (self.centres * inverse).T)
        distances += (self.centres**2 * inverse).sum(axis=1)
        sizes = np.log(2.0 * np.pi * self.variances).sum(axis=1)
        return -0.5 * (np.maximum(distances, 0.0) + sizes) + self.log_weights


class ViewModel(ABC):
    """One view of the training samples that it has: it fits a mixture to posteriors."""

    def __init__(self, X: Matrix, weights: Floats) -> None:
        self.X = X
        self.weights = weights

    def fit(self, posteriors: Floats) -> Density:
        """Return the mixture that the posteriors lead to; samples without any (zeros) are ignored."""
        shares = posteriors * self.weights[:, None]
        totals = shares.sum(axis=0)
        alive = totals > LOST * totals.sum()
        with np.errstate(divide="ignore"):
            log_weights = np.log(np.where(alive, totals / totals[alive].sum(), 0.0))
        centres, variances = self._parameters(shares, np.where(alive, totals, 1.0), alive)
        return Density(log_weights, centres, variances)

    @abstractmethod
    def start_features(self) -> Matrix:
        """Return the features in which starting centres are drawn."""

    @abstractmethod
    def _parameters(self, shares: Floats, totals: Floats, alive: np.ndarray) -> tuple[Floats, Floats | None]: ...


class GaussianView(ViewModel):
    """Gaussian clusters with variances alone."""

    def __init__(self, X: Matrix, weights: Floats, covariance: str) -> None:
        super().__init__(X, weights)
        self.covariance = covariance
        self.squares = _squares(X)
        self.overall = _means(X, weights)
        spread = np.maximum(_means(self.squares, weights) - self.overall**2, 0.0)
        mean = float(spread.mean())
        #: Variance of every feature; that of a constant one, or of equal samples, is a stand-in.
        self.spread = np.where(spread > 1e-12 * mean, spread, mean) if mean > 0 else np.ones_like(spread)

    def start_features(self) -> Matrix:
        """Return the features, of unit variance where variances differ between features."""
        if self.covariance.endswith("spherical"):
            return self.X
        scale = 1.0 / np.sqrt(self.spread)
        return sp.csr_array(self.X @ sp.diags_array(scale)) if sp.issparse(self.X) else self.X * scale

    def _parameters(self, shares: Floats, totals: Floats, alive: np.ndarray) -> tuple[Floats, Floats | None]:
        means = np.where(alive[:, None], _sums(self.X, shares) / totals[:, None], self.overall)
        variances = _sums(self.squares, shares) / totals[:, None] - means**2
        spread = np.broadcast_to(self.spread, means.shape)
        variances = np.where(alive[:, None], variances, spread)
        if self.covariance.endswith("spherical"):
            variances = _same_for_all_features(variances)
            spread = _same_for_all_features(spread)
        if self.covariance.startswith("shared"):
            sizes = np.where(alive, totals, 0.0)
            variances = np.broadcast_to(sizes @ variances / sizes.sum(), means.shape)
        return means, np.maximum(variances, FLOOR * spread)


class MultinomialView(ViewModel):
    """Multinomial clusters; features are counts or other amounts."""

    def __init__(self, X: Matrix, weights: Floats) -> None:
        super().__init__(X, weights)
        #: The average sample.
        self.overall = _means(X, weights)

    def start_features(self) -> Matrix:
        """Return the counts of every sample at unit length."""
        return normalize(self.X)

    def _parameters(self, shares: Floats, totals: Floats, alive: np.ndarray) -> tuple[Floats, Floats | None]:
        counts = np.where(alive[:, None], _sums(self.X, shares), 0.0) + self.overall
        sums = counts.sum(axis=1, keepdims=True)
        return counts / np.where(sums > 0, sums, 1.0), None


def _same_for_all_features(variances: Floats) -> Floats:
    return np.broadcast_to(variances.mean(axis=1)[:, None], variances.shape)


def _squares(X: Matrix) -> Matrix:
    return X.multiply(X).tocsr() if sp.issparse(X) else X * X


def _sums(X: Matrix, shares: Floats) -> Floats:
    """Return the sums of features by cluster, shape (k, d)."""
    return np.asarray((X.T @ shares).T)


def _means(X: Matrix, weights: Floats) -> Floats:
    return np.asarray(X.T @ (weights / weights.sum())).ravel()


# --- the exchange ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ExchangedMixtures:
    """The mixtures of the best round of one run."""

    labels: Ints  # (n,) the cluster of largest mean posterior
    densities: tuple[Density, ...]  # per view
    history: tuple[float, ...]  # L of every round up to the one kept
    n_iter: int  # rounds taken
    converged: bool  # before max_iter

    @property
    def objective(self) -> float:
        """L of the round kept."""
        return self.history[-1]


def exchange_em(
    views: Sequence[ViewModel],
    labels: Ints,
    *,
    n_clusters: int,
    max_iter: int,
    tol: float = 1e-4,
    samples: Sequence[Index] | None = None,
) -> ExchangedMixtures:
    """Exchange posteriors until L has gained no more than ``tol`` for some rounds; keep the best round.

    ``samples`` says which of all samples the rows of every view are, where it lacks some; ``labels`` are then -1 where
    nothing is known.
    """
    samples = [slice(None)] * len(views) if samples is None else samples
    posteriors = (labels[:, None] == np.arange(n_clusters)).astype(np.float64)
    posteriors = _carried_on(views, samples, posteriors)
    history: list[float] = []
    best: tuple[Density, ...] = ()
    last_gain = -np.inf  # the last value that counted as a gain
    n_without = 0
    kept = 0
    converged = False
    while not converged and len(history) < max_iter:
        densities, value, posteriors = _round(views, samples, posteriors)
        if kept == 0 or value > history[kept - 1]:
            best = densities
            kept = len(history) + 1
        history.append(value)
        last_gain, n_without = (value, 0) if value > last_gain + tol else (last_gain, n_without + 1)
        converged = n_without >= (1 if len(views) == 1 else PATIENCE)
    proba = mean_posteriors(best, [view.X for view in views], samples, len(labels))
    return ExchangedMixtures(likeliest(proba), best, tuple(history[:kept]), len(history), converged)


def _carried_on(views: Sequence[ViewModel], samples: Sequence[Index], posteriors: Floats) -> Floats:
    """Return posteriors of all samples: where there are none, those of mixtures fitted to the others of a view."""
    weights = np.zeros(len(posteriors))
    for view, here in zip(views, samples, strict=True):
        weights[here] = view.weights
    while (v := next_to_learn(posteriors.sum(axis=1) > 0, samples, weights)) is not None:
        own = posteriors[samples[v]]
        found, _ = _posteriors(views[v].fit(own).log_joint(views[v].X))
        known = own.sum(axis=1, keepdims=True) > 0
        posteriors = _handed_on(posteriors, samples[v], np.where(known, own, found))
    return posteriors


def _round(
    views: Sequence[ViewModel], samples: Sequence[Index], posteriors: Floats
) -> tuple[tuple[Density, ...], float, Floats]:
    """Let every view take the posteriors of the one before it."""
    densities: list[Density] = [Density(np.empty(0), np.empty(0), None)] * len(views)
    divisors = _divisors(views)
    value = 0.0
    for v in turns(len(views)):
        view = views[v]
        densities[v] = view.fit(posteriors[samples[v]])
        found, logs = _posteriors(densities[v].log_joint(view.X))
        posteriors = _handed_on(posteriors, samples[v], found)
        value += _mean(logs, view.weights) / divisors[v]
    return tuple(densities), value, posteriors


def _handed_on(posteriors: Floats, samples: Index, found: Floats) -> Floats:
    """Return the posteriors with those that a view found for its samples."""
    if isinstance(samples, slice):  # all of them
        return found
    result = posteriors.copy()
    result[samples] = found
    return result


def _divisors(views: Sequence[ViewModel]) -> list[float]:
    """Return what the mean of every view is divided by in L: the number of views where all weigh the same."""
    totals = [float(view.weights.sum()) for view in views]
    if len(set(totals)) == 1:
        return [float(len(views))] * len(views)
    return [sum(totals) / total for total in totals]


def _posteriors(joint: Floats) -> tuple[Floats, Floats]:
    """Return the posteriors of the clusters and the log-likelihoods of the samples."""
    logs = logsumexp(joint, axis=1)
    return np.exp(joint - logs[:, None]), logs


def _mean(logs: Floats, weights: Floats) -> float:
    return float((weights * logs).sum() / weights.sum())


def mean_posteriors(
    densities: Sequence[Density],
    blocks: Sequence[Matrix],
    samples: Sequence[Index] | None = None,
    n_samples: int | None = None,
) -> Floats:
    """Return the posteriors of the clusters, the mean over the views that a sample is in, shape (n, k).

    ``samples`` says which of ``n_samples`` the rows of every view are, where it lacks some.
    """
    samples = [slice(None)] * len(blocks) if samples is None else samples
    n_samples = blocks[0].shape[0] if n_samples is None else n_samples
    total = np.zeros((n_samples, len(densities[0].log_weights)))
    counts = np.zeros((n_samples, 1))
    for density, X, here in zip(densities, blocks, samples, strict=True):
        if X.shape[0] > 0:
            total[here] += _posteriors(density.log_joint(X))[0]
            counts[here] += 1.0
    return np.asarray(total / counts)


def mean_log_likelihood(densities: Sequence[Density], blocks: Sequence[Matrix], weights: Sequence[Floats]) -> float:
    """Return L of any samples under fitted mixtures: the mean over samples and views of log p(x^(v)).

    ``weights`` are those of the rows of every view.
    """
    means = []
    totals = []
    for density, X, own in zip(densities, blocks, weights, strict=True):
        if own.any():
            means.append(_mean(logsumexp(density.log_joint(X), axis=1), own))
            totals.append(float(own.sum()))
    return float(np.mean(means) if len(set(totals)) == 1 else np.average(means, weights=totals))


def likeliest(proba: Floats) -> Ints:
    """Return the first cluster of largest posterior, equal except for rounding."""
    return np.asarray((proba >= proba.max(axis=1, keepdims=True) - EQUAL_POSTERIORS).argmax(axis=1))
