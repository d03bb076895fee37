"""Kernels as operators: a matrix that may never be stored.

factory.fit_kernel ──▶ FittedKernel ──▶ .operator()  DenseKernel · BlockwiseKernel · FeatureKernel · GraphKernel
                                  └──▶ .cross(new)  the same with new samples as rows
CompositeKernel  weighted sum over views        _transforms  scaled, shifted, centred, unit diagonal
algebra          every formula on operators     formulas     what fills a tile
"""

from kernelweave.operators import algebra
from kernelweave.operators._bandwidth import rbf_widths
from kernelweave.operators._base import KernelOperator
from kernelweave.operators._blockwise import BlockwiseKernel
from kernelweave.operators._composite import CompositeKernel, JoinedFeatures, composite, merged_graph
from kernelweave.operators._dense import DenseCross, DenseKernel
from kernelweave.operators._graph import GraphKernel
from kernelweave.operators._lowrank import FeatureKernel
from kernelweave.operators._transforms import (
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
from kernelweave.operators.algebra import as_operator
from kernelweave.operators.factory import KERNELS, FittedKernel, Storage, approximate_kernel, fit_kernel

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
    "algebra",
    "approximate_kernel",
    "as_operator",
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
