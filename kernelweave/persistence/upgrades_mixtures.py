"""Convex mixtures in files of version 1."""

from typing import Any

import numpy as np

from kernelweave.persistence.fields import assembled
from kernelweave.persistence.steps import Fields, Upgrade, taken, view_kernel, weighted_kernels, without

# Nothing is random in a mixture; the seed is new.
_NEW: Fields = {"random_state": None}
_MODEL = ("_placements", "_betas", "_support", "_columns", "_exemplar_priors")
_REFINED = ("_refiners", "_refined_weights", "_weights", "_refined_totals", "_refined_norms")


def _convex_mixture(fields: Fields) -> Fields:
    """Densities had no normaliser here."""
    fields = {"normalizer": None} | _NEW | fields
    return _mixture(fields, np.ones(1), np.zeros(1), mixes_views=True)


def _multi_view_mixture(fields: Fields) -> Fields:
    """Learned or equal weights were asked for by ``weighted``, and ``view_weights`` was what learning started from."""
    constants, weighted, start = taken(fields, "_log_normalizers", "weighted", "view_weights")
    weights, names = taken(fields, "view_weights_", "view_names_")
    mixes_views = bool(weighted) and len(names) > 1
    fields = _NEW | without(fields, "_log_normalizers")
    fields |= {"weighted": None, "view_weights": "learned" if weighted else "uniform"}
    fields["init_view_weights"] = start if weighted else None  # it had no effect with equal weights
    if not mixes_views:
        fields = _normalized(fields, float(weights @ constants))
    return _mixture(fields, weights, constants, mixes_views=mixes_views)


def _normalized(fields: Fields, constant: float) -> Fields:
    """Return the fields with the normaliser in the log-likelihood, which left it out unless views were mixed."""
    names = ("log_likelihood_", "objective_", "objective_path_")
    values = taken(fields, *names)
    return fields | {name: value + constant for name, value in zip(names, values, strict=True)}


def _mixture(fields: Fields, view_weights: Any, log_normalizers: Any, *, mixes_views: bool) -> Fields:
    placements, betas, support, columns, exemplar_priors = taken(fields, *_MODEL)
    (priors,) = taken(fields, "priors_")
    model = {
        "placements": tuple(placements),
        "betas": betas,
        "log_normalizers": log_normalizers,
        "view_weights": view_weights,
        "mixes_views": mixes_views,
        "priors": priors[support],
        "columns": columns,
        "exemplar_priors": exemplar_priors,
    }
    rest = without(fields, *_MODEL, *_REFINED)
    return rest | {"_model": assembled("model/Mixture", model), "_centers": _centers(fields)}


def _centers(fields: Fields) -> Any:
    """Return the centres of kernel k-means after the mixture; those of an earlier fit have no effect."""
    if fields.get("refine") is None or "_refiners" not in fields:
        return None
    kernels, coefficients, *arrays = taken(fields, *_REFINED)
    kernel = weighted_kernels(map(view_kernel, kernels), coefficients)
    model = dict(zip(("weights", "totals", "norms"), arrays, strict=True))
    model |= {"kernel": kernel, "labels": taken(fields, "labels_")[0], "factors": None, "view_norms": None}
    return assembled("model/Centers", model)


MIXTURES: dict[str, Upgrade] = {
    "estimator/ConvexMixture": _convex_mixture,
    "estimator/MultiViewConvexMixture": _multi_view_mixture,
}
