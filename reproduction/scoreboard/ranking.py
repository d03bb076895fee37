"""Ranks of several methods over several sets, and which of them differ.

Input       scores, one row per set and one column per method; larger is better, minus infinity stands for a failure
Friedman    chi-square of the rank sums, corrected for ties, with k - 1 degrees of freedom
Nemenyi     methods differ where their mean ranks are at least the critical difference q sqrt(k (k + 1) / (6 N)) apart;
            q is the quantile of the studentized range for k groups, divided by sqrt(2)
Source      J. Demsar, Statistical Comparisons of Classifiers over Multiple Data Sets, JMLR 7, 2006
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import stats

Floats = npt.NDArray[np.float64]

ALPHA = 0.05


@dataclass(frozen=True)
class Friedman:
    """The test of whether all methods perform equally well."""

    statistic: float
    p_value: float


def ranks(scores: Floats) -> Floats:
    """Rank the methods on every set, 1 for the largest score; equal scores share the mean of their ranks."""
    return np.asarray(stats.rankdata(-np.asarray(scores, dtype=float), axis=1, method="average"))


def friedman(ranked: Floats) -> Friedman | None:
    """Return Friedman's test, or None where it says nothing: fewer than two sets or methods, or ties throughout."""
    n_sets, n_methods = ranked.shape
    if n_sets < 2 or n_methods < 2:
        return None
    spread = 1 - _ties(ranked) / (n_sets * n_methods * (n_methods**2 - 1))
    if spread <= 0:
        return None
    squares = float((ranked.sum(axis=0) ** 2).sum())
    plain = 12 * squares / (n_sets * n_methods * (n_methods + 1)) - 3 * n_sets * (n_methods + 1)
    statistic = plain / spread
    return Friedman(statistic, float(stats.chi2.sf(statistic, n_methods - 1)))


def _ties(ranked: Floats) -> int:
    """Return the sum of t^3 - t over all groups of t equal ranks in a row."""
    counts = [np.unique(row, return_counts=True)[1] for row in ranked]
    return int(sum((each**3 - each).sum() for each in counts))


def critical_difference(n_methods: int, n_sets: int, alpha: float = ALPHA) -> float:
    """Return how far mean ranks must lie apart (Nemenyi); not a number for fewer than two methods or no set."""
    if n_methods < 2 or n_sets < 1:
        return math.nan
    q = float(stats.studentized_range.ppf(1 - alpha, n_methods, np.inf)) / math.sqrt(2)
    return q * math.sqrt(n_methods * (n_methods + 1) / (6 * n_sets))


def alike(mean_ranks: Sequence[float], difference: float) -> list[tuple[int, int]]:
    """Return the longest runs of methods, first and last, that do not differ; ``mean_ranks`` ascend."""
    runs: list[tuple[int, int]] = []
    for first, start in enumerate(mean_ranks):
        last = max(at for at, rank in enumerate(mean_ranks) if rank - start < difference)
        if last > first and (not runs or last > runs[-1][1]):
            runs.append((first, last))
    return runs
