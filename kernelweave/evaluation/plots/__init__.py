"""Pictures of results, in the style of scikit-learn's displays; matplotlib is loaded when one is drawn."""

from kernelweave.evaluation.plots.boundaries import BoundaryDisplay
from kernelweave.evaluation.plots.cluster_counts import ClusterCountDisplay
from kernelweave.evaluation.plots.cluster_heatmap import ClusterHeatmapDisplay
from kernelweave.evaluation.plots.confusion import ConfusionDisplay
from kernelweave.evaluation.plots.decisions import DecisionDisplay
from kernelweave.evaluation.plots.diagnostics import ObjectivePathDisplay, SilhouetteDisplay
from kernelweave.evaluation.plots.embedding import EmbeddingDisplay
from kernelweave.evaluation.plots.exemplars import ExemplarDisplay
from kernelweave.evaluation.plots.exponents import ExponentDisplay
from kernelweave.evaluation.plots.inertia_path import InertiaPathDisplay
from kernelweave.evaluation.plots.kernel_matrix import KernelMatrixDisplay
from kernelweave.evaluation.plots.scores import ScoreDisplay
from kernelweave.evaluation.plots.search_trace import SearchTraceDisplay
from kernelweave.evaluation.plots.start_comparison import StartComparisonDisplay
from kernelweave.evaluation.plots.view_weights import ViewWeightsDisplay

__all__ = [
    "BoundaryDisplay",
    "ClusterCountDisplay",
    "ClusterHeatmapDisplay",
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
