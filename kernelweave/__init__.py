"""Clustering of data given as kernels, similarities, graphs or several views at once."""

from importlib.metadata import version

from kernelweave.estimators import KernelKMeans
from kernelweave.foundation._errors import (
    ConvergenceWarning,
    DataError,
    KernelError,
    NotPSDWarning,
    ParameterError,
    ViewError,
)

__version__ = version("kernelweave")

__all__ = [
    "ConvergenceWarning",
    "DataError",
    "KernelError",
    "KernelKMeans",
    "NotPSDWarning",
    "ParameterError",
    "ViewError",
    "__version__",
]
