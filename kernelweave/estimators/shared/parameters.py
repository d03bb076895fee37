"""Rules of parameters that several estimators have, each written once."""

from numbers import Integral, Real
from os import PathLike
from typing import Any

from kernelweave.foundation.sklearn_internals import Interval, StrOptions
from kernelweave.inputs import MISSING
from kernelweave.kernels.spec.fitting import KERNELS
from kernelweave.solvers.shared.view_weights import LARGEST_P

_COUNT = [Interval(Integral, 1, None, closed="left")]

_COMMON: dict[str, list[Any]] = {
    "n_clusters": _COUNT,
    "p": [Interval(Real, 1, LARGEST_P, closed="both"), StrOptions({"auto"})],
    "view_weights": [StrOptions({"learned", "uniform"}), "array-like", dict],
    "init_view_weights": ["array-like", dict, None],
    "views": ["array-like", dict, None],
    "n_exemplars": [*_COUNT, None],
    "n_init": _COUNT,
    "max_iter": _COUNT,
    "tol": [Interval(Real, 0, None, closed="left")],
    "time_budget": [Interval(Real, 0, None, closed="neither"), None],
    "approximation": [StrOptions({"nystroem", "random_features"}), None],
    "n_components": _COUNT,
    "storage": [StrOptions({"auto", "dense", "blockwise"})],
    "memory_limit": [Interval(Real, 0, None, closed="neither")],
    "checkpoint": [str, PathLike, None],
    "random_state": ["random_state"],
    "verbose": ["verbose"],
}

_OF_ONE_TABLE: dict[str, list[Any]] = {
    **_COMMON,
    "kernel": [StrOptions(set(KERNELS)), callable],
    "kernel_params": [dict, None],
}

_OF_VIEWS: dict[str, list[Any]] = {
    **_COMMON,
    "missing": [StrOptions(set(MISSING))],
    "kernel": [StrOptions(set(KERNELS)), callable, list, tuple, dict],
    "kernel_params": [dict, list, tuple, None],
}


#: A number of clusters, or "auto" where the estimator can choose it.
N_CLUSTERS_OR_AUTO = [*_COUNT, StrOptions({"auto"})]


def rules(*names: str) -> dict[str, list[Any]]:
    """Return the rules of parameters of estimators on one table."""
    return {name: _OF_ONE_TABLE[name] for name in names}


def view_rules(*names: str) -> dict[str, list[Any]]:
    """Return the rules of parameters of estimators on several views, where a kernel may be one per view."""
    return {name: _OF_VIEWS[name] for name in names}
