"""Thin scikit-learn classes, one file per family: check, build the operator, call the solver, store."""

from typing import TYPE_CHECKING, Any

from kernelweave.estimators.registry import HOMES, estimator_class

if TYPE_CHECKING:
    from kernelweave.estimators.comparators.affinity_propagation import AffinityPropagation
    from kernelweave.estimators.comparators.co_regularized import CoRegularizedSpectralClustering
    from kernelweave.estimators.comparators.co_trained import CoTrainedSpectralClustering
    from kernelweave.estimators.comparators.correlational import CorrelationalSpectralClustering
    from kernelweave.estimators.comparators.k_medoids import KMedoids
    from kernelweave.estimators.comparators.multi_view_em import MultiViewEM
    from kernelweave.estimators.comparators.multi_view_kmeans import MultiViewKMeans
    from kernelweave.estimators.comparators.multi_view_nmf import MultiViewNMF
    from kernelweave.estimators.comparators.nemo import NEMO
    from kernelweave.estimators.comparators.ng_spectral import NgSpectralClustering
    from kernelweave.estimators.comparators.optimized_kernel_kmeans import OptimizedKernelKMeans
    from kernelweave.estimators.comparators.similarity_network_fusion import SimilarityNetworkFusion
    from kernelweave.estimators.graph.graph_cut import GraphCut
    from kernelweave.estimators.graph.graph_fusion import GraphFusionClustering
    from kernelweave.estimators.kmeans.global_kernel_kmeans import GlobalKernelKMeans
    from kernelweave.estimators.kmeans.kernel_kmeans import KernelKMeans
    from kernelweave.estimators.kmeans.minmax import MinMaxKernelKMeans, MinMaxKMeans
    from kernelweave.estimators.kmeans.multi_view_kernel_kmeans import MultiViewKernelKMeans
    from kernelweave.estimators.kmeans.pifs import PifsKMeans
    from kernelweave.estimators.margin.iterative_svr import IterativeSVR
    from kernelweave.estimators.margin.ratio_clustering import RatioMultipleKernelClustering
    from kernelweave.estimators.mixtures.convex_mixture import ConvexMixture
    from kernelweave.estimators.mixtures.multi_view_convex_mixture import MultiViewConvexMixture
    from kernelweave.estimators.spectral.kernel_spectral import KernelSpectralClustering
    from kernelweave.estimators.spectral.multi_view_kernel_spectral import MultiViewKernelSpectralClustering
    from kernelweave.estimators.spectral.multi_view_spectral import MultiViewSpectralClustering

__all__ = [
    "NEMO",
    "AffinityPropagation",
    "CoRegularizedSpectralClustering",
    "CoTrainedSpectralClustering",
    "ConvexMixture",
    "CorrelationalSpectralClustering",
    "GlobalKernelKMeans",
    "GraphCut",
    "GraphFusionClustering",
    "IterativeSVR",
    "KMedoids",
    "KernelKMeans",
    "KernelSpectralClustering",
    "MinMaxKMeans",
    "MinMaxKernelKMeans",
    "MultiViewConvexMixture",
    "MultiViewEM",
    "MultiViewKMeans",
    "MultiViewKernelKMeans",
    "MultiViewKernelSpectralClustering",
    "MultiViewNMF",
    "MultiViewSpectralClustering",
    "NgSpectralClustering",
    "OptimizedKernelKMeans",
    "PifsKMeans",
    "RatioMultipleKernelClustering",
    "SimilarityNetworkFusion",
]


def __getattr__(name: str) -> Any:
    """Load an estimator on first use."""
    if name not in HOMES:
        raise AttributeError(f"module 'kernelweave.estimators' has no attribute {name!r}")
    cls = estimator_class(name)
    globals()[name] = cls
    return cls


def __dir__() -> list[str]:
    return sorted(__all__)
