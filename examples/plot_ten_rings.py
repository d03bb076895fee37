"""
Ten rings: the exact search finds them all
==========================================

A hundred starts of kernel k-means and the fast search miss rings, the exact global search finds all ten. It tries every
sample as the start of every new cluster, so the answer depends on no seed.

Pairs of rings are drawn nearer to each other than they lie. ``draw(points=1000)`` takes the data of the source; the
exact search then needs minutes.
"""

import matplotlib.pyplot as plt
import numpy as np

from kernelweave import GlobalKernelKMeans, KernelKMeans
from kernelweave.datasets import make_ten_rings

WIDTH = {"sigma": 1.8}
COLOURS = ("#1b6ca8", "#e08214", "#2e8b57", "#c23b52", "#7b5ea7", "#8c6d31", "#d16ba5", "#4d4d4d", "#9bb019", "#17a3b8")


def models():
    """Return the methods by the titles of their panels."""
    return {
        "kernel k-means, best of 100 starts": KernelKMeans(
            10, kernel_params=WIDTH, init="random", n_init=100, random_state=0
        ),
        "global search, fast": GlobalKernelKMeans(10, kernel_params=WIDTH, search="fast"),
        "global search, exact": GlobalKernelKMeans(10, kernel_params=WIDTH, search="exact"),
    }


def rings_found(y, labels):
    """Count the rings whose points, all of them and no others, form a cluster."""
    rings = [y == ring for ring in np.unique(y)]
    return sum(np.array_equal(labels == labels[ring.argmax()], ring) for ring in rings)


def drawn_like_the_rings(y, labels):
    """Number the clusters by the ring most of their points lie on, so that the panels share their colours."""
    numbers, free = {}, list(range(len(COLOURS)))
    for c in sorted(np.unique(labels), key=lambda c: -np.count_nonzero(labels == c)):
        counts = np.bincount(y[labels == c], minlength=len(COLOURS))
        numbers[c] = max(free, key=lambda ring: counts[ring])
        free.remove(numbers[c])
    return np.array([numbers[c] for c in labels])


def moved_together(X, y):
    """Halve the distances between the pairs of rings, so that the picture is not mostly empty."""
    centres = np.array([X[y // 2 == pair].mean(axis=0) for pair in range(5)])
    return X - 0.5 * centres[y // 2]


def draw(points=400):
    """Draw the three partitions side by side."""
    X, y = make_ten_rings(n_inner=round(0.7 * points), n_outer=points - round(0.7 * points), random_state=0)
    figure = plt.figure(figsize=(10.5, 4.1), layout="constrained")
    panels = figure.subplots(1, 3, sharex=True, sharey=True)
    for axes, (title, model) in zip(panels, models().items(), strict=True):
        labels = drawn_like_the_rings(y, model.fit_predict(X))
        axes.scatter(*moved_together(X, y).T, s=5, linewidths=0, color=np.array(COLOURS)[labels])
        found = rings_found(y, labels)
        axes.set_title(f"{title}\nerror {model.inertia_:.1f}, {found} of 10 rings found", fontsize=10)
        axes.set_aspect("equal")
        axes.set_xticks([])
        axes.set_yticks([])
        axes.spines[:].set_color("#cccccc")
    return figure


if __name__ == "__main__":
    draw()
    plt.show()
