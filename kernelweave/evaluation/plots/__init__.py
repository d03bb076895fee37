"""Pictures of results, in the style of scikit-learn's displays; matplotlib is loaded when one is drawn."""

from kernelweave.evaluation.plots._bad_start import StartComparisonDisplay
from kernelweave.evaluation.plots._boundaries import BoundaryDisplay
from kernelweave.evaluation.plots._confusion import ConfusionDisplay
from kernelweave.evaluation.plots._decisions import DecisionDisplay
from kernelweave.evaluation.plots._diagnostics import ObjectivePathDisplay, SilhouetteDisplay
from kernelweave.evaluation.plots._embedding import EmbeddingDisplay
from kernelweave.evaluation.plots._exponents import ExponentDisplay
from kernelweave.evaluation.plots._inertia_path import InertiaPathDisplay
from kernelweave.evaluation.plots._kernel_matrix import KernelMatrixDisplay
from kernelweave.evaluation.plots._mixture import ExemplarDisplay, ViewWeightsDisplay
from kernelweave.evaluation.plots._scores import ScoreDisplay
from kernelweave.evaluation.plots._search import ClusterCountDisplay, SearchTraceDisplay

__all__ = [
    "BoundaryDisplay",
    "ClusterCountDisplay",
    "ConfusionDisplay",
    "DecisionDisplay",
    "EmbeddingDisplay",
    "ExemplarDisplay",
    "ExponentDisplay",
    "InertiaPathDisplay",
    "KernelMatrixDisplay",
    "ObjectivePathDisplay",
    "ScoreDisplay",
    "SearchTraceDisplay",
    "SilhouetteDisplay",
    "StartComparisonDisplay",
    "ViewWeightsDisplay",
]
