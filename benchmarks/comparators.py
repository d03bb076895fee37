"""Methods for comparison, each beside what it cannot do without: a plain loop, scikit-learn, or its eigenvectors."""

import json
import time
import warnings
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cho_factor, eigh
from sklearn.cluster import AffinityPropagation as SklearnAffinityPropagation
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.decomposition import NMF
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import pairwise_distances
from sklearn.mixture import GaussianMixture
from threadpoolctl import threadpool_limits

from benchmarks._harness import Row, in_fresh_process, seconds
from benchmarks.minmax import per_step
from benchmarks.multi_view import blobs
from kernelweave import (
    AffinityPropagation,
    CoRegularizedSpectralClustering,
    CorrelationalSpectralClustering,
    CoTrainedSpectralClustering,
    KMedoids,
    MultiViewEM,
    MultiViewKMeans,
    MultiViewNMF,
    NgSpectralClustering,
    OptimizedKernelKMeans,
)
from kernelweave.datasets import load_multiview_digits, standardize
from kernelweave.kernels.spec.fitting import fit_kernel
from kernelweave.metrics import normalized_mutual_info
from kernelweave.solvers.comparators import optimized_kernel_kmeans as fusion

SUITE = "baselines"
K = 10

# Fits one method to three views (the first alone where it takes one table), of few samples and then of n. Leaves the
# memory held between the two, which is that of the library and of the data.
PEAK_OF = """
import json, resource, sys, warnings
import numpy as np
import psutil
import kernelweave
warnings.simplefilter("ignore")
n, name, settings = int(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3])
rng = np.random.default_rng(0)
y = rng.integers(5, size=n)
views = [rng.normal(0, 2.0, (5, 10))[y] + rng.normal(0, 1.0, (n, 10)) for _ in range(3)]
def fit(m):
    X = views[0][:m] if name in sys.argv[4:] else [view[:m] for view in views]
    getattr(kernelweave, name)(5, random_state=0, **settings).fit(X)
fit(300)
result = psutil.Process().memory_info().rss / 2**20
fit(n)
"""
ONE_TABLE = ("KMedoids", "AffinityPropagation", "NgSpectralClustering")


def run():
    views, y = digits()
    return [
        *medoids(),
        messages(views["pixels"][:800]),
        *one_spectrum(views["pixels"], y),
        *exchanges(),
        *factors(),
        *sweeps(views),
        co_training(views),
        correlations(views),
        *cholesky(views),
        *memory(),
    ]


def digits():
    data = load_multiview_digits()
    return {name: standardize(X) for name, X in data.views.items()}, data.target


def processor_time(cases, repeats=3):
    """Return the least processor time of every case on one thread, taken in turns, after one call that compiles."""
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for work in cases.values():
            work()
        return seconds(cases, repeats, time.process_time)


def beside(ours, theirs):
    """Return how a time compares with another, with both of them."""
    ratio = theirs / ours
    text = f"{ratio:.1f} x as fast" if ratio >= 1 else f"{1 / ratio:.1f} x the time"
    return f"{text} ({milliseconds(ours)} and {milliseconds(theirs)} ms of processor time"


def milliseconds(taken):
    return f"{taken * 1e3:,.{1 if taken < 0.1 else 0}f}"


# --- Exemplars --------------------------------------------------------------------------------------------------------


def pam(D, medoids):
    """PAM as printed: the best of all exchanges, until none lowers the sum. Returns the sum and the exchanges made."""
    medoids = np.array(medoids)
    made = 0
    while True:
        best = None
        cost = D[medoids].min(axis=0).sum() * (1.0 - 1e-12)
        for slot in range(len(medoids)):
            others = D[np.delete(medoids, slot)].min(axis=0)
            costs = np.minimum(D, others).sum(axis=1)
            if costs.min() < cost:
                best = (slot, int(costs.argmin()))
                cost = float(costs.min())
        if best is None:
            return float(D[medoids].min(axis=0).sum()), made
        medoids[best[0]] = best[1]
        made = made + 1


def voronoi(D, medoids):
    """Samples to their nearest medoid, medoids to the middle of their clusters. Returns the sum and the rounds."""
    medoids = np.array(medoids)
    rounds = 0
    while True:
        labels = D[medoids].argmin(axis=0)
        members = [np.flatnonzero(labels == c) for c in range(len(medoids))]
        new = np.array([inside[D[np.ix_(inside, inside)].sum(axis=1).argmin()] for inside in members])
        rounds += 1
        if np.array_equal(new, medoids):
            return float(D[medoids].min(axis=0).sum()), rounds
        medoids = new


