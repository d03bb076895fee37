"""The estimator that clusters, the samples as it received them, and the clusters it made of them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from kernelweave.evaluation.describe.results import n_clusters_of
from kernelweave.evaluation.describe.views import View, measured_views
from kernelweave.evaluation.metrics.checks import encode_labels
from kernelweave.foundation.array_types import Ints
from kernelweave.foundation.errors import ParameterError


def final_step(estimator: Any) -> Any:
    """Return the estimator that clusters: itself, the last step of a pipeline, or the best one of a search."""
    while True:
        if hasattr(estimator, "best_estimator_"):
            estimator = estimator.best_estimator_
        elif isinstance(estimator, Pipeline):
            estimator = estimator[-1]
        else:
            return estimator


def steps_before(estimator: Any) -> tuple[Any, ...]:
    """Return what stands before the estimator that clusters, pipelines inside of pipelines and searches included."""
    steps: list[Any] = []
    while estimator is not final_step(estimator):
        if hasattr(estimator, "best_estimator_"):
            estimator = estimator.best_estimator_
        else:
            steps += [step for _, step in estimator.steps[:-1]]
            estimator = estimator[-1]
    return tuple(steps)


def samples_for_final_step(estimator: Any, X: Any) -> Any:
    """Return samples as the estimator that clusters receives them: after the fitted steps before it."""
    for step in steps_before(estimator):
        if X is not None and step is not None and not isinstance(step, str):
            X = step.transform(X)
    return X


def labels_of(model: Any) -> Ints:
    """Return the labels of a fitted clusterer."""
    if not hasattr(model, "labels_"):
        raise ParameterError(
            f"estimator={type(model).__name__}(...) has no labels_ after fit, so it is not a clusterer."
        )
    return np.asarray(model.labels_)


@dataclass(frozen=True)
class Clustering:
    """A fitted model, the samples as it received them, and its clusters."""

    model: Any  # the estimator itself, without the steps before it
    steps: tuple[Any, ...]  # what stands before it in a pipeline
    samples: Any  # X after these steps
    views: tuple[View, ...]
    labels: Ints
    n_clusters: int  # with those that stayed empty

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return len(self.labels)


def read_clustering(estimator: Any, X: Any) -> Clustering:
    """Return the clustering of ``estimator``, a fitted model or a pipeline or search that ends in one."""
    model = final_step(estimator)
    check_is_fitted(model)
    if not hasattr(model, "labels_"):
        raise ParameterError(f"estimator={type(model).__name__}(...) has no labels_; a report is about a clustering.")
    samples = samples_for_final_step(estimator, X)
    views = measured_views(model, samples)
    n = views[0].block.shape[0]
    labels = np.asarray(model.labels_)
    if len(labels) != n:
        raise ParameterError(
            f"X has {n} samples, but the model was fitted on {len(labels)}. Pass the samples it was fitted on."
        )
    codes, k = encode_labels(labels, "labels_", n_clusters=max(int(labels.max()) + 1, n_clusters_of(model)))
    return Clustering(model, steps_before(estimator), samples, views, codes, k)
