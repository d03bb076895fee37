"""
Pages with words and links
==========================

Web pages have words, and they link to each other. Either of the two is a rather poor guide to what a page is about:
words are few, and some links lead anywhere. Together they tell more.

The pages are synthetic: four topics, two dozen words on every page, and twelve links per page, of which a third stays
within the topic on purpose. Both tables are sparse and stay sparse.
"""

import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse as sp

from kernelweave import GraphFusionClustering
from kernelweave.metrics import normalized_mutual_info

TOPICS = {
    "sports": ["match", "team", "goal", "coach", "league", "season", "player", "stadium"],
    "cooking": ["oven", "flour", "salt", "butter", "recipe", "sauce", "garlic", "dough"],
    "astronomy": ["orbit", "planet", "galaxy", "comet", "lens", "moon", "star", "probe"],
    "law": ["court", "judge", "appeal", "clause", "witness", "verdict", "trial", "statute"],
}
COMMON = ["the", "and", "today", "people", "time", "new", "more", "great", "best", "first", "last", "home"]
N_PAGES = 400

rng = np.random.default_rng(3)
topic = rng.integers(len(TOPICS), size=N_PAGES)

# %%
# Counts of words: most words of a page are common ones, a few belong to its topic, and some to another.
vocabulary = [word for words in TOPICS.values() for word in words] + COMMON
chances = np.full((len(TOPICS), len(vocabulary)), 1.0)
for row in range(len(TOPICS)):
    chances[row, 8 * row : 8 * row + 8] = 5.0
chances[:, -len(COMMON) :] = 6.0
chances /= chances.sum(axis=1, keepdims=True)
counts = sp.csr_array(np.array([rng.multinomial(24, chances[t]) for t in topic], dtype=float))

# %%
# Links: a row says which pages a page is linked with. A third leads to the same topic, the others anywhere.
links = sp.lil_array((N_PAGES, N_PAGES))
for page in range(N_PAGES):
    own = np.flatnonzero(topic == topic[page])
    for target in (*rng.choice(own, 4), *rng.integers(N_PAGES, size=8)):
        if target != page:
            links[page, target] = 1.0
links = sp.csr_array(links)
links = sp.csr_array(links.maximum(links.T))

# %%
# Words alone, links alone, and both.
settings = {"check_views": False, "random_state": 0}
models = {
    "words": GraphFusionClustering(4, **settings).fit(counts),
    "links": GraphFusionClustering(4, **settings).fit(links),
    "both": GraphFusionClustering(4, **settings).fit({"words": counts, "links": links}),
}
scores = {name: normalized_mutual_info(topic, model.labels_) for name, model in models.items()}
print({name: round(score, 2) for name, score in scores.items()})

# %%
# The pages in the plane of the fused graph, with the words that are more frequent in a cluster than elsewhere.
fused = models["both"]
centred = fused.embedding_ - fused.embedding_.mean(axis=0)
plane = centred @ np.linalg.svd(centred, full_matrices=False)[2][:2].T
dense = counts.toarray()
colours = np.array(["#1b6ca8", "#c25f0c", "#2e8b57", "#7b5ea7"])
figure, axes = plt.subplots(figsize=(7.2, 5.0), layout="constrained")
axes.scatter(*plane.T, s=14, linewidths=0, alpha=0.55, color=colours[fused.labels_])
for c in range(4):
    inside = fused.labels_ == c
    surplus = dense[inside].mean(axis=0) - dense[~inside].mean(axis=0)
    typical = "\n".join(vocabulary[i] for i in np.argsort(-surplus)[:3])
    place = np.median(plane[inside], axis=0)
    box = {"boxstyle": "round", "facecolor": "white", "edgecolor": colours[c]}
    axes.annotate(typical, place, ha="center", va="center", fontsize=13, color=colours[c], bbox=box)
axes.set_title("NMI: " + ", ".join(f"{name} {score:.2f}" for name, score in scores.items()), fontsize=14)
axes.set_xticks([])
axes.set_yticks([])
axes.margins(0.12)
axes.spines[:].set_color("#cccccc")
plt.show()
