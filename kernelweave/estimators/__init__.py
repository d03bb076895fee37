"""Thin scikit-learn classes, one file per family: check, build the operator, call the solver, store."""

from kernelweave.estimators._convex_mixture import ConvexMixture
from kernelweave.estimators._global_kernel_kmeans import GlobalKernelKMeans
from kernelweave.estimators._graph_cut import GraphCut
from kernelweave.estimators._iterative_svr import IterativeSVR
from kernelweave.estimators._kernel_kmeans import KernelKMeans
from kernelweave.estimators._kernel_spectral import KernelSpectralClustering
from kernelweave.estimators._minmax import MinMaxKernelKMeans, MinMaxKMeans
from kernelweave.estimators._multi_view_kernel_kmeans import MultiViewKernelKMeans
from kernelweave.estimators._multi_view_kernel_spectral import MultiViewKernelSpectralClustering
from kernelweave.estimators._multi_view_mixture import MultiViewConvexMixture
from kernelweave.estimators._multi_view_spectral import MultiViewSpectralClustering
from kernelweave.estimators._pifs import PifsKMeans
from kernelweave.estimators._ratio_mkc import RatioMultipleKernelClustering

__all__ = [
    "ConvexMixture",
    "GlobalKernelKMeans",
    "GraphCut",
    "IterativeSVR",
    "KernelKMeans",
    "KernelSpectralClustering",
    "MinMaxKMeans",
    "MinMaxKernelKMeans",
    "MultiViewConvexMixture",
    "MultiViewKernelKMeans",
    "MultiViewKernelSpectralClustering",
    "MultiViewSpectralClustering",
    "PifsKMeans",
    "RatioMultipleKernelClustering",
]
