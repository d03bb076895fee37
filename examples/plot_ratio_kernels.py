"""
Which kernels matter?
=====================

Ones and sevens in five views, beside two views of noise. The ratio of variance to margin gives every kernel a weight;
the picture shows weights and decision values for three values of C.
"""

import matplotlib.pyplot as plt
import numpy as np

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


def draw(prices=PRICES):
    """Draw weights and decision values, one row for each C."""
    views, y = two_digits(1, 7)
    figure = plt.figure(figsize=(9.6, 8.2), layout="constrained")
    rows = figure.subplots(len(prices), 2, width_ratios=(1.0, 1.3))
    for C, axes in zip(prices, rows, strict=True):
        model = RatioMultipleKernelClustering(C=C, random_state=0).fit(views)
        DecisionDisplay.from_estimator(model, views, labels=model.labels_, axes=axes)
        axes[0].set_title(f"C = {C:g}", fontsize=10)
        axes[1].set_title(f"{clustering_accuracy(y, model.labels_):.1%} agree with the digits", fontsize=10)
    return figure


if __name__ == "__main__":
    draw()
    plt.show()
