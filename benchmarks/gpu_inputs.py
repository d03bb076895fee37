"""Labels of fits on a device beside those of the processor: absent samples and sparse features, one line each.

``python -m benchmarks.gpu_inputs`` needs a GPU; ``--device cpu --scale 0.05`` runs the same by torch here. The
first fit of a process compiles programs, which its time includes.
"""

import argparse
import time
import warnings

import numpy as np
import scipy.sparse as sp

import kernelweave as kw
from kernelweave import config_context

K = 5
#: Objectives of equal partitions may differ by this share.
ROUNDING = 1e-6


def table(n, width, seed):
    """Return samples of K clusters that overlap."""
    rng = np.random.default_rng(seed)
    return 3.0 * rng.standard_normal((K, width))[np.arange(n) % K] + 2.0 * rng.standard_normal((n, width))


def with_gaps(blocks, rate=0.3, seed=0):
    """Return views that lack samples, each of which is in one view at least."""
    rng = np.random.default_rng(seed)
    n = len(blocks[0])
    mask = rng.random((n, len(blocks))) >= rate
    mask[np.arange(n), rng.integers(len(blocks), size=n)] = True
    return [np.where(mask[:, v, None], block, np.nan) for v, block in enumerate(blocks)]


def words(n, width, filled=0.001, seed=0):
    """Return counts of words in texts of K topics: every topic prefers a tenth of the words."""
    rng = np.random.default_rng(seed)
    per_row = max(5, int(filled * width))
    topic = np.arange(n) % K
    common = rng.integers(width, size=(n, per_row))
    own = (common % (width // 10)) + (topic * (width // 10))[:, None]
    columns = np.where(rng.random((n, per_row)) < 0.5, own, common)
    rows = np.repeat(np.arange(n), per_row)
    X = sp.csr_array((np.ones(n * per_row), (rows, columns.ravel())), shape=(n, width))
    X.sum_duplicates()
    return X


def compare(name, model, X, device):
    """Print whether a fit has the labels, predictions and objective of the processor, and both times."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        began = time.perf_counter()
        model.fit(X)
        usual = time.perf_counter() - began
        labels = model.labels_.copy()
        objective = model.objective_
        predicted = model.predict(X)
    with warnings.catch_warnings(record=True) as said, config_context(device=device):
        warnings.simplefilter("always")
        began = time.perf_counter()
        model.fit(X)
        took = time.perf_counter() - began
        there = model.predict(X)
    off = abs(model.objective_ - objective) / max(abs(objective), 1e-300)
    differ = int((labels != model.labels_).sum())
    same = differ == 0 and off < ROUNDING and np.array_equal(there, predicted)
    stayed = ", stays on the processor" if any("stay on the processor" in str(each.message) for each in said) else ""
    verdict = "same" if same else f"OTHER ({differ} labels)"
    print(f"{name}: {verdict}, objective off by {off:.1e}, {took:.2f} s, CPU {usual:.2f} s{stayed}", flush=True)


def cases(scale):
    """Yield names, models and data."""

    def count(n):
        return max(200, int(scale * n))

    one = {"n_init": 1, "random_state": 0}
    drawn = {"init": "k-means++", **one}
    views = kw.MultiViewKernelKMeans
    spectral = kw.MultiViewSpectralClustering
    single = kw.KernelKMeans
    small = with_gaps([table(count(1000), width, seed) for seed, width in enumerate((6, 4, 5))])
    large = with_gaps([table(count(4000), width, seed) for seed, width in enumerate((6, 4))])
    full = [table(count(1000), width, seed) for seed, width in enumerate((6, 4))]
    yield "absent, kernels stored", views(K, **drawn), large
    yield "absent, never stored", views(K, storage="blockwise", **drawn), large
    yield "absent, linear", views(K, kernel="linear", **drawn), large
    yield "absent, search, p chosen", views(K, p="auto", random_state=0), small
    yield "absent, graphs", views(K, kernel="nearest_neighbors", **drawn), large
    yield "absent, spectral, small", spectral(K, **one), small
    yield "absent, spectral", spectral(K, **one), large
    yield "absent, spectral, degrees", spectral(K, normalize="degrees", **one), large
    yield "absent, spectral, graphs", spectral(K, kernel="nearest_neighbors", normalize="degrees", **one), large
    yield "absent, mixture", kw.MultiViewConvexMixture(K), small
    mixed = views(K, kernel=["rbf", "chi2"], storage="blockwise", **drawn)
    yield "kernels of which one stays here", mixed, [np.abs(view) for view in full]
    yield "spectral, degrees, p chosen", spectral(K, normalize="degrees", p="auto", **one), full
    text = words(count(100_000), 50_000)
    other = words(count(100_000), 20_000, seed=1)
    some = text[: count(6000)]
    narrow = {"kernel_params": {"gamma": 0.02}}
    yield f"sparse, linear, {text.shape[0]:,} x 50,000", single(K, kernel="linear", **one), text
    yield f"sparse, cosine, {text.shape[0]:,} x 50,000", single(K, kernel="cosine", **one), text
    yield "sparse, rbf stored", single(K, **narrow, **one), some
    yield "sparse, rbf never stored", single(K, storage="blockwise", **narrow, **one), some
    yield "sparse, poly never stored", single(K, kernel="poly", storage="blockwise", **one), some
    yield "sparse, minmax", kw.MinMaxKMeans(K, **one), some
    yield "sparse views", views(K, kernel="linear", **drawn), [text, other]
    yield "sparse beside dense", views(K, kernel="linear", **drawn), [text, table(count(100_000), 8, 3)]
    yield "sparse views, spectral", spectral(K, kernel="cosine", **one), [some, words(count(6000), 20_000, seed=1)]


def main():
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu_inputs", description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the samples")
    options = parser.parse_args()
    for name, model, X in cases(options.scale):
        compare(name, model, X, options.device)


if __name__ == "__main__":
    main()
