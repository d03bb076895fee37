"""
Members that stand for their clusters
=====================================

A convex mixture picks a few samples that stand for all others and needs no starting partition. For several views it
learns weights, and views of noise lose theirs.
"""

import matplotlib.pyplot as plt
import numpy as np

from kernelweave import ConvexMixture, MultiViewConvexMixture
from kernelweave.datasets import make_corrupted_views
from kernelweave.plots import ExemplarDisplay, ViewWeightsDisplay

GROUPS = np.array([[0.0, 0.0], [6.0, 0.0], [0.5, 5.5], [6.0, 6.0]])
SPREADS = np.array([0.8, 0.9, 0.7, 1.0])
SIZES = (90, 70, 60, 50)


def groups():
    """Return four round groups of different size and spread."""
    y = np.repeat(np.arange(len(GROUPS)), SIZES)
    return GROUPS[y] + SPREADS[y][:, None] * np.random.default_rng(0).normal(size=(len(y), 2))


def draw():
    """Draw priors and exemplars on the left, view weights on the right."""
    figure = plt.figure(figsize=(10.5, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1.05, 1.0))
    X = groups()
    model = ConvexMixture(4, beta_scale=3.0).fit(X)
    ExemplarDisplay.from_estimator(model, X, ax=left)
    left.set(xticks=[], yticks=[], xlabel="", ylabel="")
    left.set_title(
        f"{np.count_nonzero(model.priors_)} of {len(X)} priors above zero, the largest 4 are exemplars", fontsize=10
    )

    views = make_corrupted_views(4, 2, random_state=0).views
    several = MultiViewConvexMixture(3).fit(views)
    ViewWeightsDisplay.from_estimator(several, ax=right)
    right.set_title("View weights: four views with errors, two full of noise", fontsize=10)
    return figure


if __name__ == "__main__":
    draw()
    plt.show()
