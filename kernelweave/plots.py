"""Pictures of results, in the style of scikit-learn's displays."""

from kernelweave.evaluation.plots import (
    DecisionDisplay,
    ExemplarDisplay,
    ExponentDisplay,
    InertiaPathDisplay,
    KernelMatrixDisplay,
    StartComparisonDisplay,
    ViewWeightsDisplay,
)

__all__ = [
    "DecisionDisplay",
    "ExemplarDisplay",
    "ExponentDisplay",
    "InertiaPathDisplay",
    "KernelMatrixDisplay",
    "StartComparisonDisplay",
    "ViewWeightsDisplay",
]
