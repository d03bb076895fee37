"""Thin scikit-learn classes, one file per family: check, build the operator, call the solver, store."""

from kernelweave.estimators._affinity import AffinityPropagation
from kernelweave.estimators._co_regularized import CoRegularizedSpectralClustering
from kernelweave.estimators._co_trained import CoTrainedSpectralClustering
from kernelweave.estimators._convex_mixture import ConvexMixture
from kernelweave.estimators._correlational import CorrelationalSpectralClustering
from kernelweave.estimators._global_kernel_kmeans import GlobalKernelKMeans
from kernelweave.estimators._graph_cut import GraphCut
from kernelweave.estimators._iterative_svr import IterativeSVR
from kernelweave.estimators._kernel_kmeans import KernelKMeans
from kernelweave.estimators._kernel_spectral import KernelSpectralClustering
from kernelweave.estimators._kmedoids import KMedoids
from kernelweave.estimators._minmax import MinMaxKernelKMeans, MinMaxKMeans
from kernelweave.estimators._multi_view_em import MultiViewEM
from kernelweave.estimators._multi_view_kernel_kmeans import MultiViewKernelKMeans
from kernelweave.estimators._multi_view_kernel_spectral import MultiViewKernelSpectralClustering
from kernelweave.estimators._multi_view_kmeans import MultiViewKMeans
from kernelweave.estimators._multi_view_mixture import MultiViewConvexMixture
from kernelweave.estimators._multi_view_nmf import MultiViewNMF
from kernelweave.estimators._multi_view_spectral import MultiViewSpectralClustering
from kernelweave.estimators._ng_spectral import NgSpectralClustering
from kernelweave.estimators._optimized_kernel_kmeans import OptimizedKernelKMeans
from kernelweave.estimators._pifs import PifsKMeans
from kernelweave.estimators._ratio_mkc import RatioMultipleKernelClustering

__all__ = [
    "AffinityPropagation",
    "CoRegularizedSpectralClustering",
    "CoTrainedSpectralClustering",
    "ConvexMixture",
    "CorrelationalSpectralClustering",
    "GlobalKernelKMeans",
    "GraphCut",
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
]
