"""
Cutting a mesh into parts
=========================

A simulation runs on eight processors, and its mesh has to be shared out: few edges between the parts, because every
edge that is cut costs communication, and no part that is tiny. That is a normalized cut of a sparse graph. ``GraphCut``
never makes the matrix dense.
"""

import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse as sp
from scipy.spatial import Delaunay

from kernelweave import GraphCut
from kernelweave.metrics import normalized_cut

# %%
# A plate with two holes, as triangles between random points.
rng = np.random.default_rng(0)
points = rng.uniform(0.0, [2.0, 1.0], (2600, 2))
holes = (np.array([0.55, 0.5]), 0.25), (np.array([1.45, 0.5]), 0.18)
for centre, radius in holes:
    points = points[np.linalg.norm(points - centre, axis=1) > radius]
triangles = Delaunay(points).simplices
middles = points[triangles].mean(axis=1)
for centre, radius in holes:
    inside = np.linalg.norm(middles - centre, axis=1) < radius
    triangles = triangles[~inside]
    middles = middles[~inside]

edges = np.vstack([triangles[:, [0, 1]], triangles[:, [1, 2]], triangles[:, [2, 0]]])
edges = np.unique(np.sort(edges, axis=1), axis=0)
mesh = sp.coo_array((np.ones(len(edges)), edges.T), shape=(len(points), len(points)))
mesh = sp.csr_array(mesh + mesh.T)

# %%
# Eight parts. The spectral start gives parts of more even sizes than the default search does here.
model = GraphCut(8, init="spectral", random_state=0).fit(mesh)
crossing = model.labels_[edges[:, 0]] != model.labels_[edges[:, 1]]
sizes = np.bincount(model.labels_)
print(f"{len(points)} nodes, {len(edges)} edges, {crossing.sum()} of them cut ({crossing.mean():.1%})")
print("sizes:", sizes.tolist(), " normalized cut:", round(normalized_cut(mesh, model.labels_), 3))

# %%
# Triangles in the colour of their part; those whose corners lie in different parts stay white.
corners = model.labels_[triangles]
one_part = (corners == corners[:, :1]).all(axis=1)
figure, axes = plt.subplots(figsize=(7.2, 4.2), layout="constrained")
axes.tripcolor(*points.T, triangles[one_part], facecolors=corners[one_part, 0], cmap="Set2", edgecolors="none")
axes.triplot(*points.T, triangles, linewidth=0.25, color="#26303b")
axes.set_title(f"{len(points):,} nodes in 8 parts, {crossing.mean():.1%} of the edges cut", fontsize=13)
axes.set_aspect("equal")
axes.set_axis_off()
plt.show()
