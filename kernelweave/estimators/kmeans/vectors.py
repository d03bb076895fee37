"""Starts of k-means on feature vectors, which may be the centres that a user passes."""

from typing import Any

from kernelweave.estimators.shared.models import nearest_centers
from kernelweave.foundation.array_types import Floats
from kernelweave.foundation.random_streams import streams
from kernelweave.inputs import read_centers
from kernelweave.kernels.features import FeatureKernel

#: Names that ``init`` may have.
VECTOR_INITS = ("random", "k-means++")


def center_starts(
    init: Any, n_init: int, random_state: Any, op: FeatureKernel, offset: Floats, n_clusters: int
) -> list[Any]:
    """Return what each run starts from: a generator for each draw of a named ``init``, or labels by its centres."""
    if isinstance(init, str):
        return list(streams(random_state, n_init))
    centers = read_centers(init, n_clusters, op.Phi.shape[1])
    return [nearest_centers(op, centers - offset, None)]
