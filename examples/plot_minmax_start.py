"""
A bad start of k-means
======================

Two centres share a group, and one centre has two groups. k-means stays there. MinMax k-means gives clusters of large
variance more weight and finds the groups.
"""

import matplotlib.pyplot as plt
import numpy as np

from kernelweave.plots import StartComparisonDisplay

GROUPS = np.array([[0.0, 0.0], [0.4, 5.0], [5.2, 6.6], [9.0, 3.6], [8.2, -0.6]])
SPREADS = np.array([0.75, 0.7, 0.7, 0.65, 0.7])


def groups():
    """Return five round groups of 80 points."""
    y = np.repeat(np.arange(len(GROUPS)), 80)
    return GROUPS[y] + SPREADS[y][:, None] * np.random.default_rng(0).normal(size=(len(y), 2))


def bad_start():
    """Return two centres in the first group, one between the last two, and one in each of the others."""
    return np.array([[-0.6, -0.3], [0.7, 0.4], [0.9, 4.6], [4.7, 6.2], [8.2, 1.6]])


def draw():
    """Draw the start and both results side by side."""
    figure = plt.figure(figsize=(10.5, 4.0), layout="constrained")
    panels = figure.subplots(1, 3, sharex=True, sharey=True)
    StartComparisonDisplay.from_start(groups(), bad_start(), axes=panels)
    for axes in panels:
        axes.set(xticks=[], yticks=[], xlabel="", ylabel="")
    return figure


if __name__ == "__main__":
    draw()
    plt.show()
