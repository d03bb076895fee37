"""Kernel values that a fitted model works with."""

from typing import Any

import numpy as np

from kernelweave.evaluation.describe.clustering import labels_of
from kernelweave.foundation.array_types import Floats, Ints
from kernelweave.inputs import take_rows


def has_fitted_kernel(model: Any) -> bool:
    """Whether a fitted model keeps the kernel between new samples and its training samples."""
    return hasattr(model, "labels_") and hasattr(model, "_cross")


def training_samples(model: Any) -> Ints:
    """Return the samples a model was trained on; models trained on a subset know the kernel with that subset alone."""
    return np.asarray(getattr(model, "train_indices_", np.arange(len(labels_of(model)))))


def kernel_among(model: Any, samples: Any, positions: Ints) -> Floats:
    """Return the kernel values among some training samples, given by their positions in :func:`training_samples`.

    Of several views the sum is returned that the clusters were formed in: the kernels, normalised as in ``fit``, times
    ``kernel_coefficients_``.
    """
    cross = model._cross(take_rows(samples, training_samples(model)[positions]))
    if hasattr(model, "kernel_coefficients_") and hasattr(cross, "with_weights"):
        cross = cross.with_weights(model.kernel_coefficients_)
    return np.asarray(cross.block(slice(None), positions), dtype=np.float64)


def models_of_views(model: Any) -> Any:
    """Return what a fitted multi-view kernel spectral model knows about every view: scores and kernel row sums."""
    return model._model.views
