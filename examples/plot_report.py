"""
A report for colleagues
=======================

You have clustered your data, and somebody wants to see it. ``write_report`` puts everything on one page of HTML that
needs nothing else: the answer in a sentence, the samples in a plane, what makes every cluster, how each view agrees,
and what may be wrong. Send the file, or open it in any browser.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt

from kernelweave import MultiViewKernelKMeans
from kernelweave.datasets import load_multiview_digits, standardize
from kernelweave.plots import EmbeddingDisplay
from kernelweave.report import write_report

digits = load_multiview_digits(n_classes=4)
views = {name: standardize(digits.views[name]) for name in ("fourier", "pixels", "profiles")}
model = MultiViewKernelKMeans(4, kernel_params={"gamma": "median"}, random_state=0).fit(views)

# %%
# One call writes the page.
with tempfile.TemporaryDirectory() as folder:
    path = write_report(Path(folder, "digits.html"), model, views, labels_true=digits.target, title="Digits 0 to 3")
    print(f"{Path(path).name}: {Path(path).stat().st_size / 1024:.0f} kB, and nothing else is needed")

# %%
# The first picture of the report, drawn by matplotlib.
figure, axes = plt.subplots(figsize=(7.2, 5.0), layout="constrained")
EmbeddingDisplay.from_estimator(model, views, ax=axes)
axes.set_title("Digits 0 to 3 in three views", fontsize=13)
plt.show()
