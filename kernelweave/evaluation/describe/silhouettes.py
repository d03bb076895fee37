"""Silhouettes of a clustering, of two kinds that go by different names everywhere.

silhouette        between the samples *as they are given*: Euclidean distances between features (after the steps of a
                  pipeline), those of the feature space of a kernel matrix, the distances or the divergences
                  themselves. Every view is judged by itself, and the mean over the views counts. It does not depend on
                  kernels or other parameters of the model, so that models, kernels and numbers of clusters can be
                  compared by it: this is the one that searches go by, and that the command line and the report give. A
                  graph gives no distances and has none.
model silhouette  with the distances *the model works with*: of its joint embedding, of its kernel's feature space, of
                  its metric, of all views together; of the nodes in the spectral embedding of a graph. It says which
                  samples are doubtful to the model. Another kernel is another measure, so it compares nothing but the
                  samples of one model.

With one view that is measured as it is given (features without a kernel or with the linear one, a kernel matrix,
distances) the two are one, and only the first name is used.

Where there are many samples both are computed among some of them (:mod:`kernelweave.evaluation.sampling`), the same
for one seed whoever asks. The formula is in :mod:`kernelweave.partitions.silhouettes`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from kernelweave.evaluation.describe.clustering import Clustering, final_step, labels_of
from kernelweave.evaluation.describe.distances import distances_as_given, mean_of_views, scaled
from kernelweave.evaluation.describe.views import View, given_views
from kernelweave.evaluation.sampling import judged_samples
from kernelweave.foundation.array_types import Bools, Floats, Ints
from kernelweave.foundation.errors import ParameterError
from kernelweave.foundation.random_streams import RandomState
from kernelweave.partitions.silhouettes import nearest_other_clusters, silhouettes_from_distances

#: What a view gets in which all samples are in one cluster, and so the score of a clustering of which all views are so.
WORST = -1.0


@dataclass(frozen=True, eq=False)
class Silhouettes:
    """Silhouettes of some samples, with the cluster each would be in otherwise.

    The mean is that of the judged samples. Others are members of small clusters, for show: they are compared with the
    judged samples and each other.
    """

    rows: Ints
    values: Floats
    others: Ints
    judged: Bools
    mean: float
    view_means: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class Yardstick:
    """Distances between the judged samples as they are given, measured once and used for every model compared."""

    views: tuple[View, ...]
    metric: str  # of features
    rows: Ints
    distances: tuple[Floats, ...]

    @classmethod
    def for_estimator(
        cls, estimator: Any, X: Any, metric: str, sample_size: Any, random_state: RandomState
    ) -> "Yardstick":
        """Measure the samples of X, which need not have been clustered yet, as they are passed."""
        return cls.for_views(given_views(final_step(estimator), X), metric, sample_size, random_state)

    @classmethod
    def for_views(
        cls, views: tuple[View, ...], metric: str, sample_size: Any, random_state: RandomState
    ) -> "Yardstick":
        """Measure the judged samples in every view."""
        whole = isinstance(sample_size, Integral) and not isinstance(sample_size, bool)
        if sample_size is not None and (not whole or sample_size < 2):
            raise ParameterError(f"sample_size={sample_size!r} must be an integer of at least 2, or None.")
        return cls._among(views, metric, judged_samples(int(views[0].block.shape[0]), sample_size, random_state))

    @classmethod
    def _among(cls, views: tuple[View, ...], metric: str, rows: Ints) -> "Yardstick":
        return cls(views, metric, rows, tuple(distances_as_given(view, rows, metric) for view in views))

    def for_rows(self, rows: Ints) -> "Yardstick":
        """Return the same for other samples; itself where they are the same."""
        return self if np.array_equal(rows, self.rows) else self._among(self.views, self.metric, rows)

    @property
    def n_samples(self) -> int:
        """Number of all samples."""
        return int(self.views[0].block.shape[0])

    def by_view(self, model: Any) -> list[Floats] | None:
        """Return the silhouettes of the judged samples in every view; None where all are in one cluster."""
        return self._of(self._labels(final_step(model)))

    def _of(self, labels_of_views: Sequence[Ints]) -> list[Floats] | None:
        """Return the silhouettes of the judged samples by the labels of all samples in every view."""
        labels = [each[self.rows] for each in labels_of_views]
        several = [len(np.unique(each)) > 1 for each in labels]
        if not any(several):
            return None
        pairs = zip(self.distances, labels, several, strict=True)
        return [_silhouettes(D, each) if defined else np.full(len(each), WORST) for D, each, defined in pairs]

    def score(self, model: Any) -> float:
        """Return the mean over samples and views; the worst there is where all samples are in one cluster."""
        values = self.by_view(model)
        return WORST if values is None else mean_over_views(values)

    def score_labels(self, labels: Ints) -> float:
        """Return the same for labels of all samples, such as those that a model predicts."""
        values = self._of([labels] * len(self.views))
        return WORST if values is None else mean_over_views(values)

    def _labels(self, model: Any) -> list[Ints]:
        joint = labels_of(model)
        if len(joint) != self.n_samples:
            raise ParameterError(
                f"X has {self.n_samples} samples, but the estimator was fitted on {len(joint)}. Pass the same ones."
            )
        return labels_by_view(model, self.views)


def labels_by_view(model: Any, views: tuple[View, ...]) -> list[Ints]:
    """Return the labels of every view: those of a model for each view by itself, or the same for all."""
    if not hasattr(model, "view_labels_"):
        return [labels_of(model)] * len(views)
    names = getattr(model, "view_names_", [view.name for view in views])
    by_name = dict(zip(names, model.view_labels_, strict=True))
    in_order = list(model.view_labels_)
    return [np.asarray(by_name.get(view.name, in_order[v])) for v, view in enumerate(views)]


def mean_over_views(values: Sequence[Floats]) -> float:
    """Return the mean over the views of their mean silhouettes."""
    return float(np.mean([np.nanmean(each) for each in values]))


def _silhouettes(distances: Floats, labels: Ints) -> Floats:
    """Return the silhouettes of the samples in one view, NaN for those it does not have."""
    there = np.flatnonzero(~np.isnan(np.diagonal(distances)))
    if len(there) < len(labels):
        values = np.full(len(labels), np.nan)
        several = len(np.unique(labels[there])) > 1
        values[there] = _silhouettes(distances[np.ix_(there, there)], labels[there]) if several else WORST
        return values
    clusters, codes = np.unique(labels, return_inverse=True)
    return silhouettes_from_distances(distances, codes, len(clusters))


def silhouettes_as_given(clustering: Clustering, yardstick: Yardstick, rows: Ints | None = None) -> Silhouettes | None:
    """Return the silhouettes of the judged samples and of the others in ``rows``; None where there are none."""
    judged_values = yardstick.by_view(clustering.model)
    if judged_values is None:
        return None
    shown = yardstick if rows is None else yardstick.for_rows(rows)
    judged = np.isin(shown.rows, yardstick.rows)
    values = judged_values if shown is yardstick else shown.by_view(clustering.model) or []
    for each, known in zip(values, judged_values, strict=True):
        each[judged] = known
    together = shown.distances[0]
    if len(shown.views) > 1:  # every view counts the same
        together = mean_of_views([np.sqrt(scaled(D**2)) for D in shown.distances])
    return Silhouettes(
        rows=shown.rows,
        values=np.nanmean(values, axis=0),
        others=nearest_other_clusters(together, clustering.labels[shown.rows], clustering.n_clusters),
        judged=judged,
        mean=mean_over_views(judged_values),
        view_means=tuple(float(np.nanmean(each)) for each in judged_values),
    )


def silhouettes_of_model(
    distances: Floats, rows: Ints, judged: Bools, labels: Ints, n_clusters: int
) -> Silhouettes | None:
    """Return the silhouettes of ``rows`` from the distances the model works with; None for one cluster."""
    clusters = labels[rows]
    if len(np.unique(clusters[judged])) < 2:
        return None
    values = silhouettes_from_distances(distances, clusters, n_clusters)
    if not judged.all():
        among_judged = distances[np.ix_(judged, judged)]
        values[judged] = silhouettes_from_distances(among_judged, clusters[judged], n_clusters)
    others = nearest_other_clusters(distances, clusters, n_clusters)
    return Silhouettes(rows, values, others, judged, float(values[judged].mean()), ())