def medoids(n=2000):
    X = np.hstack(blobs(n, K, n_views=1))
    D = pairwise_distances(X)
    start = np.arange(K)
    result = {}
    model = KMedoids(K, metric="precomputed", init=start)
    cases = {
        "ours": lambda: result.update(ours=model.fit(D).inertia_),
        "pam": lambda: result.update(pam=pam(D, start)),
        "voronoi": lambda: result.update(voronoi=voronoi(D, start)),
    }
    taken = processor_time(cases, repeats=2)
    what = f"KMedoids, one start, {n:,} samples, k = {K}, distances given"
    (exact, exchanges), (rough, rounds) = result["pam"], result["voronoi"]
    text = f"{beside(taken['ours'], taken['pam'])}), sum {result['ours'] / exact:.4f} x its sum after {exchanges}"
    yield Row(SUITE, f"{what}, beside PAM in numpy", f"{text} exchanges")
    text = f"{beside(taken['ours'], taken['voronoi'])}), sum {result['ours'] / rough:.4f} x its sum after {rounds}"
    yield Row(SUITE, f"{what}, beside medoids to the middle of their clusters in numpy", f"{text} rounds")


def messages(X):
    options = {"preference": -2000.0, "damping": 0.9, "max_iter": 1000, "convergence_iter": 50, "random_state": 0}
    result = {}
    cases = {
        "ours": lambda: result.update(ours=AffinityPropagation(**options).fit(X)),
        "theirs": lambda: result.update(theirs=SklearnAffinityPropagation(**options).fit(X)),
        "wanted": lambda: result.update(wanted=AffinityPropagation(K, random_state=0).fit(X)),
    }
    taken = processor_time(cases, repeats=2)
    ours = result["ours"]
    theirs = result["theirs"]
    same = "labels equal" if normalized_mutual_info(ours.labels_, theirs.labels_) > 1 - 1e-9 else "other labels"
    text = f"{beside(taken['ours'], taken['theirs'])}; {ours.n_iter_} and {theirs.n_iter_} steps, {same}); "
    tried = len(result["wanted"].objective_path_) - 1
    text += f"for {K} clusters {taken['wanted'] / taken['ours']:.1f} x that, preferences tried: {tried}"
    return Row(SUITE, f"AffinityPropagation, {len(X):,} digits, one preference, beside scikit-learn's", text)


# --- One view ---------------------------------------------------------------------------------------------------------


def one_spectrum(X, y):
    """Compare with scikit-learn's spectral clustering on the same affinities, dense and sparse."""
    dense = fit_kernel(X, "rbf", {"gamma": "median"}).operator("dense").block(slice(None), slice(None))
    graph = fit_kernel(X, "nearest_neighbors", {"symmetrize": "max"}).operator().A
    narrow = graph.indices.astype(np.int32), graph.indptr.astype(np.int32)  # what scikit-learn takes
    graph = sp.csr_array((graph.data, *narrow), shape=graph.shape)
    for what, A in (("Gaussian, dense", np.ascontiguousarray(dense)), ("ten neighbours, sparse", graph)):
        result = {}
        ours = NgSpectralClustering(K, kernel="precomputed", random_state=0)
        theirs = SpectralClustering(K, affinity="precomputed", random_state=0)
        cases = {
            "ours": lambda m=ours, A=A, result=result: result.update(ours=m.fit(A).labels_),
            "theirs": lambda m=theirs, A=A, result=result: result.update(theirs=m.fit(A).labels_),
        }
        taken = processor_time(cases)
        nmi = [normalized_mutual_info(y, result[name]) for name in ("ours", "theirs")]
        text = f"{beside(taken['ours'], taken['theirs'])}), NMI {nmi[0]:.3f} against {nmi[1]:.3f}"
        yield Row(
            SUITE, f"NgSpectralClustering, {len(X):,} digits, {what}, beside scikit-learn's SpectralClustering", text
        )


# --- Views that exchange clusters -------------------------------------------------------------------------------------


def each_view(fit):
    """Return a function of the steps that fits a model to every view; its ``n_iter_`` is the mean number of steps."""

    def work(steps):
        return SimpleNamespace(n_iter_=float(np.mean([model.n_iter_ for model in fit(steps)])))

    return work


