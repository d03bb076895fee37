"""
How many clusters?
==================

The number of clusters is rarely known. Three answers, from the quick one to the careful one: the silhouette of several
numbers, the elbow of a path that global kernel k-means computes in one go, and graph fusion, which compares each number
with data that have no clusters and says how sure it is. They need not agree: the elbow is a quick look, not a proof.
"""

import matplotlib.pyplot as plt
import numpy as np

from kernelweave import GlobalKernelKMeans, GraphFusionClustering, KernelKMeans
from kernelweave.model_selection import choose_n_clusters, suggest_n_clusters

rng = np.random.default_rng(4)
centres = np.array([[0, 0], [4, 0.5], [8, 0], [1.5, 4], [6, 4.2], [3.8, 8]])
X = centres[np.arange(360) % 6] + 0.75 * rng.normal(size=(360, 2))
COUNTS = range(2, 13)

# %%
# Silhouettes of eleven fits.
chosen = choose_n_clusters(KernelKMeans(kernel="linear", n_init=5, random_state=0), X, COUNTS)
print("silhouette:", chosen.n_clusters)

# %%
# One search gives a solution for every number of clusters up to twelve; the elbow of their errors is the answer.
path = GlobalKernelKMeans(12, kernel="linear", search="fast").fit(X)
print("elbow:     ", suggest_n_clusters(path.inertia_path_).n_clusters)

# %%
# Graph fusion needs no range of numbers, and it can also answer that there are no clusters.
fused = GraphFusionClustering(random_state=0).fit(X)
print("fusion:    ", fused.verdict_)

# %%
# The silhouettes, the elbow and the gaps of graph fusion side by side, each with its answer.
answers = {
    "silhouette": (list(COUNTS), chosen.scores, chosen.n_clusters),
    "error of the path": (range(1, 13), path.inertia_path_, suggest_n_clusters(path.inertia_path_).n_clusters),
    "gap to data\nwithout clusters": (*fused.n_clusters_path_.values(), fused.n_clusters_),
}
figure, panels = plt.subplots(1, 3, figsize=(10.0, 3.4), layout="constrained")
for axes, (name, (counts, values, answer)) in zip(panels, answers.items(), strict=True):
    axes.plot(counts, values, "o-", color="#1b6ca8", markersize=4)
    axes.axvline(answer, color="#c25f0c", linewidth=1.5, linestyle=(0, (4, 3)))
    axes.set_title(f"{name}: {answer}", fontsize=13)
    axes.set_xlabel("number of clusters", fontsize=12)
    axes.set_xlim(0.5, 12.5)
    axes.set_yticks([])
    axes.spines[["top", "right"]].set_visible(False)
plt.show()
