"""
Words of three languages, by a kernel for strings
=================================================

Not everything is a vector. Here the samples are words, and all we have is a function that compares two of them: the
number of short letter sequences that they share. The matrix of these numbers is a kernel, and kernel k-means needs
nothing else.
"""

import matplotlib.pyplot as plt
import numpy as np

from kernelweave import KernelKMeans
from kernelweave.metrics import clustering_accuracy

WORDS = {
    "Finnish": "kaikki tuulinen maailmassa puutarhassa syksylla kirjoittaa illalla ystavallinen lumessa hiljaisuus "
    "metsassa aurinkoinen rannalla taivaalla jarvessa kesalla talvella keittiossa lukeminen saunassa",
    "Italian": "stazione bellezza ragazzo felicita giornale cucinare montagna notizia ragione canzone famiglia "
    "colazione direzione settimana lezione attenzione bottiglia passione ragazza mattina",
    "English": "thought weather through brother whether nothing whisper thunder daughter neighbour feather another "
    "northern weight rather together wither youth strength farther",
}
words = [word for group in WORDS.values() for word in group.split()]
language = np.repeat(np.arange(3), [len(group.split()) for group in WORDS.values()])


# %%
# Sequences of two and three letters, with the ends of the word marked. Values are scaled so that every word has a
# similarity of 1 with itself.
def pieces(word):
    marked = f"<{word}>"
    return {marked[i : i + n] for n in (2, 3) for i in range(len(marked) - n + 1)}


sets = [pieces(word) for word in words]
shared = np.array([[len(a & b) for b in sets] for a in sets], dtype=float)
kernel = shared / np.sqrt(np.outer(shared.diagonal(), shared.diagonal()))

# %%
# Three clusters of the kernel matrix.
model = KernelKMeans(3, kernel="precomputed", n_init=50, random_state=0).fit(kernel)
accuracy = clustering_accuracy(language, model.labels_)
print(f"{accuracy:.0%} of {len(words)} words are in the cluster of their language")

# %%
# One column per cluster; the colour of a word is its language.
colours = np.array(["#1b6ca8", "#c25f0c", "#2e8b57"])
figure, axes = plt.subplots(figsize=(7.2, 6.2), layout="constrained")
for column, c in enumerate(np.argsort(-np.bincount(model.labels_))):
    members = sorted(np.flatnonzero(model.labels_ == c), key=lambda member: (language[member], words[member]))
    for row, member in enumerate(members):
        axes.text(column, -row, words[member], color=colours[language[member]], fontsize=11, ha="center")
    axes.text(column, 1.4, f"cluster {column + 1}", fontsize=14, ha="center", weight="bold")
axes.set_xlim(-0.5, 2.5)
axes.set_ylim(-np.bincount(model.labels_).max(), 2.5)
axes.set_axis_off()
plt.show()
