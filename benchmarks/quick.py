"""What p="auto" and learned weights cost beside equal weights, and kernel spectral clustering beside Co-reg."""

import time
import warnings

import numpy as np

from benchmarks._harness import Row, seconds
from kernelweave import (
    CoRegularizedSpectralClustering,
    KernelSpectralClustering,
    MultiViewKernelKMeans,
    MultiViewKernelSpectralClustering,
    MultiViewSpectralClustering,
)

SUITE = "quick answers"
# Others may use the cores as well, so processor time is compared, not the time on the wall.
CLOCK = time.process_time


def run():
    return [
        *choice(1200, 60),
        learned(1200, 60),
        learned(2500, 30),
        learned(4500, 15),
        learned(2500, 30, cls=MultiViewKernelKMeans),
        *scores(4500, 15),
        *scores(4500, 15, n_views=2),
    ]


def blobs(n, k, n_views=3, d=20):
    """Return views in which groups overlap, from one to the next more."""
    rng = np.random.default_rng(1)
    y = rng.integers(k, size=n)
    return [rng.normal(0, 1, (k, d))[y] + rng.normal(0, 1.0 + 0.4 * v, (n, d)) for v in range(n_views)]


def taken(fits, repeats):
    """Return the least processor time of every fit."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # weights of blobs may end at a corner
        return seconds(fits, repeats, CLOCK)


def choice(n, k, repeats=3, classes=(MultiViewKernelKMeans, MultiViewSpectralClustering)):
    """Compare fits with p="auto" with fits with equal weights."""
    views = blobs(n, k)
    rows = []
    for cls in classes:
        fits = {
            "equal": lambda cls=cls: cls(k, view_weights="uniform", random_state=0).fit(views),
            "auto": lambda cls=cls: cls(k, p="auto", random_state=0).fit(views),
        }
        rows.append(_beside(f'{cls.__name__}, p="auto" beside equal weights, {_set(n, k)}', taken(fits, repeats), 4))
    return rows


def learned(n, k, repeats=3, cls=MultiViewSpectralClustering):
    """Compare learned weights with equal ones."""
    views = blobs(n, k)
    fits = {
        "equal": lambda: cls(k, view_weights="uniform", random_state=0).fit(views),
        "learned": lambda: cls(k, random_state=0).fit(views),
    }
    return _beside(f"{cls.__name__}, learned beside equal weights, {_set(n, k)}", taken(fits, repeats), 2)


def scores(n, k, repeats=1, n_views=3):
    """Compare kernel spectral clustering of several views and of one with co-regularised spectral clustering."""
    views = blobs(n, k, n_views)
    joined = np.hstack(views)
    fits = {
        "Co-reg": lambda: CoRegularizedSpectralClustering(k, random_state=0).fit(views),
        "MVKSC": lambda: MultiViewKernelSpectralClustering(k, random_state=0).fit(views),
        "KSC": lambda: KernelSpectralClustering(k).fit(joined),
    }
    result = taken(fits, repeats)
    base = {"Co-reg": result["Co-reg"]}
    return [
        _beside(
            f"{name} beside co-regularised spectral clustering, {_set(n, k, n_views)}", {**base, name: result[name]}, 3
        )
        for name in ("MVKSC", "KSC")
    ]


def _set(n, k, n_views=3):
    return f"{n:,} samples in {n_views} views, k = {k}"


def _beside(what, result, limit):
    (plain, base), (name, other) = result.items()
    text = f"{other / base:.2f} x ({name} {other:.2f} s, {plain} {base:.2f} s of processor time)"
    return Row(SUITE, what, text, f"at most {limit} x", other <= limit * base)
