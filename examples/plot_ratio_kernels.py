"""
Weights of kernels by variance and margin
=========================================

Ones and sevens in five views and two of noise: kernel weights and decision values for three values of C.

Run it with ``python examples/plot_ratio_kernels.py [PICTURE]``; the picture goes to ``ratio_kernels.png`` by default.
It takes some ten seconds. Drawing needs matplotlib, which the extra ``plots`` brings.
"""

import sys

import numpy as np
from matplotlib.figure import Figure

from kernelweave import RatioMultipleKernelClustering
from kernelweave.datasets import load_multiview_digits, standardize
from kernelweave.metrics import clustering_accuracy
from kernelweave.plots import DecisionDisplay

PRICES = (0.01, 1.0, 100.0)


def two_digits(first, second):
    """Return the views of two digits with two views of noise, and which digit each sample is."""
    digits = load_multiview_digits()
    chosen = np.isin(digits.target, (first, second))
    rng = np.random.default_rng(0)
    views = {name: standardize(view[chosen]) for name, view in digits.views.items()}
    noise = {f"noise {i}": rng.normal(size=(chosen.sum(), 20)) for i in (1, 2)}
    return {**views, **noise}, digits.target[chosen]


def draw(path):
    """Draw weights and decision values, one row for each C, and save the picture."""
    views, y = two_digits(1, 7)
    figure = Figure(figsize=(9.6, 8.2), layout="constrained")
    rows = figure.subplots(len(PRICES), 2, width_ratios=(1.0, 1.3))
    for C, axes in zip(PRICES, rows, strict=True):
        model = RatioMultipleKernelClustering(C=C, random_state=0).fit(views)
        DecisionDisplay.from_estimator(model, views, labels=model.labels_, axes=axes)
        axes[0].set_title(f"C = {C:g}", fontsize=10)
        axes[1].set_title(f"{clustering_accuracy(y, model.labels_):.1%} agree with the digits", fontsize=10)
    figure.savefig(path, dpi=100, bbox_inches="tight", pad_inches=0.08)


if __name__ == "__main__":
    draw(sys.argv[1] if len(sys.argv) > 1 else "ratio_kernels.png")
