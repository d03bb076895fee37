"""
What makes a cluster of wines?
==============================

Wines are clustered by eleven of thirteen measurements. The heat map shows the columns that set the clusters apart. The
two measurements that were left out, and the cultivar, are tested as annotations.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_wine
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernelweave import KernelKMeans
from kernelweave.explain import explain_clusters
from kernelweave.plots import ClusterHeatmapDisplay

LEFT_OUT = ["proline", "hue"]


def draw():
    """Explain the clusters, print it, and draw the columns that set them apart."""
    wine = load_wine(as_frame=True)
    measured = wine.data.drop(columns=LEFT_OUT)
    model = make_pipeline(StandardScaler(), KernelKMeans(3, kernel="linear", random_state=0)).fit(measured)
    others = wine.data[LEFT_OUT].assign(cultivar=wine.target_names[wine.target])
    explanation = explain_clusters(model, measured, annotations=others)
    print(explanation.summary())
    figure = plt.figure(figsize=(7.0, 4.2), layout="constrained")
    ClusterHeatmapDisplay.from_explanation(explanation, ax=figure.subplots())
    return figure


if __name__ == "__main__":
    draw()
    plt.show()