def exchanges(n=100_000, n_views=3, steps=8):
    views = blobs(n, K, n_views)
    chosen = np.random.default_rng(0).choice(n, K, replace=False)
    start = np.linalg.norm(views[0][:, None] - views[0][chosen], axis=2).argmin(axis=1)

    def lloyd(most):
        return [KMeans(K, init=X[chosen], n_init=1, algorithm="lloyd", tol=0.0, max_iter=most).fit(X) for X in views]

    def mixture(most):
        options = {"covariance_type": "diag", "init_params": "random_from_data", "tol": 0.0, "random_state": 0}
        return [GaussianMixture(K, means_init=X[chosen], max_iter=most, **options).fit(X) for X in views]

    pairs = {
        "MultiViewKMeans": (MultiViewKMeans, each_view(lloyd), "scikit-learn's KMeans, a step on every view"),
        "MultiViewEM": (MultiViewEM, each_view(mixture), "scikit-learn's GaussianMixture, a step on every view"),
    }
    for name, (method, theirs, whom) in pairs.items():
        ours = {"ours": lambda most, m=method: m(K, init=start, tol=0.0, max_iter=most).fit(views), "theirs": theirs}
        taken = per_step(ours, steps, repeats=2)
        what = f"a round of {name}, {n:,} x {n_views} views of 20 columns, k = {K}, beside {whom}"
        yield Row(SUITE, what, f"{beside(taken['ours'], taken['theirs'])})")


def factors(n=5000, d=300, n_views=3, steps=20):
    """Compare a round with one of scikit-learn's NMF on every view, by the same kind of update and by its default."""
    rng = np.random.default_rng(0)
    topics = [rng.dirichlet(np.full(d, 0.05), K) for _ in range(n_views)]
    amounts = rng.dirichlet(np.full(K, 0.1), n)
    counts = [rng.poisson(60.0 * amounts @ inside).astype(float) for inside in topics]
    for kind, views in (("dense", counts), ("sparse", [sp.csr_array(X) for X in counts])):

        def each(solver, views=views):
            options = {"init": "random", "solver": solver, "tol": 0.0, "random_state": 0}
            return each_view(lambda most: [NMF(K, max_iter=most, **options).fit(X) for X in views])

        fits = {
            "ours": lambda most, views=views: MultiViewNMF(K, n_init=1, tol=0.0, max_iter=most, random_state=0).fit(
                views
            ),
            "mu": each("mu"),
            "cd": each("cd"),
        }
        taken = per_step(fits, steps, repeats=2)
        share = np.mean([np.count_nonzero(X) / X.size for X in counts])
        note = "" if kind == "dense" else f", {share:.0%} not zero"
        what = f"a round of MultiViewNMF, {n:,} x {n_views} {kind} views of {d} columns{note}, rank {K}, beside"
        yield Row(
            SUITE,
            f"{what} scikit-learn's NMF, a step by the same kind of update on every view",
            f"{beside(taken['ours'], taken['mu'])})",
        )
        yield Row(
            SUITE,
            "the same, beside a step of coordinate descent on every view",
            f"{beside(taken['ours'], taken['cd'])})",
        )


# --- Eigenvectors of several views ------------------------------------------------------------------------------------


def affinities(views, n):
    """Return Gaussian kernels of the first n samples of the views, and the same divided by degrees."""
    kernels = [
        np.array(fit_kernel(X[:n], "rbf", {"gamma": "median"}).operator("dense").block(slice(None), slice(None)))
        for X in views.values()
    ]
    degrees = [1.0 / np.sqrt(A.sum(axis=1)) for A in kernels]
    return kernels, [root[:, None] * A * root for A, root in zip(kernels, degrees, strict=True)]


def leading(matrices, count=K):
    """Find the leading eigenvectors of every matrix by LAPACK: what a round must find at least."""
    return [eigh(A, subset_by_index=[len(A) - count, len(A) - 1], check_finite=False)[1] for A in matrices]


def sweeps(views, steps=4):
    for n in (1000, 1797):
        kernels, divided = affinities(views, n)
        options = {"kernel": "precomputed", "tol": 0.0, "n_init": 1, "random_state": 0}

        def fit(most, options=options, kernels=kernels):
            return CoRegularizedSpectralClustering(K, max_iter=most, **options).fit(kernels)

        floors = {"floor": lambda divided=divided: leading(divided)}
        taken = per_step({"ours": fit}, steps, repeats=2, floors=floors)
        what = f"a sweep of CoRegularizedSpectralClustering, {len(kernels)} dense views of {n:,} digits"
        text = f"{beside(taken['ours'], taken['floor'])})"
        yield Row(SUITE, f"{what}, beside the leading eigenvectors of every view by LAPACK", text)


