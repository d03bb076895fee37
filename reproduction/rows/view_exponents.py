"""How well an exponent of view weights can be chosen without the classes, and what a noisy view costs.

Start       all exponents have the same one, the estimator's default, since equal weights scale a kernel sum and nothing
            else: it is searched once and passed as labels
Noise       one more view without any clusters, ``"wide"`` (as many columns as the median view) or ``"narrow"`` (two);
            a restart is a draw of it. The drop is NMI without the view less NMI with it, at the same setting
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache

import numpy as np

from reproduction.experiment import mean_and_std
from reproduction.rows.multi_view import Agreement, Exponent, Views, agreement, fitted, named, prepared

COMPARED: tuple[Exponent, ...] = ("auto", 1.5, 2.0, np.inf)
#: What choices are compared with: more exponents than ``p="auto"`` tries.
LISTED = (1.0, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0, np.inf)
NOISES = ("wide", "narrow")
EQUAL_DROPS = 1e-9  # drops closer than this are equal


# --- the exponent ----------------------------------------------------------------------------------------------------


def choice_row(restarts: int, seed: int, *, data: str) -> dict[str, float]:
    """NMI at every exponent and at ``p="auto"``, and how far each choice without the classes is from the best."""
    runs = clean_runs(data, seed)
    figures = {f"nmi_{name}": run.nmi for name, run in runs.items()}
    return figures | {"auto_p": runs["auto"].p} | {f"regret_{name}": loss for name, loss in regrets(runs).items()}


def choice_summary_row(restarts: int, seed: int, *, data: Sequence[str]) -> dict[str, float]:
    """Regrets over all sets: means, the largest, and on how many sets a choice loses at most 0.01."""
    table = [regrets(clean_runs(name, seed)) for name in data]
    figures: dict[str, float] = {}
    for name in map(named, COMPARED):
        losses = np.array([row[name] for row in table])
        figures |= {
            f"regret_{name}_mean": float(losses.mean()),
            f"regret_{name}_max": float(losses.max()),
            f"near_best_{name}": float((losses <= 0.01).sum()),
        }
    return figures


def regrets(runs: Mapping[str, Agreement]) -> dict[str, float]:
    """Return the best NMI of the exponents listed, less that of each way to choose one."""
    best = max(run.nmi for name, run in runs.items() if name != "auto")
    return {name: best - runs[name].nmi for name in map(named, COMPARED)}


@cache
def clean_runs(name: str, seed: int) -> dict[str, Agreement]:
    """Cluster a set with every exponent; kept, since both questions start from here."""
    return runs_of(prepared(name), (*LISTED, "auto"), seed)


def runs_of(data: Views, exponents: Iterable[Exponent], seed: int) -> dict[str, Agreement]:
    """Cluster with each exponent, all from the estimator's default start."""
    start = fitted(data, np.inf, seed=seed).labels_
    return {named(p): agreement(data, fitted(data, p, seed=seed, init=start)) for p in exponents}


# --- a noisy view ----------------------------------------------------------------------------------------------------


def noise_row(restarts: int, seed: int, *, data: str) -> dict[str, float]:
    """Drop in NMI when a noisy view is added, NMI left, and the share of the noisy kernel, over draws of the noise."""
    clean = clean_runs(data, seed)
    draws = noisy_runs(data, restarts, seed)
    figures: dict[str, float] = {}
    for noise in NOISES:
        for name in map(named, COMPARED):
            runs = [draw[noise][name] for draw in draws]
            least = [run.coefficients[-1] == run.coefficients.min() for run in runs]
            figures |= mean_and_std(f"{noise}_drop_{name}", [clean[name].nmi - run.nmi for run in runs])
            figures |= {
                f"{noise}_nmi_{name}_mean": float(np.mean([run.nmi for run in runs])),
                f"{noise}_share_{name}_mean": float(np.mean([run.coefficients[-1] for run in runs])),
                f"{noise}_least_{name}": float(np.mean(least)),
            }
    return figures


def noise_summary_row(restarts: int, seed: int, *, data: Sequence[str]) -> dict[str, float]:
    """Mean drop over all sets, with learned weights and with equal ones, and whether the first is the smaller."""
    rows = [noise_row(restarts, seed, data=name) for name in data]
    figures: dict[str, float] = {}
    for noise in NOISES:
        uniform = np.array([row[f"{noise}_drop_uniform_mean"] for row in rows])
        for name in map(named, COMPARED):
            drops = np.array([row[f"{noise}_drop_{name}_mean"] for row in rows])
            figures[f"{noise}_drop_{name}_mean"] = float(drops.mean())
            figures[f"{noise}_nmi_{name}_mean"] = float(np.mean([row[f"{noise}_nmi_{name}_mean"] for row in rows]))
            if name != "uniform":
                figures[f"{noise}_{name}_drops_less"] = float(drops.mean() < uniform.mean())
                figures[f"{noise}_{name}_sets_ahead"] = float((drops < uniform - EQUAL_DROPS).sum())
                figures[f"{noise}_{name}_sets_behind"] = float((drops > uniform + EQUAL_DROPS).sum())
                figures |= mean_and_std(f"{noise}_{name}_gain", uniform - drops)
    return figures


@cache
def noisy_runs(name: str, restarts: int, seed: int) -> list[dict[str, dict[str, Agreement]]]:
    """Cluster a set with one more view, drawn anew for every restart; by kind of noise and exponent."""
    from kernelweave.foundation.random_streams import streams

    data = prepared(name)
    draws = []
    for rng in streams(seed, restarts):
        noisy = {noise: with_noise(data, noise, rng) for noise in NOISES}
        draws.append({noise: runs_of(views, COMPARED, seed) for noise, views in noisy.items()})
    return draws


def with_noise(data: Views, noise: str, rng: np.random.Generator) -> Views:
    """Add a view of z-scored Gaussian noise: two columns, or as many as the median view."""
    from kernelweave.datasets import standardize

    columns = 2 if noise == "narrow" else int(np.median([view.shape[1] for view in data.views.values()]))
    view = standardize(rng.standard_normal((len(data.target), columns)))
    return replace(data, views={**data.views, "noise": view})
