"""
Patients who lack a table
=========================

Three simulated omics tables of patients with four subtypes. More and more patients are absent from some of the tables.
Graph fusion uses what is there. It is compared with filling in means and with leaving incomplete patients out.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans

from kernelweave import GraphFusionClustering
from kernelweave.datasets import standardize
from kernelweave.metrics import normalized_mutual_info

N = 240
SUBTYPES = np.repeat(range(4), [90, 70, 50, 30])
TABLES = {"expression": 300, "methylation": 120, "proteins": 40}
SHARES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)
DRAWS = 3
COLOURS = {"graph fusion": "#1b6ca8", "means filled in, k-means": "#e08214", "complete patients, k-means": "#8b94a1"}


def patients(seed=0):
    """Return three tables of the same patients: a tenth of the columns of each tells subtypes apart."""
    rng = np.random.default_rng(seed)
    tables = {}
    for name, width in TABLES.items():
        centres = np.zeros((4, width))
        centres[:, : width // 10 + 4] = rng.normal(0.0, 1.3, (4, width // 10 + 4))
        tables[name] = centres[SUBTYPES] + rng.standard_normal((N, width))
    return tables


def absence(share, seed):
    """Return who is in which table; every patient is in one at least."""
    rng = np.random.default_rng([seed, int(100 * share)])
    observed = rng.random((N, len(TABLES))) >= share
    nowhere = ~observed.any(axis=1)
    observed[nowhere, rng.integers(0, len(TABLES), nowhere.sum())] = True
    return observed


def without_absent(tables, observed):
    """Return the tables with rows of NaN for patients who are not in them."""
    return {name: np.where(observed[:, [v]], X, np.nan) for v, (name, X) in enumerate(tables.items())}


def by_graph_fusion(tables, observed):
    model = GraphFusionClustering(4, check_views=False, random_state=0)
    return model.fit(without_absent(tables, observed)).labels_


def by_means(tables, observed):
    holed = without_absent(tables, observed).values()
    filled = [np.where(np.isnan(X), np.nanmean(X, axis=0), X) for X in holed]
    return KMeans(4, n_init=10, random_state=0).fit(np.hstack([standardize(X) for X in filled])).labels_


def by_complete_patients(tables, observed):
    """Cluster those who are in every table; the others have no cluster, which is a group of its own here."""
    whole = observed.all(axis=1)
    labels = np.full(N, 4)
    if whole.sum() >= 8:
        X = np.hstack([standardize(X[whole]) for X in tables.values()])
        labels[whole] = KMeans(4, n_init=10, random_state=0).fit(X).labels_
    return labels


def draw_grid(axes, observed):
    """Draw who is in which table."""
    axes.imshow(observed[:60].T, aspect="auto", cmap="Blues", vmin=-0.3, vmax=1.4, interpolation="nearest")
    axes.set_yticks(range(3), list(TABLES))
    axes.set_xlabel("patients (the first 60)")
    axes.set_title("30 % of the grid is absent (pale)", fontsize=10)


def draw_curves(axes, tables, n_draws):
    """Draw NMI with the subtypes over the share that is absent, the mean over draws of who is."""
    methods = dict(zip(COLOURS, (by_graph_fusion, by_means, by_complete_patients), strict=True))
    for name, method in methods.items():
        means = []
        for share in SHARES:
            masks = [absence(share, seed) for seed in range(n_draws)]
            means.append(np.mean([normalized_mutual_info(SUBTYPES, method(tables, mask)) for mask in masks]))
        axes.plot(100 * np.array(SHARES), means, "o-", color=COLOURS[name], label=name, markersize=4)
    axes.set_ylim(0.0, 1.03)
    axes.set_xlabel("% of the patient-by-table grid absent")
    axes.set_ylabel("NMI with the subtypes")
    axes.set_title("Clusters of all patients", fontsize=10)
    axes.legend(frameon=False, fontsize=9, loc="lower left")
    axes.spines[["top", "right"]].set_visible(False)


def draw(n_draws=DRAWS):
    """Draw the picture."""
    tables = patients()
    figure = plt.figure(figsize=(9.5, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1.0, 1.2))
    draw_grid(left, absence(0.3, 0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        draw_curves(right, tables, n_draws)
    return figure


if __name__ == "__main__":
    draw()
    plt.show()
