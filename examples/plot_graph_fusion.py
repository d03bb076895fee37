"""
Which groups, and how many?
===========================

Four kinds of customers in three tables, two moons, and patients without groups. The number of clusters is not given:
graph fusion finds it, or says that there are none.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes, make_blobs, make_moons

from kernelweave import GraphFusionClustering

SIZES = [160, 120, 80, 40]
COLOURS = np.array(["#1b6ca8", "#e08214", "#2e8b57", "#7b5ea7"])
NONE = "#8b94a1"


def customers():
    """Return three tables of the same customers, of four kinds."""
    tables = {"orders": (6, 3), "visits": (12, 5), "survey": (5, 5)}
    return {
        name: make_blobs(SIZES, n_columns, cluster_std=spread, shuffle=False, random_state=seed)[0]
        for seed, (name, (n_columns, spread)) in enumerate(tables.items())
    }


def in_a_plane(embedding):
    """Return the two directions in which the rows of an embedding differ most."""
    centred = embedding - embedding.mean(axis=0)
    _, _, directions = np.linalg.svd(centred, full_matrices=False)
    return centred @ directions[:2].T


def draw_gaps(axes, models):
    """Draw the gap over the number of clusters, a ring around the number chosen."""
    for (name, model), colour in zip(models.items(), (COLOURS[0], NONE), strict=True):
        path = model.n_clusters_path_
        counts, gaps = (path[key][path["n_clusters"] <= 20] for key in ("n_clusters", "gap"))
        axes.plot(counts, gaps, "o-", color=colour, markersize=3.5, linewidth=1.3, label=name)
        chosen = int(np.flatnonzero(counts == model.n_clusters_)[0])
        axes.plot(counts[chosen], gaps[chosen], "o", markersize=11, fillstyle="none", color="#c23b52")
        found = f"{model.n_clusters_} clusters" if model.n_clusters_ > 1 else "no clusters"
        axes.annotate(found, (counts[chosen], gaps[chosen]), (9, 7), textcoords="offset points", color="#c23b52")
    axes.set_xticks(range(2, 21, 2))
    axes.margins(y=0.13)
    axes.set_xlabel("number of clusters")
    axes.set_ylabel("gap to data without clusters")
    axes.legend(frameon=False, fontsize=9)
    axes.set_title("How far each number stands out", fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)


def draw_points(axes, points, labels, title):
    """Draw samples in a plane, coloured by cluster."""
    axes.scatter(*points.T, s=9, linewidths=0, color=COLOURS[labels])
    axes.set_title(title, fontsize=10)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines[:].set_color("#cccccc")


def draw():
    """Draw gaps, the embedding of the fused graph and the moons."""
    views = customers()
    fused = GraphFusionClustering(random_state=0).fit(views)
    patients = GraphFusionClustering(random_state=0).fit(load_diabetes().data)
    moons, _ = make_moons(400, noise=0.05, random_state=0)
    curved = GraphFusionClustering(random_state=0).fit(moons)
    figure = plt.figure(figsize=(12.6, 3.9), layout="constrained")
    gaps, embedding, plane = figure.subplots(1, 3)
    draw_gaps(gaps, {"customers, three tables": fused, "diabetes patients, one table": patients})
    title = f"Fused graph of the three tables: {fused.n_clusters_} clusters"
    draw_points(embedding, in_a_plane(fused.embedding_), fused.labels_, title)
    draw_points(plane, moons, curved.labels_, f"Two moons: {curved.n_clusters_} clusters")
    plane.set_ylim(-1.1, 1.6)
    return figure


if __name__ == "__main__":
    draw()
    plt.show()
