"""
What makes a cluster of wines
=============================

Wines are clustered by eleven of thirteen measurements. The heat map shows the columns that set the clusters apart; the
two measurements that were left out, and the cultivar, are tested as annotations.

Run it with ``python examples/plot_explain_wines.py [PICTURE]``; the picture goes to ``wines.png`` by default. Drawing
needs matplotlib, which the extra ``plots`` brings.
"""

import sys

from matplotlib.figure import Figure
from sklearn.datasets import load_wine
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernelweave import KernelKMeans
from kernelweave.explain import explain_clusters
from kernelweave.plots import ClusterHeatmapDisplay

LEFT_OUT = ["proline", "hue"]


def main(picture="wines.png"):
    """Explain the clusters, print it, and draw the columns that set them apart."""
    wine = load_wine(as_frame=True)
    measured = wine.data.drop(columns=LEFT_OUT)
    model = make_pipeline(StandardScaler(), KernelKMeans(3, kernel="linear", random_state=0)).fit(measured)
    others = wine.data[LEFT_OUT].assign(cultivar=wine.target_names[wine.target])
    explanation = explain_clusters(model, measured, annotations=others)
    print(explanation.summary())
    figure = Figure(figsize=(7.0, 4.2), layout="constrained")
    ClusterHeatmapDisplay.from_explanation(explanation, ax=figure.subplots())
    figure.savefig(picture, dpi=140)


if __name__ == "__main__":
    main(*sys.argv[1:])
