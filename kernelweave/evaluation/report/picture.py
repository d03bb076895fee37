"""Where to draw the samples in a plane.

Plane       the two main axes of the squared distances (classical scaling): kernel PCA, and PCA where the kernel is
            linear; the first two eigenvectors of a graph; the first two scores of kernel spectral clustering
"""

from dataclasses import dataclass

import numpy as np

from kernelweave.evaluation.describe.clustering import Clustering
from kernelweave.evaluation.describe.views import View, is_text
from kernelweave.evaluation.principal import scaling_components
from kernelweave.foundation.array_types import Floats, Ints
from kernelweave.inputs import take_rows


@dataclass(frozen=True, eq=False)
class Picture:
    """Places of samples in a plane."""

    rows: Ints
    points: Floats
    axes: tuple[str, str]
    made_by: str


def picture(clustering: Clustering, rows: Ints, squares: Floats, places: Floats | None) -> Picture:
    """Return the picture of ``rows``, by the model's squared distances among them or the places of all nodes."""
    model = clustering.model
    if getattr(model, "codebook_", np.empty((0, 0))).shape[1] >= 2:
        points = np.asarray(model.transform(take_rows(clustering.samples, rows)))[:, :2]
        return Picture(rows, points, ("score 1", "score 2"), "the first two scores of the model")
    if places is not None:
        axes = ("eigenvector 1", "eigenvector 2")
        made_by = "spectral embedding: two eigenvectors of the graph's random walk"
        return Picture(rows, places[rows, :2], axes, made_by)
    points, shares = scaling_components(squares, 2)
    across, up = (f"axis {i + 1} ({100 * share:.0f} % of the scatter)" for i, share in enumerate(shares))
    return Picture(rows, points, (across, up), _made_by(clustering.views))


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
