"""Where to draw the samples in a plane: in the space in which the clusters were found.

scores      the first two scores of kernel spectral clustering
embedding   the two main axes of the joint embedding of spectral methods and graph fusion
graph       the two main axes of the spectral embedding of its nodes, for models without an embedding
            These three have about as many coordinates as there are clusters, and each cluster lies along others of
            them: two show two or three clusters, and all others on one spot. Where there are more than three, all
            coordinates count: the centres of the clusters are laid out so that they keep their distances as well as a
            plane can, and the samples follow by the linear map that takes the centres there.
distances   the two main axes of the squared distances of the model (classical scaling): kernel principal components,
            and principal components where the kernel is linear
"""

from dataclasses import dataclass

import numpy as np
from sklearn.metrics.pairwise import euclidean_distances

from kernelweave.evaluation.describe.clustering import Clustering
from kernelweave.evaluation.describe.results import joint_embedding
from kernelweave.evaluation.describe.views import View, is_text
from kernelweave.evaluation.principal import leading, planar_layout, scaling_components, with_positive_peaks
from kernelweave.foundation.array_types import Floats, Ints
from kernelweave.inputs import take_rows

SCORES = "scores of the model"
LAID_FLAT = (
    "the centres of the clusters keep their distances as well as a plane allows. Clusters that touch here may be "
    "apart there; gaps do not prove clusters, because the clusters determine this view"
)
# Two main axes show this many clusters: their centres lie in a plane.
MOST_IN_A_PLANE = 3
# Directions along which centres differ by less than this share of the largest difference are left out of the map: they
# would turn the noise in them into distances.
FLAT = 0.05


@dataclass(frozen=True, eq=False)
class Picture:
    """Places of samples in a plane; axes without a meaning have no names."""

    rows: Ints
    points: Floats
    axes: tuple[str, str]
    made_by: str


def picture(clustering: Clustering, rows: Ints, squares: Floats, places: Floats | None) -> Picture:
    """Return the picture of ``rows``, by the model's squared distances among them or the places of all nodes."""
    coordinates, what = _coordinates(clustering, rows, places)
    if coordinates is not None:
        clusters = np.unique(clustering.labels[rows], return_inverse=True)[1]
        if clusters.max(initial=0) >= MOST_IN_A_PLANE:
            return Picture(rows, laid_flat(coordinates, clusters), ("", ""), f"the {what}, laid flat: {LAID_FLAT}")
        if what == SCORES:
            return Picture(rows, coordinates[:, :2], ("score 1", "score 2"), "the first two scores of the model")
        points = main_axes(coordinates)
        return Picture(rows, points, ("main axis 1", "main axis 2"), f"the two main axes of the {what}")
    points, shares = scaling_components(squares, 2)
    across, up = (f"axis {i + 1} ({100 * share:.0f} % of the scatter)" for i, share in enumerate(shares))
    return Picture(rows, points, (across, up), _made_by(clustering.views))


def _coordinates(clustering: Clustering, rows: Ints, places: Floats | None) -> tuple[Floats | None, str]:
    """Return the coordinates in which clusters were found, and what they are; None where there are distances alone."""
    model = clustering.model
    if getattr(model, "codebook_", np.empty((0, 0))).shape[1] >= 2:
        return np.asarray(model.transform(take_rows(clustering.samples, rows)), dtype=np.float64), SCORES
    embedding = joint_embedding(model)
    if embedding is not None:
        noun = "samples" if places is None else "nodes"
        return embedding[rows], f"joint embedding of the {noun}, in which the model found the clusters"
    if places is not None:
        return places[rows], "spectral embedding of the graph: eigenvectors of its random walk"
    return None, ""


def pictures_of_views(views: tuple[View, ...], rows: Ints, squares: list[Floats]) -> tuple[Picture, ...]:
    """Return a picture of some samples in every view alone, without those that the view lacks."""
    pictures = []
    for view, among in zip(views, squares, strict=True):
        there = np.flatnonzero(~np.isnan(np.diagonal(among)))
        points = scaling_components(among[np.ix_(there, there)], 2)[0]
        pictures.append(Picture(rows[there], points, ("axis 1", "axis 2"), _made_by((view,))))
    return tuple(pictures)


def laid_flat(coordinates: Floats, clusters: Ints) -> Floats:
    """Return points by the linear map that takes the centres of the clusters to a layout that keeps their distances."""
    centers = np.stack([coordinates[clusters == c].mean(axis=0) for c in range(int(clusters.max()) + 1)])
    middle = centers.mean(axis=0)
    layout = planar_layout(euclidean_distances(centers))
    return np.asarray((coordinates - middle) @ (np.linalg.pinv(centers - middle, rcond=FLAT) @ layout))


def main_axes(coordinates: Floats) -> Floats:
    """Return points along the two directions of largest scatter."""
    centred = coordinates - coordinates.mean(axis=0)
    directions = leading(centred.T @ centred, min(2, centred.shape[1]))[1]
    points = np.zeros((len(centred), 2))
    points[:, : directions.shape[1]] = centred @ with_positive_peaks(directions)
    return points


def _made_by(views: tuple[View, ...]) -> str:
    kernels = [kernel for view in views for kernel, _ in view.measure.kernels]
    linear = all(view.kind == "features" for view in views) and all(is_text(kernel, "linear") for kernel in kernels)
    if all(view.kind == "divergences" for view in views):
        return "classical scaling of the divergences"
    if views[0].compared_by == "metric":
        return "classical scaling of the distances"
    if len(views) == 1:
        return "principal components" if linear else "kernel principal components"
    joint = "of all views together, each scaled to the same mean squared distance"
    return f"{'principal' if linear else 'kernel principal'} components {joint}"
