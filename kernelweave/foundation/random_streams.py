"""One seed in, independent streams out, one family of streams for each purpose.

What is drawn for one purpose never shares its randomness with what is drawn for another: more restarts, another
sample to train on, or the choice of an exponent change nothing else.
"""

import numpy as np
from sklearn.utils import check_random_state

RandomState = int | np.random.RandomState | None

#: What randomness is used for, and the key that keeps its streams apart. Keys are never reused: a model fitted again
#: with the same seed must draw the same numbers. Starts have no key, as in the first versions of the library.
PURPOSES: dict[str, tuple[int, ...]] = {
    "starts": (),  # the start of each run, also of those drawn beside a global search
    "training samples": (1, 0),  # the samples a kernel spectral model is trained on
    "search samples": (2, 0),  # the samples a global search is restricted to
    "resampling": (4, 0),  # subsets of samples for the choice of an exponent
    "initialization": (5, 0),  # factors or messages that are not starts of runs
    "rounding": (6, 0),  # k-means on an embedding or on a consensus, after a run
    "displayed samples": (7, 0),  # the samples shown in a plot or a report
    "judged samples": (8, 0),  # the samples a criterion is computed on
    "reference data": (9, 0),  # data without clusters, for comparison
    "annealing": (10, 0),  # moves of a parameter search
    "view checks": (11, 0),  # what single views have to do with joint clusters
    "cells": (12, 0),  # where an approximate search for neighbours looks
    "recall": (13, 0),  # the samples whose neighbours are compared with the exact ones
    "permuted tables": (17, 0),  # tables of counts with the margins of one that was observed
}


def streams(random_state: RandomState, count: int, purpose: str = "starts") -> list[np.random.Generator]:
    """Return ``count`` generators; the i-th depends on the seed, the purpose and on i alone.

    A restart therefore gives the same outcome in any order, on any worker, and with more restarts around it.
    """
    root = int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
    key = PURPOSES[purpose]
    return [np.random.default_rng(np.random.SeedSequence(root, spawn_key=(*key, i))) for i in range(count)]
