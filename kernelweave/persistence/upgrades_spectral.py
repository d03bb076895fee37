"""Spectral models in files of version 1: embeddings with centres, and scores with codebooks.

The number of columns of an embedding or of scores was kept as ``_n_features_out``; now it is read off them.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np

from kernelweave.kernels.spec.fitting import Precomputed
from kernelweave.persistence.fields import assembled, fields_in
from kernelweave.persistence.steps import Fields, Upgrade, composed, taken, weighted_kernels, without
from kernelweave.persistence.upgrades_kmeans import learned_weights

# Scores below this share of the largest one counted as zero.
_ZERO_SCORE = 1e-10

# --- embeddings ------------------------------------------------------------------------------------------------------


def _embedding(fields: Fields, extension: Any) -> Fields:
    """Return the fields with centres and norms in a model beside what embeds new samples."""
    fields = without(fields, "_n_features_out") | {"_extension": extension}
    sources = {"extension": "_extension", "centers": "_centers", "norms": "_norms"}
    return composed(fields, "_model", "model/Embedding", **sources)


def _eigenvectors(fields: Fields, kernels: Iterable[Any], coefficients: Any) -> Fields:
    (sources,) = taken(fields, "_sources")
    kernel = weighted_kernels(kernels, coefficients)
    extension = assembled("extension/Eigenvectors", {"kernel": kernel, "sources": sources})
    return _embedding(without(fields, "_kernel", "_kernels", "_coefficients", "_sources"), extension)


def _ng_spectral(fields: Fields) -> Fields:
    return _eigenvectors(fields, taken(fields, "_kernel"), np.ones(1))


def _multi_view_spectral(fields: Fields) -> Fields:
    kernels, coefficients = taken(fields, "_kernels", "_coefficients")
    return _eigenvectors(learned_weights(fields), kernels, coefficients)


def _correlational(fields: Fields) -> Fields:
    (projections,) = taken(fields, "_trained")
    extension = assembled("extension/ProjectedViews", {"projections": tuple(projections)})
    return _embedding(without(fields, "_trained"), extension)


# --- scores ----------------------------------------------------------------------------------------------------------


def _trained_view(fields: Fields) -> Fields:
    """Columns that are taken of rows of a precomputed kernel are now kept next to it; the estimator knows them."""
    (kernel,) = taken(fields, "kernel")
    return without(fields, "kernel") | {"trained": _trained_kernel(kernel, None)}


def _trained_kernel(kernel: Any, columns: Any) -> Any:
    return assembled("kernel/TrainedKernel", {"kernel": kernel, "columns": columns})


def _columns(fields: Fields, kernel: Any) -> Any:
    """Return the columns of new rows of a precomputed kernel that were trained on; None for all, or other kernels."""
    indices, labels = taken(fields, "train_indices_", "labels_")
    return indices if isinstance(kernel, Precomputed) and len(indices) < len(labels) else None


def _codebook(patterns: Any, floor: Any) -> Any:
    return assembled("scores/Codebook", {"patterns": patterns, "floor": floor})


def _floor(fields: Fields, patterns: Any) -> Any:
    """Return what a score had to exceed to be positive; the first models had no such number, and took zero."""
    return fields["_floor"] if "_floor" in fields else np.zeros(np.shape(patterns)[1])


def _view_floor(fields: Fields, scores: Any) -> Any:
    """Return the same for the scores of one view, which was not kept."""
    share = _ZERO_SCORE if "_floor" in fields else 0.0
    return share * np.abs(scores).max(axis=0, initial=0.0)


def _scores(fields: Fields, views: tuple[Any, ...], shares: Any, view_codebooks: tuple[Any, ...] = ()) -> Fields:
    """Return the fields with scores and codebooks in a model."""
    (patterns,) = taken(fields, "codebook_")
    model = {"views": views, "shares": shares, "codebook": _codebook(patterns, _floor(fields, patterns))}
    gone = ("_kernel", "_trained", "_specs", "_floor", "_n_features_out")
    return without(fields, *gone) | {"_model": assembled("model/Scores", model | {"view_codebooks": view_codebooks})}


def _kernel_spectral(fields: Fields) -> Fields:
    kernel, alphas, bias = taken(fields, "_kernel", "dual_coef_", "bias_")
    trained = _trained_kernel(kernel, _columns(fields, kernel))
    only = assembled("scores/Biased", {"trained": trained, "alphas": alphas, "bias": bias})
    return _scores(fields, (only,), np.ones(1))


def _multi_view_kernel_spectral(fields: Fields) -> Fields:
    """Equal weights of the views were asked for by None."""
    trained, weights, asked_for = taken(fields, "_trained", "view_weights_", "view_weights")
    fields = fields | {"view_weights": "uniform" if asked_for is None else asked_for}
    views = tuple(_with_columns(fields, view) for view in trained)
    if "view_codebooks_" not in fields:
        return _scores(fields, views, weights)
    names, best, books, scores = taken(fields, "view_names_", "best_view_", "view_codebooks_", "scores_")
    pairs = zip(books, scores, strict=True)
    view_codebooks = tuple(_codebook(patterns, _view_floor(fields, of_view)) for patterns, of_view in pairs)
    return _scores(fields, views, np.eye(len(names))[names.index(best)], view_codebooks)


def _with_columns(fields: Fields, view: Any) -> Any:
    """Return the scores of one view with the columns of a precomputed kernel that they take."""
    kernel = view.trained.kernel
    trained = _trained_kernel(kernel, _columns(fields, kernel))
    return assembled("scores/Centred", {**fields_in(view), "trained": trained})


SPECTRAL: dict[str, Upgrade] = {
    "estimator/CorrelationalSpectralClustering": _correlational,
    "estimator/KernelSpectralClustering": _kernel_spectral,
    "estimator/MultiViewKernelSpectralClustering": _multi_view_kernel_spectral,
    "estimator/MultiViewSpectralClustering": _multi_view_spectral,
    "estimator/NgSpectralClustering": _ng_spectral,
    "model/TrainedView": _trained_view,
}
