"""A scorer for scikit-learn's searches that needs no labels."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelweave.evaluation.describe.clustering import final_step, samples_for_final_step
from kernelweave.evaluation.describe.silhouettes import Yardstick
from kernelweave.evaluation.describe.views import given_views
from kernelweave.evaluation.sampling import MOST_JUDGED
from kernelweave.foundation.errors import ParameterError
from kernelweave.foundation.random_streams import RandomState

#: Views in which samples can be compared with each other, whichever samples a model was fitted on.
COMPARABLE = ("features",)


@dataclass(frozen=True)
class SilhouetteScorer:
    """Score a fitted clusterer by the silhouettes of the clusters that it predicts.

    For ``scoring`` of scikit-learn's searches, which fit an estimator on some samples and score it on others. Distances
    are those between the samples as they are passed to the search, so that scores of different kernels, widths and
    numbers of clusters can be compared. The default of searches, the estimator's ``score``, is its objective: it is in
    the units of the kernel, and a search over a width would simply choose the widest.

    Parameters
    ----------
    metric : str, default="euclidean"
        Distance between samples, one of :func:`sklearn.metrics.pairwise_distances`.
    sample_size : int or None, default=2000
        Number of samples drawn, as the cost grows with its square; None means all.
    random_state : int, RandomState instance or None, default=0
        Seed of the draw.

    See Also
    --------
    score_clustering : The same for the samples that a model was fitted on.

    Notes
    -----
    Steps of a pipeline do not change the distances: scale X first where columns differ in scale. Several views are
    scored one by one, and the mean is used. Kernel matrices and graphs are refused: a search passes only the
    similarities of held-out samples to the training samples, which say nothing about distances between held-out
    samples.

    Examples
    --------
    >>> from sklearn.model_selection import GridSearchCV
    >>> from kernelweave import KernelKMeans
    >>> from kernelweave.model_selection import SilhouetteScorer
    >>> from sklearn.datasets import make_blobs
    >>> X, _ = make_blobs(150, centers=[[0, 0], [5, 0], [0, 5]], random_state=0)
    >>> widths = {"n_clusters": [2, 3, 4], "kernel_params__sigma": [0.5, 2.0]}
    >>> search = GridSearchCV(KernelKMeans(random_state=0), widths, scoring=SilhouetteScorer(), cv=3).fit(X)
    >>> search.best_params_["n_clusters"]
    3
    """

    metric: str = "euclidean"
    sample_size: int | None = MOST_JUDGED
    random_state: RandomState = 0

    def __call__(self, estimator: Any, X: Any, y: Any = None) -> float:
        """Return the mean silhouette of the clusters of X, larger for better; -1 where all are in one cluster."""
        model = final_step(estimator)
        name = type(model).__name__
        if not hasattr(estimator, "predict"):
            raise ParameterError(
                f"{name} has no predict, so held-out samples cannot be scored. Compare fits by score_clustering."
            )
        views = given_views(model, samples_for_final_step(estimator, X))
        other = [view.kind for view in views if view.kind not in COMPARABLE]
        if other:
            raise ParameterError(
                f"SilhouetteScorer needs distances between held-out samples, and {name} is given no features but a "
                f"{other[0]} here. Compare fits by score_clustering instead of a search with cross-validation."
            )
        yardstick = Yardstick.for_estimator(estimator, X, self.metric, self.sample_size, self.random_state)
        return yardstick.score_labels(np.asarray(estimator.predict(X)))
