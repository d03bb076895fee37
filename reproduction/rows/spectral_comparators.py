"""The other methods of MVKSC tables 2 to 5, OKKC, Co-reg (P and C) and MVNMF, with scores for BLF and BAF to judge.

The paper tunes them by the same criteria and leaves open what BLF and BAF, made for the scores of KSC, are computed
from where a method has none. Here it is what their k-means works on:

scores      its leading k - 1 principal components: of the weighted sum of kernels for OKKC, of the embedding for
            Co-reg, of the common matrix with rows of unit length for MVNMF
row sums    those of the kernel matrix behind these points, which the line fit of two clusters needs
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from kernelweave.foundation.array_types import Floats, Ints, Matrix

COMPARATORS = ("okkc", "co-reg-p", "co-reg-c", "mvnmf")
NMF_STARTS = 2


class Compared(NamedTuple):
    """Clusters, and the scores and row sums they are judged by."""

    labels: "Ints"
    scores: "Floats"
    degrees: "Floats"


def compared(
    method: str,
    views: "Sequence[Matrix]",
    kernels: "Sequence[Floats]",
    n_clusters: int,
    strengths: Sequence[float],
) -> Compared:
    """Cluster by one of the methods; kernels and strengths are used by those that have them."""
    if method == "mvnmf":
        return factored(views, n_clusters, strengths)
    if method == "okkc":
        return optimized(kernels, n_clusters)
    return co_regularized(kernels, n_clusters, strengths, "pairwise" if method == "co-reg-p" else "centroid")


def optimized(kernels: "Sequence[Floats]", n_clusters: int) -> Compared:
    """Cluster by OKKC."""
    from kernelweave import OptimizedKernelKMeans
    from kernelweave.evaluation.principal import centred, principal_components

    model = OptimizedKernelKMeans(n_clusters, kernel="precomputed", random_state=0).fit(list(kernels))
    mixed = sum(weight * to_unit_scatter(K) for weight, K in zip(model.kernel_coefficients_, kernels, strict=True))
    return Compared(
        model.labels_, principal_components(centred(mixed), n_clusters - 1)[0], np.asarray(mixed.sum(axis=1))
    )


def co_regularized(kernels: "Sequence[Floats]", n_clusters: int, strengths: Sequence[float], variant: str) -> Compared:
    """Cluster by co-regularised spectral clustering."""
    from kernelweave import CoRegularizedSpectralClustering

    model = CoRegularizedSpectralClustering(
        n_clusters, variant=variant, regularization=list(strengths), kernel="precomputed", random_state=0
    ).fit(list(kernels))
    return Compared(
        model.labels_,
        principal_scores(model.embedding_, n_clusters - 1),
        np.sum([K.sum(axis=1) for K in kernels], axis=0),
    )


def factored(views: "Sequence[Matrix]", n_clusters: int, strengths: Sequence[float]) -> Compared:
    """Cluster by multi-view NMF; features with negative values are shifted to start at zero."""
    from sklearn.preprocessing import normalize

    from kernelweave import MultiViewNMF

    model = MultiViewNMF(n_clusters, regularization=list(strengths), n_init=NMF_STARTS, random_state=0).fit(
        [not_negative(view) for view in views]
    )
    points = normalize(model.consensus_)
    return Compared(model.labels_, principal_scores(points, n_clusters - 1), points @ points.sum(axis=0))


def not_negative(view: "Matrix") -> "Matrix":
    """Shift columns with negative values so that they begin at zero; a result that is mostly zero is sparse."""
    from scipy import sparse

    if sparse.issparse(view):
        return view
    shifted = view - np.minimum(view.min(axis=0), 0.0)
    return sparse.csr_array(shifted) if np.mean(shifted != 0) < 0.1 else shifted


def to_unit_scatter(K: "Floats") -> "Floats":
    """Divide a kernel matrix by the mean squared distance of the samples from their mean."""
    return K / (np.trace(K) / len(K) - K.mean())


def principal_scores(points: "Floats", count: int) -> "Floats":
    """Return the leading principal components of points, one column each."""
    U, values, _ = np.linalg.svd(points - points.mean(axis=0), full_matrices=False)
    scores: Any = U[:, :count] * values[:count]
    return np.asarray(scores)
