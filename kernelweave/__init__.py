"""Clustering of data given as kernels, similarities, graphs or several views at once.

Names are loaded when they are first used, so that the command line answers at once.
"""

from importlib import import_module
from importlib.metadata import version as _version
from typing import TYPE_CHECKING, Any

from kernelweave.foundation.registry import provide as _provide

if TYPE_CHECKING:
    from kernelweave import datasets, explain, metrics, model_selection, plots, preprocessing, report
    from kernelweave.estimators import (
        NEMO,
        AffinityPropagation,
        ConvexMixture,
        CoRegularizedSpectralClustering,
        CorrelationalSpectralClustering,
        CoTrainedSpectralClustering,
        GlobalKernelKMeans,
        GraphCut,
        GraphFusionClustering,
        IterativeSVR,
        KernelKMeans,
        KernelSpectralClustering,
        KMedoids,
        MinMaxKernelKMeans,
        MinMaxKMeans,
        MultiViewConvexMixture,
        MultiViewEM,
        MultiViewKernelKMeans,
        MultiViewKernelSpectralClustering,
        MultiViewKMeans,
        MultiViewNMF,
        MultiViewSpectralClustering,
        NgSpectralClustering,
        OptimizedKernelKMeans,
        PifsKMeans,
        RatioMultipleKernelClustering,
        SimilarityNetworkFusion,
    )
    from kernelweave.evaluation.plan import Plan, plan
    from kernelweave.foundation.config import config_context, get_config
    from kernelweave.foundation.errors import (
        ConvergenceWarning,
        DataError,
        KernelError,
        NotPSDWarning,
        ParameterError,
        ViewError,
        ViewWarning,
        WorkersLostError,
    )
    from kernelweave.inputs.arrays.alignment import align
    from kernelweave.persistence.models import load_model, read_notes, save_model

__version__ = _version("kernelweave")

__all__ = [
    "NEMO",
    "AffinityPropagation",
    "CoRegularizedSpectralClustering",
    "CoTrainedSpectralClustering",
    "ConvergenceWarning",
    "ConvexMixture",
    "CorrelationalSpectralClustering",
    "DataError",
    "GlobalKernelKMeans",
    "GraphCut",
    "GraphFusionClustering",
    "IterativeSVR",
    "KMedoids",
    "KernelError",
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
    "NotPSDWarning",
    "OptimizedKernelKMeans",
    "ParameterError",
    "PifsKMeans",
    "Plan",
    "RatioMultipleKernelClustering",
    "SimilarityNetworkFusion",
    "ViewError",
    "ViewWarning",
    "WorkersLostError",
    "__version__",
    "align",
    "config_context",
    "datasets",
    "explain",
    "get_config",
    "load_model",
    "metrics",
    "model_selection",
    "plan",
    "plots",
    "preprocessing",
    "read_notes",
    "report",
    "save_model",
]

# What lower layers use of upper ones; nothing is imported before it is asked for.
_provide("summary of a model as HTML", "kernelweave.evaluation.report:summary_html")
_provide("clock of compilation", "kernelweave.backends.compiled.clock:CompileClock")

_ERRORS = "kernelweave.foundation.errors"
_HOMES = dict.fromkeys(
    (
        "ConvergenceWarning",
        "DataError",
        "KernelError",
        "NotPSDWarning",
        "ParameterError",
        "ViewError",
        "ViewWarning",
        "WorkersLostError",
    ),
    _ERRORS,
)
_HOMES |= dict.fromkeys(("config_context", "get_config"), "kernelweave.foundation.config")
_HOMES["align"] = "kernelweave.inputs.arrays.alignment"
_HOMES |= dict.fromkeys(("load_model", "read_notes", "save_model"), "kernelweave.persistence.models")
_HOMES |= dict.fromkeys(("Plan", "plan"), "kernelweave.evaluation.plan")
_MODULES = ("datasets", "explain", "metrics", "model_selection", "plots", "preprocessing", "report")


def __getattr__(name: str) -> Any:
    """Load a public name on first use."""
    if name in _MODULES:
        return import_module(f"kernelweave.{name}")
    if name not in __all__:
        raise AttributeError(f"module 'kernelweave' has no attribute {name!r}")
    value = getattr(import_module(_HOMES.get(name, "kernelweave.estimators")), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
