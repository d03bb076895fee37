"""Times to an event, some of them censored: the k-sample log-rank test, and median survival by Kaplan and Meier.

Statistic   (O - E)' V^-1 (O - E), with O_c the events of group c, E_c those expected from its share of the samples at
            risk at every event, and V the hypergeometric covariance; chi-squared with one degree of freedom fewer than
            there are groups with events to expect
Cost        O(n log n + m g^2) for m distinct times of events and g groups
Source      N. Mantel, Cancer Chemotherapy Reports 50, 1966; R. Peto and J. Peto, J. of the Royal Statistical
            Society A 135, 1972; E. L. Kaplan and P. Meier, J. of the American Statistical Association 53, 1958
"""

import numpy as np
from scipy.special import chdtrc

from kernelweave.foundation.array_types import Bools, Floats, Ints


def log_rank(times: Floats, events: Bools, groups: Ints, n_groups: int) -> tuple[float, float]:
    """Return statistic and p-value of the log-rank test; NaN where fewer than two groups have events to expect."""
    moments, deaths = np.unique(times[events], return_counts=True)
    at_risk = np.stack([_at_risk(times[groups == c], moments) for c in range(n_groups)], axis=1)
    everybody = at_risk.sum(axis=1)
    shares = at_risk / everybody[:, None]
    observed = np.bincount(groups[events], minlength=n_groups)
    expected = deaths @ shares
    spread = deaths * (everybody - deaths) / np.maximum(everybody - 1, 1)
    covariance = np.diag(spread @ shares) - (shares * spread[:, None]).T @ shares
    there = np.flatnonzero(expected > 0)
    if len(there) < 2:
        return np.nan, np.nan
    kept = there[:-1]  # the last one follows from the others
    excess = (observed - expected)[kept]
    statistic = float(excess @ np.linalg.pinv(covariance[np.ix_(kept, kept)], hermitian=True) @ excess)
    return statistic, float(chdtrc(len(kept), statistic))


def median_survival(times: Floats, events: Bools) -> float:
    """Return the first time at which the Kaplan-Meier curve is at most one half; NaN where it never is."""
    moments, deaths = np.unique(times[events], return_counts=True)
    curve = np.cumprod(1.0 - deaths / _at_risk(times, moments))
    # a product of fractions that is one half exactly may come out a little above it
    below = np.flatnonzero(curve <= 0.5 * (1.0 + 1e-12))
    return float(moments[below[0]]) if len(below) else np.nan


def _at_risk(times: Floats, moments: Floats) -> Ints:
    """Return how many of the times are not before each moment."""
    return len(times) - np.searchsorted(np.sort(times), moments, side="left")
