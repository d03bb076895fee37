"""
A saved model and tomorrow's samples
====================================

The model is fitted today, saved, and loaded tomorrow, perhaps on another machine. A saved model is JSON and plain
arrays: loading it runs no code. Then it assigns samples that it has never seen.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from kernelweave import KernelSpectralClustering, load_model, save_model
from kernelweave.plots import BoundaryDisplay

X, _ = make_moons(500, noise=0.08, random_state=0)
today, tomorrow = X[:400], X[400:]

# %%
# Fit and save. The model was trained on 200 of the 400 samples, so its file is small.
model = KernelSpectralClustering(2, kernel_params={"sigma": 0.15}, n_train_samples=200, random_state=0).fit(today)
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder, "moons.kwm")
    save_model(model, path)
    print(f"{path.name}: {path.stat().st_size / 1024:.0f} kB")
    loaded = load_model(path)

# %%
# The loaded model is the same model.
labels = loaded.predict(tomorrow)
print("same answers:", np.array_equal(labels, model.predict(tomorrow)))

# %%
# What it would answer anywhere in the plane, with the new samples on top.
figure, axes = plt.subplots(figsize=(7.2, 4.6), layout="constrained")
BoundaryDisplay.from_estimator(loaded, today, axes=axes).legend_.remove()
colours = np.array(["#12456d", "#a34b00"])
axes.scatter(*tomorrow.T, s=110, marker="*", color=colours[labels], edgecolors="white", linewidths=0.7)
axes.set(xticks=[], yticks=[], xlabel="", ylabel="")
axes.set_title("Stars: 100 new samples", fontsize=13)
plt.show()
