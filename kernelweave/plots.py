"""Pictures of results, in the style of scikit-learn's displays."""

from kernelweave.evaluation.plots import (
    ExemplarDisplay,
    ExponentDisplay,
    InertiaPathDisplay,
    KernelMatrixDisplay,
    StartComparisonDisplay,
    ViewWeightsDisplay,
)

__all__ = [
    "ExemplarDisplay",
    "ExponentDisplay",
    "InertiaPathDisplay",
    "KernelMatrixDisplay",
    "StartComparisonDisplay",
    "ViewWeightsDisplay",
]
