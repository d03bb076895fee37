"""Pictures of results, in the style of scikit-learn's displays."""

from kernelweave.evaluation.plots import InertiaPathDisplay, StartComparisonDisplay

__all__ = ["InertiaPathDisplay", "StartComparisonDisplay"]
