"""Estimators by name, each loaded on first use: using one does not mean waiting for twenty-seven."""

from importlib import import_module

#: The module of every estimator, in this folder.
HOMES = {
    "AffinityPropagation": "comparators.affinity_propagation",
    "CoRegularizedSpectralClustering": "comparators.co_regularized",
    "CoTrainedSpectralClustering": "comparators.co_trained",
    "ConvexMixture": "mixtures.convex_mixture",
    "CorrelationalSpectralClustering": "comparators.correlational",
    "GlobalKernelKMeans": "kmeans.global_kernel_kmeans",
    "GraphCut": "graph.graph_cut",
    "GraphFusionClustering": "graph.graph_fusion",
    "IterativeSVR": "margin.iterative_svr",
    "KMedoids": "comparators.k_medoids",
    "KernelKMeans": "kmeans.kernel_kmeans",
    "KernelSpectralClustering": "spectral.kernel_spectral",
    "MinMaxKMeans": "kmeans.minmax",
    "MinMaxKernelKMeans": "kmeans.minmax",
    "MultiViewConvexMixture": "mixtures.multi_view_convex_mixture",
    "MultiViewEM": "comparators.multi_view_em",
    "MultiViewKMeans": "comparators.multi_view_kmeans",
    "MultiViewKernelKMeans": "kmeans.multi_view_kernel_kmeans",
    "MultiViewKernelSpectralClustering": "spectral.multi_view_kernel_spectral",
    "MultiViewNMF": "comparators.multi_view_nmf",
    "MultiViewSpectralClustering": "spectral.multi_view_spectral",
    "NEMO": "comparators.nemo",
    "NgSpectralClustering": "comparators.ng_spectral",
    "OptimizedKernelKMeans": "comparators.optimized_kernel_kmeans",
    "PifsKMeans": "kmeans.pifs",
    "RatioMultipleKernelClustering": "margin.ratio_clustering",
    "SimilarityNetworkFusion": "comparators.similarity_network_fusion",
}


def estimator_class(name: str) -> type:
    """Return the estimator called ``name``."""
    cls: type = getattr(import_module(f"kernelweave.estimators.{HOMES[name]}"), name)
    return cls
