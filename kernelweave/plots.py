"""Pictures of results, in the style of scikit-learn's displays."""

from kernelweave.evaluation.plots import (
    ExemplarDisplay,
    InertiaPathDisplay,
    StartComparisonDisplay,
    ViewWeightsDisplay,
)

__all__ = ["ExemplarDisplay", "InertiaPathDisplay", "StartComparisonDisplay", "ViewWeightsDisplay"]
