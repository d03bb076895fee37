"""Kernels as operators: a matrix that may never be stored.

spec.fitting.fit_kernel ──▶ FittedKernel ──▶ .operator()  DenseKernel · BlockwiseKernel · FeatureKernel · GraphKernel
                                         └──▶ .cross(new)  the same with new samples as rows
weighted_sum   sums over views, from kernels or from features side by side
transforms     scaled, shifted, centred, unit diagonal, divided by degrees
divergences    what convex mixtures measure instead; similarities, sharpness
"""

from kernelweave.kernels.blockwise import BlockwiseKernel
from kernelweave.kernels.dense import DenseCross, DenseKernel
from kernelweave.kernels.features import FeatureKernel
from kernelweave.kernels.graph import GraphKernel
from kernelweave.kernels.operator import KernelOperator
from kernelweave.kernels.spec.bandwidths import rbf_widths
from kernelweave.kernels.spec.fitting import KERNELS, FittedKernel, Storage, approximate_kernel, fit_kernel
from kernelweave.kernels.transforms import (
    FLAT,
    CentredKernel,
    DegreeKernel,
    ScaledKernel,
    ShiftedKernel,
    UnitDiagonalKernel,
    feature_space_variance,
    inverse_degrees,
    mean_squared_distance,
    unit_distance,
    unit_variance,
)
from kernelweave.kernels.weighted_sum import CompositeKernel, JoinedFeatures, composite, merged_graph

__all__ = [
    "FLAT",
    "KERNELS",
    "BlockwiseKernel",
    "CentredKernel",
    "CompositeKernel",
    "DegreeKernel",
    "DenseCross",
    "DenseKernel",
    "FeatureKernel",
    "FittedKernel",
    "GraphKernel",
    "JoinedFeatures",
    "KernelOperator",
    "ScaledKernel",
    "ShiftedKernel",
    "Storage",
    "UnitDiagonalKernel",
    "approximate_kernel",
    "composite",
    "feature_space_variance",
    "fit_kernel",
    "inverse_degrees",
    "mean_squared_distance",
    "merged_graph",
    "rbf_widths",
    "unit_distance",
    "unit_variance",
]
