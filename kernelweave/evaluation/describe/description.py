"""All that a fitted model measured, gathered once."""

from dataclasses import dataclass
from typing import Any

from kernelweave.evaluation.describe.clustering import Clustering, read_clustering
from kernelweave.evaluation.describe.results import Progress, Weights, progress_of, sizes_of, warnings_of, weights_of
from kernelweave.evaluation.describe.silhouettes import Silhouettes, Yardstick, silhouettes_as_given
from kernelweave.evaluation.sampling import MOST_JUDGED
from kernelweave.foundation.array_types import Ints
from kernelweave.foundation.random_streams import RandomState


@dataclass(frozen=True, eq=False)
class Description:
    """What a fitted model measured.

    Attributes
    ----------
    clustering : Clustering
        The model, the samples as it received them, its views and its clusters.
    sizes : ndarray of shape (n_clusters,)
        Number of samples of every cluster; 0 for clusters that stayed empty.
    weights : list of Weights
        Weights of views and kernels.
    progress : Progress
        The objective, its path, and how the run ended.
    warnings : tuple of str
        Warnings of the fit.
    yardstick : Yardstick or None
        The judged samples and the distances between them as they are given; None for a graph, which gives none.
    silhouettes : Silhouettes or None
        Silhouettes of the judged samples as they are given (:mod:`~kernelweave.evaluation.describe.silhouettes` says
        which and why); None for a graph, and where all judged samples are in one cluster.
    """

    clustering: Clustering
    sizes: Ints
    weights: list[Weights]
    progress: Progress
    warnings: tuple[str, ...]
    yardstick: Yardstick | None
    silhouettes: Silhouettes | None

    @property
    def silhouette(self) -> float | None:
        """The mean silhouette of the judged samples, None where there is none."""
        return None if self.silhouettes is None else self.silhouettes.mean

    @property
    def one_geometry(self) -> bool:
        """Whether the model's distances are those between the samples as they are given."""
        views = self.clustering.views
        return len(views) == 1 and views[0].measured_as_given


def describe(
    estimator: Any,
    X: Any,
    *,
    metric: str = "euclidean",
    sample_size: int | None = MOST_JUDGED,
    random_state: RandomState = 0,
) -> Description:
    """Return what a fitted model, or a pipeline or search that ends in one, measured on the samples of its fit.

    ``metric``, ``sample_size`` and ``random_state`` are those of the silhouettes, as in
    :func:`~kernelweave.model_selection.score_clustering`, which gives the same number for the last step of a pipeline
    and the samples as that step received them.
    """
    clustering = read_clustering(estimator, X)
    yardstick = None
    if clustering.views[0].kind != "graph":
        yardstick = Yardstick.for_views(clustering.views, metric, sample_size, random_state)
    return Description(
        clustering=clustering,
        sizes=sizes_of(clustering.model),
        weights=weights_of(clustering.model),
        progress=progress_of(clustering.model),
        warnings=warnings_of(clustering.model),
        yardstick=yardstick,
        silhouettes=None if yardstick is None else silhouettes_as_given(clustering, yardstick),
    )
