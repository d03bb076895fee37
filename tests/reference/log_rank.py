"""Log-rank test and Kaplan-Meier curve, written plainly: one event after another, samples counted each time."""

import numpy as np
from scipy.stats import chi2


def log_rank(times, events, groups):
    """Return statistic and p-value; the covariance of all groups is inverted without its null direction."""
    names = sorted(set(groups))
    observed = np.zeros(len(names))
    expected = np.zeros(len(names))
    V = np.zeros((len(names), len(names)))
    for t in sorted({time for time, event in zip(times, events, strict=True) if event}):
        at_risk = [sum(1 for time, g in zip(times, groups, strict=True) if g == name and time >= t) for name in names]
        died = [
            sum(1 for time, event, g in zip(times, events, groups, strict=True) if g == name and event and time == t)
            for name in names
        ]
        n, d = sum(at_risk), sum(died)
        for a in range(len(names)):
            observed[a] += died[a]
            expected[a] += d * at_risk[a] / n
            for b in range(len(names)):
                if n > 1:
                    share = (a == b) * at_risk[a] / n - at_risk[a] * at_risk[b] / n**2
                    V[a, b] += share * d * (n - d) / (n - 1)
    statistic = float((observed - expected) @ np.linalg.pinv(V) @ (observed - expected))
    return statistic, float(chi2.sf(statistic, len(names) - 1))


def median_survival(times, events):
    """Return the first time at which half or fewer survive, None where more do to the end."""
    surviving = 1.0
    for t in sorted({time for time, event in zip(times, events, strict=True) if event}):
        at_risk = sum(1 for time in times if time >= t)
        died = sum(1 for time, event in zip(times, events, strict=True) if event and time == t)
        surviving *= (at_risk - died) / at_risk
        if surviving <= 0.5 + 1e-9:
            return t
    return None
