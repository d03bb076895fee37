"""Generated kernels, partitions, weights and views for tests of laws: small, and degenerate now and then.

Numbers come from a drawn seed, shapes and kinds are drawn themselves: a failing case shrinks to few samples of
the plainest kind. Kinds with duplicates, constant features and zero rows are drawn as often as general position.
"""

import numpy as np
from hypothesis import strategies as st

KINDS = ("general", "grid", "duplicates", "constant feature", "zero row")


def generators():
    """Draw a random generator by its seed."""
    return st.integers(0, 2**16).map(np.random.default_rng)


@st.composite
def samples(draw, min_n=4, max_n=12, n_features=3, kinds=KINDS):
    """Draw an (n, d) array of samples."""
    rng, n, kind = draw(generators()), draw(st.integers(min_n, max_n)), draw(st.sampled_from(kinds))
    X = rng.standard_normal((n, n_features))
    if kind == "grid":
        X = rng.integers(-2, 3, size=X.shape) / 2.0
    elif kind == "duplicates":
        X = X[rng.integers(max(1, n // 3), size=n)]
    elif kind == "constant feature":
        X[:, 0] = 0.7
    elif kind == "zero row":
        X[n // 2] = 0.0
    return X


@st.composite
def views(draw, min_views=1, max_views=4, min_n=4, max_n=12):
    """Draw a list of (n, d_v) arrays that describe the same n samples."""
    n = draw(st.integers(min_n, max_n))
    widths = draw(st.lists(st.integers(1, 4), min_size=min_views, max_size=max_views))
    return [draw(samples(min_n=n, max_n=n, n_features=width)) for width in widths]


@st.composite
def psd_kernels(draw, min_n=2, max_n=16):
    """Draw a positive semidefinite matrix of any rank and of a scale between 1e-3 and 1e3."""
    rng, n = draw(generators()), draw(st.integers(min_n, max_n))
    factor = rng.standard_normal((n, draw(st.integers(1, n))))
    return 10.0 ** draw(st.integers(-3, 3)) * (factor @ factor.T)


@st.composite
def indefinite_kernels(draw, min_n=2, max_n=16):
    """Draw a symmetric matrix with eigenvalues of both signs, none close to zero next to the largest."""
    rng, n = draw(generators()), draw(st.integers(min_n, max_n))
    negative = draw(st.integers(1, n - 1))
    values = rng.uniform(0.1, 1.0, size=n) * np.where(np.arange(n) < negative, -1.0, 1.0)
    basis = np.linalg.qr(rng.standard_normal((n, n)))[0]
    K = 10.0 ** draw(st.integers(-3, 3)) * (basis * values) @ basis.T
    return (K + K.T) / 2


@st.composite
def partitions(draw, n, max_clusters=4):
    """Draw labels of n samples in which every cluster has a member, and the number of clusters."""
    rng, k = draw(generators()), draw(st.integers(1, min(n, max_clusters)))
    return rng.permutation(np.concatenate([np.arange(k), rng.integers(k, size=n - k)])), k


@st.composite
def sample_weights(draw, n):
    """Draw weights >= 0, some of them zero, at least one positive; or all one."""
    rng, kind = draw(generators()), draw(st.sampled_from(["ones", "positive", "with zeros", "single"]))
    if kind == "ones":
        return np.ones(n)
    weights = rng.uniform(0.1, 3.0, size=n)
    if kind == "with zeros":
        weights[rng.permutation(n)[: n // 2]] = 0.0
    elif kind == "single":
        weights[np.arange(n) != rng.integers(n)] = 0.0
    return weights


@st.composite
def moves(draw, labels, n_clusters):
    """Draw samples that move, none to all of them, and their new clusters; a cluster may be won many times."""
    rng, n = draw(generators()), len(labels)
    moved = rng.permutation(n)[: draw(st.sampled_from([0, 1, n // 2, n]))]
    return moved, rng.integers(n_clusters, size=len(moved))
