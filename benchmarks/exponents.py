"""What p="auto" and learned weights cost beside equal weights, on every set of several views: one line per fit.

``python -m benchmarks.exponents`` takes the sets of ``KERNELWEAVE_DATA`` and synthetic ones, with Gaussian and linear
kernels; the suite of ``python -m benchmarks`` runs a part of it. Seconds are those of the processor, on one thread, the
least of a few fits. NMI with the classes says whether a cheap choice is a good one.

``--regret SEEDS`` prints how good the choice is instead: the best NMI of ``LISTED`` exponents less that of the one that
p="auto" chooses, each the mean over the seeds, also where views of noise are among the others.
"""

import argparse
import os
import sys
import time
import warnings
from dataclasses import dataclass

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks._harness import Row
from benchmarks.quick import blobs
from kernelweave import MultiViewKernelKMeans, MultiViewSpectralClustering
from kernelweave.datasets import load_benchmark, make_corrupted_views, standardize
from kernelweave.metrics import normalized_mutual_info

SUITE = "exponents"
CLASSES = (MultiViewSpectralClustering, MultiViewKernelKMeans)
KERNELS = ("rbf", "linear")
REAL = (
    "3sources",
    "bbc4view",
    "bdgp",
    "citeseer",
    "coil20_3view",
    "cora",
    "hw2sources",
    "landuse21",
    "mfeat",
    "mnist4",
    "movies617",
    "mvkkm_synthetic",
    "pie10",
    "proteinfold",
    "reuters1200",
    "webkb_203",
    "webkb_cornell_195",
    "webkb_course_binary",
    "webkb_course_tfidf",
    "wikipedia",
    "wikipedia_test693",
)
#: Samples, clusters and views.
SYNTHETIC = ((500, 5, 3), (600, 40, 3), (1200, 60, 3), (1500, 4, 8), (2500, 30, 5), (4500, 15, 3))
QUICK = (("rbf", "wikipedia_test693"), ("linear", "proteinfold"), ("linear", (600, 40, 3)))
#: Samples, clusters, the noise of every view that tells them apart, and how many views are noise alone.
NOISY = (
    (300, 4, (1.0,), 2),
    (400, 3, (1.5, 1.5, 2.0), 2),
    (500, 5, (1.0, 1.0), 4),
    (700, 10, (1.0, 1.4), 1),
    (1000, 20, (0.8,), 1),
)
#: Views that tell some of three clusters apart, views of noise, and samples.
CORRUPTED = ((1, 3, 400), (2, 4, 300), (3, 2, 400), (5, 2, 700))
LISTED = (1.25, 1.5, 2.0, 3.0, 5.0, 10.0, np.inf)
FITS = {"equal": {"view_weights": "uniform"}, "learned": {}, "auto": {"p": "auto"}}
MOST = {"learned": 2.0, "auto": 4.0}


@dataclass(frozen=True)
class Cost:
    """Seconds of three fits, and the exponent chosen."""

    name: str
    seconds: dict[str, float]
    nmi: dict[str, float]
    p: float

    def ratio(self, fit):
        return self.seconds[fit] / self.seconds["equal"]

    def line(self):
        ratios = " ".join(f"{fit} {self.ratio(fit):5.2f}" for fit in MOST)
        marks = "".join(f" {fit} above {most:g}" for fit, most in MOST.items() if self.ratio(fit) > most)
        nmi = " ".join(f"{fit} {value:.3f}" for fit, value in self.nmi.items())
        return f"{self.name:62s} equal {self.seconds['equal']:7.3f} s {ratios}  p {self.p:<5g} NMI {nmi}{marks}"


