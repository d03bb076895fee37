"""
Three views that help each other
================================

Two clusters are seen in three views. Kernel spectral clustering of each view gives one answer per view; coupled with
the others, every view gives nearly the same one, for every point of its plane.
"""

import matplotlib.pyplot as plt
import numpy as np

from kernelweave import KernelSpectralClustering, MultiViewKernelSpectralClustering
from kernelweave.datasets import make_mvksc_synth2
from kernelweave.metrics import normalized_mutual_info
from kernelweave.plots import BoundaryDisplay, ScoreDisplay

WIDTH = {"sigma": float(np.sqrt(0.1))}  # as in figures 2 and 3 of the source


def draw(n_samples=1000):
    """Draw boundaries and scores, without the other views above and with them below."""
    data = make_mvksc_synth2(n_samples, random_state=0)
    classes = np.where(data.target == 1, "narrow class", "wide class")
    figure = plt.figure(figsize=(13.2, 6.6), layout="constrained")
    alone, together = figure.subplots(2, 4)
    for ax, (name, view) in zip(alone, data.views.items(), strict=False):
        model = KernelSpectralClustering(2, kernel_params=WIDTH).fit(view)
        display = BoundaryDisplay.from_estimator(model, view, labels=classes, axes=ax)
        if name != "view_2":  # one legend, beside the last of these panels
            display.legend_.remove()
        ax.set_title(f"{name} alone: NMI {normalized_mutual_info(data.target, model.labels_):.2f}", fontsize=10)
    ScoreDisplay.from_estimator(model, axes=alone[3])
    alone[3].set_title("scores in view_2 alone", fontsize=10)
    model = MultiViewKernelSpectralClustering(2, kernel_params=WIDTH).fit(data.views)
    BoundaryDisplay.from_estimator(model, data.views, labels=classes, axes=together[:3]).legend_.remove()
    for name, ax in zip(data.views, together, strict=False):
        ax.set_title(f"{name}, coupled with the others", fontsize=10)
    ScoreDisplay.from_estimator(model, axes=together[3])
    nmi = normalized_mutual_info(data.target, model.labels_)
    together[3].set_title(f"mean scores of all views: NMI {nmi:.2f}", fontsize=10)
    return figure


if __name__ == "__main__":
    draw()
    plt.show()