def co_training(views, n=1000, rounds=4):
    """Compare a round with the same round on projected affinities that are formed and decomposed."""
    kernels, divided = affinities(views, n)
    first = leading(divided)

    def formed():
        projections = [E @ E.T for E in first]
        total = sum(projections)
        projected = [(total - P) @ A for P, A in zip(projections, kernels, strict=True)]
        symmetric = [0.5 * (S + S.T) for S in projected]
        roots = [1.0 / np.sqrt(np.abs(S).sum(axis=1)) for S in symmetric]
        leading([root[:, None] * S * root for S, root in zip(symmetric, roots, strict=True)])

    options = {"kernel": "precomputed", "tol": 0.0, "n_init": 1, "random_state": 0}
    fits = {"ours": lambda most: CoTrainedSpectralClustering(K, max_iter=most, **options).fit(kernels)}
    taken = per_step(fits, rounds, repeats=2, floors={"formed": formed})
    what = f"a round of CoTrainedSpectralClustering, {len(kernels)} dense views of {n:,} digits, beside matrices formed"
    return Row(SUITE, f"{what} and decomposed by LAPACK", f"{beside(taken['ours'], taken['formed'])})")


def correlations(views, n=1000):
    kernels, _ = affinities(dict(list(views.items())[:3]), n)
    centred = [A - A.mean(axis=0) - A.mean(axis=1)[:, None] + A.mean() for A in kernels]
    model = CorrelationalSpectralClustering(K, kernel="precomputed", random_state=0)
    cases = {"ours": lambda: model.fit(kernels), "floor": lambda: [eigh(A, check_finite=False) for A in centred]}
    taken = processor_time(cases, repeats=2)
    what = f"CorrelationalSpectralClustering, {len(kernels)} kernels of {n:,} digits, beside their eigendecompositions"
    return Row(SUITE, f"{what} by LAPACK", f"{beside(taken['ours'], taken['floor'])})")


def cholesky(views, n=1200):
    """Compare whole fits with their factors alone, for kernels known to be semidefinite and for given ones."""
    three = {name: X[:n] for name, X in list(views.items())[:3]}
    kernels, _ = affinities(three, n)
    A = np.mean(kernels, axis=0) + np.eye(n)
    gaussian = OptimizedKernelKMeans(K, norm=1, kernel_params={"gamma": "median"}, random_state=0)
    given = OptimizedKernelKMeans(K, norm=1, kernel="precomputed", random_state=0)
    for model, X, what in ((gaussian, three, "Gaussian kernels"), (given, kernels, "the same kernels, given")):
        made = []

        def counted(*args, made=made, **options):
            made.append(1)
            return cho_factor(*args, **options)

        with patch.object(fusion, "cho_factor", counted):
            model.fit(X)
        cases = {
            "ours": lambda model=model, X=X: model.fit(X),
            "one": lambda: cho_factor(A.copy().T, lower=True, overwrite_a=True, check_finite=False),
        }
        taken = processor_time(cases, repeats=2)
        rounds = f"{model.n_iter_} round{'s' if model.n_iter_ > 1 else ''}"
        what = (
            f"OptimizedKernelKMeans, 1-norm, 3 views of {n:,} digits, {what}, beside its {len(made)} Cholesky factors"
        )
        text = f"{beside(taken['ours'], len(made) * taken['one'])}), {rounds}"
        yield Row(SUITE, f"{what} by LAPACK", text)


# --- Memory -----------------------------------------------------------------------------------------------------------


def memory(n=2000):
    """Measure peaks in matrices of n x n numbers, above what the process held after a fit of few samples."""
    cases = (
        ("KMedoids", {}),
        ("KMedoids", {"memory_limit": 1.0, "n_init": 1}),
        ("AffinityPropagation", {"preference": -3000.0}),
        ("NgSpectralClustering", {}),
        ("CoRegularizedSpectralClustering", {}),
        ("CoTrainedSpectralClustering", {}),
        ("CorrelationalSpectralClustering", {"kernel": "rbf"}),
        ("OptimizedKernelKMeans", {"max_iter": 2}),
    )
    for name, settings in cases:
        held, peak = in_fresh_process(PEAK_OF, argv=(str(n), name, json.dumps(settings), *ONE_TABLE))
        used = (peak - held) * 2**20 / (8 * n**2)
        many = "one view" if name in ONE_TABLE else "three views"
        how = ", beyond memory_limit" if "memory_limit" in settings else ""
        what = f"peak of {name}{how}, {many} of {n:,} samples, above that of 300 samples, in a process of its own"
        yield Row(SUITE, what, f"{used:.1f} matrices of n x n ({peak:.0f} MiB in all)")