def load(data):
    """Return views, classes and the number of clusters."""
    if data in NOISY:
        return noisy(*data)
    if data in CORRUPTED:
        telling, noise, n = data
        made = make_corrupted_views(telling, noise, n_samples=n, n_corrupted=n // 14, random_state=0)
        return list(made.views.values()), made.target, 3
    if isinstance(data, tuple):
        n, k, n_views = data
        return blobs(n, k, n_views), np.random.default_rng(1).integers(k, size=n), k
    found = load_benchmark(data)
    views = [standardize(np.asarray(X.toarray() if hasattr(X, "toarray") else X, float)) for X in found.views.values()]
    return views, found.target, len(np.unique(found.target))


def noisy(n, k, noises, n_noise, n_features=20):
    rng = np.random.default_rng(3)
    y = rng.integers(k, size=n)
    shape = (n, n_features)
    views = [rng.standard_normal((k, n_features))[y] + rng.normal(0.0, noise, shape) for noise in noises]
    return [*views, *(rng.standard_normal(shape) for _ in range(n_noise))], y, k


def regret(cls, kernel, data, n_seeds):
    """Return the mean regret of p="auto", the best NMI, the exponents chosen, and the NMI of equal weights."""
    views, y, k = load(data)
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")

        def fitted(p, seed):
            options = {"view_weights": "uniform"} if p == np.inf else {"p": p}
            return cls(k, kernel=kernel, random_state=seed, **options).fit(views)

        seeds = range(n_seeds)
        nmi = {p: np.mean([normalized_mutual_info(y, fitted(p, seed).labels_) for seed in seeds]) for p in LISTED}
        chosen = [fitted("auto", seed).p_ for seed in seeds]
    best = max(nmi.values())
    return best - np.mean([nmi[p] for p in chosen]), best, chosen, nmi[np.inf]


def print_regrets(classes, kernels, groups, n_seeds):
    """Print a line for each case, and the means over real and overlapping sets and over those with noise."""
    for cls in classes:
        for group, sets in groups.items():
            found = []
            for kernel in kernels:
                for data in sets:
                    lost, best, chosen, equal = regret(cls, kernel, data, n_seeds)
                    found.append((lost, best - equal))
                    case = f"{cls.__name__} {kernel} {data}"
                    text = ", ".join(f"{p:g}" for p in chosen)
                    print(
                        f"{case:62s} regret {lost:.4f} of {best:.3f}, equal weights {best - equal:.4f}, p {text}",
                        flush=True,
                    )
            if found:
                auto, equal = np.mean(found, axis=0)
                print(f"{cls.__name__}, {group}, {len(found)} cases: {auto:.4f}, equal weights always {equal:.4f}")


def cost(cls, kernel, data, repeats=3):
    """Return what the three fits take, in turns."""
    views, y, k = load(data)
    seconds = dict.fromkeys(FITS, np.inf)
    models = {}
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        for _ in range(repeats):
            for fit, options in FITS.items():
                models[fit] = cls(k, kernel=kernel, random_state=0, **options)
                began = time.process_time()
                models[fit].fit(views)
                seconds[fit] = min(seconds[fit], time.process_time() - began)
    nmi = {fit: normalized_mutual_info(y, model.labels_) for fit, model in models.items()}
    name = f"{cls.__name__} {kernel} {data if isinstance(data, str) else 'blobs'} {len(y)} x {len(views)} k = {k}"
    return Cost(name, seconds, nmi, models["auto"].p_)


def run():
    rows = []
    for cls in CLASSES:
        for kernel, data in QUICK:
            if isinstance(data, str) and not os.environ.get("KERNELWEAVE_DATA"):
                continue
            found = cost(cls, kernel, data)
            for fit, most in MOST.items():
                taken = f"{fit} {found.seconds[fit]:.2f} s, equal {found.seconds['equal']:.2f} s"
                text = f"{found.ratio(fit):.2f} x ({taken})"
                rows.append(Row(SUITE, f"{found.name}, {fit}", text, f"at most {most:g} x", found.ratio(fit) <= most))
    return rows


def summary(costs):
    """Return a line per class: medians, largest ratios, how many are above what is promised, mean NMI."""
    lines = []
    for cls in CLASSES:
        own = [c for c in costs if c.name.startswith(f"{cls.__name__} ")]
        if not own:
            continue
        parts = []
        for fit, most in MOST.items():
            ratios = np.array([c.ratio(fit) for c in own])
            above = int((ratios > most).sum())
            parts.append(f"{fit} median {np.median(ratios):.2f}, at most {ratios.max():.1f}, {above} above {most:g}")
        means = ", ".join(f"{fit} {np.mean([c.nmi[fit] for c in own]):.4f}" for fit in FITS)
        lines.append(f"{cls.__name__}, {len(own)} cases: {'; '.join(parts)}; mean NMI {means}")
    return lines


def main():
    parser = argparse.ArgumentParser(prog="python -m benchmarks.exponents", description=__doc__)
    parser.add_argument("--classes", nargs="+", choices=[cls.__name__ for cls in CLASSES])
    parser.add_argument("--kernels", nargs="+", choices=KERNELS, default=KERNELS)
    parser.add_argument("--sets", nargs="+", metavar="SET", help="real sets; all, and the synthetic ones, by default")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument(
        "--regret", type=int, metavar="SEEDS", help="print how good the choices are, not what they cost"
    )
    parser.add_argument("--noise", action="store_true", help="with --regret: only the sets with views of noise")
    options = parser.parse_args()
    if options.noise and options.regret is None:
        parser.error("--noise needs --regret SEEDS")
    sets = [*REAL, *SYNTHETIC] if options.sets is None else options.sets
    if not os.environ.get("KERNELWEAVE_DATA"):
        print("The real sets are left out: set KERNELWEAVE_DATA to their folder.", file=sys.stderr)
        sets = [data for data in sets if not isinstance(data, str)]
    classes = [cls for cls in CLASSES if options.classes is None or cls.__name__ in options.classes]
    if options.regret is not None:
        groups = {} if options.noise else {"sets": sets}
        if options.noise or options.sets is None:
            groups["with views of noise"] = [*NOISY, *CORRUPTED]
        print_regrets(classes, options.kernels, groups, options.regret)
        return
    costs = []
    for cls in classes:
        for kernel in options.kernels:
            for data in sets:
                costs.append(cost(cls, kernel, data, options.repeats))
                print(costs[-1].line(), flush=True)
    print("\n".join(summary(costs)))


if __name__ == "__main__":
    main()
