"""Pictures of results, in the style of scikit-learn's displays; matplotlib is loaded when one is drawn."""

from kernelweave.evaluation.plots._bad_start import StartComparisonDisplay
from kernelweave.evaluation.plots._decisions import DecisionDisplay
from kernelweave.evaluation.plots._exponents import ExponentDisplay
from kernelweave.evaluation.plots._inertia_path import InertiaPathDisplay
from kernelweave.evaluation.plots._kernel_matrix import KernelMatrixDisplay
from kernelweave.evaluation.plots._mixture import ExemplarDisplay, ViewWeightsDisplay

__all__ = [
    "DecisionDisplay",
    "ExemplarDisplay",
    "ExponentDisplay",
    "InertiaPathDisplay",
    "KernelMatrixDisplay",
    "StartComparisonDisplay",
    "ViewWeightsDisplay",
]
