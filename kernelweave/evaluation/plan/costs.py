"""Memory and work of each method.

Work is a number of passes times what a pass takes. How many passes, steps and moves there are depends on the data: see
``counts``.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kernelweave.evaluation.plan import rates
from kernelweave.evaluation.plan.counts import DESCENT, ONCE, STAGE, Count, Runs, both, capped, minmax_runs
from kernelweave.evaluation.plan.paths import BLOCKWISE, FEATURES, GIVEN, GRAPH, STORED, Job, Way, ways
from kernelweave.kernels.neighbors import EXACT_LIMIT
from kernelweave.solvers.spectral.eigenvectors import GUARD

# Sets of eigenvectors from nothing that the outer steps of spectral clustering amount to.
DECOMPOSITIONS = Count(1.5, 0.6, 5)
# Products with the similarities of a convex mixture, of one view and with weights of views to learn.
PRODUCTS = Count(65, 40, 150)
VIEW_PRODUCTS = Count(400, 100, 800)
# Share of the samples with a prior above zero in second-order steps, and how many such steps there are.
ACTIVE = 0.2
MOST_ACTIVE = 2000
SECOND_ORDER = Count(6, 4, 12)
# The same where view weights are learned: many steps, most of them with few priors left.
LATER_ACTIVE = 0.03
VIEW_SECOND_ORDER = Count(50, 15, 120)
# Of a small fit whose time is scaled to the size of the data.
PILOT = Count(1, 0.3, 3.0)
PILOT_ROWS = 300
EXACT_EXPONENT = 2.7
# Bytes of the interpreter with all libraries, and of the tiles of a thread.
PROCESS = 210 * 10**6
TILES = 3 * 8 * 2**20
# Samples that the number of clusters and the views are judged on, and how the time grows up to there.
JUDGED = 1200
JUDGED_EXPONENT = 1.1
# Samples that take as long to be compared with one as that takes to be entered into an index and looked up.
INDEX_PAIRS = 5000
# Bytes that a sample of each view takes in graphs of neighbours.
GRAPH_SAMPLE = 8 * 300


@dataclass
class Costs:
    """Memory and work as they are added up."""

    path: str
    memory: dict[str, float] = field(default_factory=dict)
    work: dict[str, tuple[float, float, float]] = field(default_factory=dict)
    assumptions: list[str] = field(default_factory=list)

    def keep(self, what: str, n_bytes: float) -> None:
        """Add memory."""
        self.memory[what] = self.memory.get(what, 0.0) + n_bytes

    def spend(self, what: str, seconds: float, count: Count = ONCE) -> None:
        """Add work: so many seconds, so often."""
        before = self.work.get(what, (0.0, 0.0, 0.0))
        self.work[what] = tuple(b + seconds * c for b, c in zip(before, count, strict=True))  # type: ignore[assignment]


def added(costs: Costs) -> tuple[float, float, float]:
    """Return the usual, least and most seconds of all work."""
    usual, least, most = (sum(work[place] for work in costs.work.values()) for place in range(3))
    return usual, least, most


_WORDS = {
    STORED: "the kernel matrix is stored",
    BLOCKWISE: "kernel values are recomputed in every pass, tile by tile",
    FEATURES: "inner products of explicit features; no kernel matrix",
    GRAPH: "a sparse graph of neighbours",
    GIVEN: "the kernel matrix that is given",
}


def begin(job: Job, found: list[Way]) -> Costs:
    """Return what all methods on kernels have in common: the samples, the kernels, and filling these."""
    kinds = list(dict.fromkeys(way.kind for way in found))
    words = "; ".join(_WORDS[kind] for kind in kinds)
    if len(found) > 1:
        words += f", for each of {len(found)} views"
    costs = Costs(f"in this process, on {job.threads} thread(s): {words}")
    costs.keep("Python and libraries", PROCESS)
    costs.keep("samples", 8.0 * job.n * job.n * job.views if GIVEN in kinds else job.input_bytes)
    for way in found:
        kept = "kernel matrix" if way.kind == STORED else "features" if way.kind == FEATURES else "graph"
        if way.kernel_bytes(job.n):
            costs.keep(kept if len(found) == 1 or way.kind != STORED else "kernel matrices", way.kernel_bytes(job.n))
        if way.kind in (STORED, BLOCKWISE):
            costs.keep("copy of the samples", 8.0 * job.n * way.width)
            costs.keep("tiles", job.threads * TILES)
        measured = way.rates(job.n, job.k)
        pairs = job.n**2 if way.kind in (STORED, GRAPH) else job.n
        costs.spend(_FILLING[way.kind], measured.fill * pairs)
        if way.kind == FEATURES and job.views > 1:
            costs.keep("features side by side", way.kernel_bytes(job.n))
    if job.setting("approximation") is not None:
        costs.keep("features", 2 * 8.0 * job.n * found[0].width)
        costs.spend("features", found[0].map_seconds(job) * job.n)
    return costs


_FILLING = {
    STORED: "kernel matrix",
    BLOCKWISE: "kernel matrix",
    FEATURES: "features",
    GRAPH: "neighbours",
    GIVEN: "kernel matrix",
}


def _keep_runs(costs: Costs, job: Job, found: list[Way], at_once: int) -> None:
    """Add what runs keep: the sums of clusters with all samples, and numbers of each sample."""
    sums = sum(way.kind != FEATURES for way in found)
    costs.keep("sums of clusters", at_once * (sums + (sums > 1)) * 8.0 * job.k * job.n)
    costs.keep("labels and distances", (at_once * 6 + 4) * 8.0 * job.n)


def _at_once(job: Job, found: list[Way]) -> int:
    """Return how many starts run at the same time."""
    alone = any(way.kind == BLOCKWISE for way in found)
    return 1 if alone or job.starts < job.threads else job.threads


def _run(costs: Costs, job: Job, found: list[Way], often: float, runs: Runs, n: int) -> None:
    """Add the work of descents on n samples."""
    for way in found:
        measured = way.rates(n, job.k)
        costs.spend("sums", often * measured.sweep * way.units(n), runs.sweeps)
        costs.spend("rows of moved samples", often * measured.move * way.units(n), runs.moved)
        costs.spend("assignments", often * measured.assign * n, runs.steps)
    costs.spend("assignments", often * rates.step_seconds() * len(found), runs.steps)


def _draw(costs: Costs, job: Job, found: list[Way], often: float, n: int) -> None:
    """Add the work of centres drawn far apart."""
    trials = 2 + int(np.log(job.k))
    for way in found:
        costs.spend("starts", often * way.rates(n, job.k).columns * n * (1 + trials * (job.k - 1)))


def steps_in_words(runs: Runs, starts: int) -> str:
    """Return how many steps are assumed."""
    usual, least, most = runs.steps
    return f"about {usual:.0f} iterations per start ({least:.0f} to {most:.0f}), {starts} start(s)"


def named_start(job: Job) -> str:
    """Return the name of how runs start; empty where labels are given."""
    init = job.setting("init", "k-means++")
    return init if isinstance(init, str) else ""


def runs_of(job: Job, pairs: bool) -> Runs:
    """Return what happens in a start of a method of the family of kernel k-means."""
    name = type(job.estimator).__name__
    if name.startswith("MinMax"):
        raised = minmax_runs(job.estimator, job.n, pairs)
        return both(raised, DESCENT) if job.setting("refine") else raised
    if named_start(job) == "minmax":
        return both(minmax_runs(None, job.n, pairs), DESCENT)
    return capped(DESCENT, job.setting("max_iter", 300)) if name == "KernelKMeans" else DESCENT


def _kernel_kmeans(job: Job) -> Costs:
    found = ways(job)
    costs = begin(job, found)
    if named_start(job) == "k-means++":
        _draw(costs, job, found, job.starts, job.n)
    runs = runs_of(job, found[0].pairs)
    _run(costs, job, found, job.starts, runs, job.n)
    at_once = _at_once(job, found)
    _keep_runs(costs, job, found, at_once)
    costs.assumptions.append(steps_in_words(runs, job.starts))
    if "minmax" in (named_start(job), type(job.estimator).__name__[:6].lower()):
        costs.spend("assignments", 2 * job.starts * rates.step_seconds(), runs.steps)  # weights, snapshots, digests
        costs.keep("labels of each p", at_once * 50.0 * job.n)
        costs.assumptions.append("a run of MinMax may converge when p is at its largest, or continue until max_iter")
    return costs


def _global(job: Job) -> Costs:
    found = ways(job)
    exact = job.setting("search") == "exact"
    if exact and found[0].kind == FEATURES and 8.0 * job.n**2 <= job.limit and job.setting("storage") == "auto":
        found = [Way(STORED, found[0].kernel, found[0].params, found[0].width)]
    costs = begin(job, found)
    _stages(costs, job, found, job.n)
    _keep_runs(costs, job, found, 1)
    costs.assumptions.append(f"about {STAGE.steps.usual:.0f} steps for each number of clusters up to {job.k}")
    if exact:
        rows = min(job.n, PILOT_ROWS)
        settings = tuple(job.estimator.get_params().items())
        changed = dict(settings) | {"n_clusters": min(job.k, rows), "kernel_params": None, "verbose": 0}
        hashable = tuple((name, value) for name, value in changed.items() if value is not None)
        make: Any = type(job.estimator)
        taken = rates.pilot_seconds(make, hashable, job.widths, rows)
        costs.spend("runs from all samples", taken * (job.n / rows) ** EXACT_EXPONENT, PILOT)
        costs.keep("runs from all samples", 8.0 * job.k * job.n * job.threads)
        costs.assumptions.append(f"the exact search grows as n^{EXACT_EXPONENT:g} from a fit of {rows} samples")
    return costs


def _stages(costs: Costs, job: Job, found: list[Way], n: int) -> None:
    """Add the work of a fast global search among n samples."""
    more = job.k - 1
    for way in found:
        costs.spend("gains of candidates", more * way.rates(n, job.k).gains * float(n) * n)
    _run(costs, job, found, more, STAGE, n)


def _multi_view_kernel_kmeans(job: Job) -> Costs:
    found = ways(job, shared_limit=True)
    costs = begin(job, found)
    for way in found:
        costs.spend("scales of the views", way.rates(job.n, job.k).sweep * way.units(job.n))
    init = job.setting("init")
    if not isinstance(init, str) or init == "graph":
        _run(costs, job, found, 1, DESCENT, job.n)
    elif not init.startswith("global"):
        _draw(costs, job, found, job.starts, job.n)
        _run(costs, job, found, job.starts, DESCENT, job.n)
    else:
        _search(costs, job, found)
        _run(costs, job, found, 1, DESCENT, job.n)
    _keep_runs(costs, job, found, _at_once(job, found))
    costs.assumptions.append(steps_in_words(DESCENT, job.starts))
    return costs


def _search(costs: Costs, job: Job, found: list[Way]) -> None:
    """Add the search for a start among ``init_size`` samples, whose summed kernel is stored unless it has features."""
    size = min(job.n, int(job.setting("init_size")))
    searched = found
    if size < job.n and found[0].kind != FEATURES:
        searched = [Way(GIVEN, "precomputed", (), size)]
        costs.keep("kernel of the search", 2 * 8.0 * size**2)
        for way in found:
            measured = way.rates(job.n, job.k)
            each = measured.fill if way.kind == STORED else measured.sweep
            costs.spend("kernel of the search", each * size**2 if way.pairs else 0.0)
            costs.spend("sums", measured.sweep * way.units(job.n))
    _stages(costs, job, searched, size)
    often = job.starts - 1
    _draw(costs, job, searched, often, size)
    _run(costs, job, searched, often, DESCENT, size)
    if size < job.n:
        costs.assumptions.append(f"the start is searched among {size:,} samples (init_size)")


def _multi_view_spectral(job: Job) -> Costs:
    found = ways(job, shared_limit=True)
    costs = begin(job, found)
    block = job.k + GUARD
    for way in found:
        if way.kind == FEATURES:
            costs.spend("Gram matrix", rates.multiply_seconds() * job.n * float(way.width) ** 2)
            costs.spend("eigenvectors", rates.decomposition_seconds() * float(way.width) ** 3, Count(5, 3, 20))
            costs.keep("Gram matrix", 4 * 8.0 * way.width**2)
            continue
        kernel = "rbf" if way.kind == GIVEN else way.kernel
        each, pairs = rates.eigenvector_seconds(kernel, way.params, min(way.width, rates.WIDE), job.k, job.n)
        seconds = each * (float(job.n) ** 2 if pairs else job.n)
        if way.kind == BLOCKWISE:  # values are computed again for each of some twenty products
            seconds += 20 * way.rates(job.n, job.k).sweep * float(job.n) ** 2
        costs.spend("eigenvectors", seconds, DECOMPOSITIONS)
    stored = sum(way.kind in (STORED, GIVEN) for way in found)
    costs.keep("scaled kernels and their sum", (stored + 2 * (stored > 0)) * 8.0 * job.n**2)
    costs.keep("blocks of vectors", (12 + 4) * block * 8.0 * job.n)
    rounding = [Way(FEATURES, "linear", (), job.k)]
    _run(costs, job, rounding, job.starts, DESCENT, job.n)
    _keep_runs(costs, job, rounding, job.threads)
    costs.assumptions.append("view weights settle after about 4 sets of eigenvectors (2 to 10)")
    return costs


def _training(job: Job) -> int:
    """Return on how many samples kernel spectral clustering is trained."""
    return min(job.n, int(job.setting("n_train_samples") or job.n))


def _kernel_spectral(job: Job) -> Costs:
    m = _training(job)
    trained = Job(job.estimator, m, job.widths, job.k)
    found = ways(trained)
    costs = begin(trained, found)
    costs.keep("samples", 8.0 * (job.n - m) * job.width)
    way = found[0]
    kernel = "rbf" if way.kind == GIVEN else way.kernel
    each, pairs = rates.eigenvector_seconds(kernel, way.params, min(way.width, rates.WIDE), max(1, job.k - 1), m)
    seconds = each * (float(m) ** 2 if pairs else m)
    if way.kind == BLOCKWISE:
        seconds += 14 * way.rates(m, job.k).sweep * float(m) ** 2
    costs.spend("eigenvectors", seconds, Count(0.5, 0.2, 2))
    costs.keep("blocks of vectors", (12 + 4) * (job.k + GUARD) * 8.0 * m)
    _assign_rest(costs, job, found, m)
    return costs


def _assign_rest(costs: Costs, job: Job, found: list[Way], m: int) -> None:
    """Add the assignment of samples beyond the training samples."""
    if m == job.n:
        costs.assumptions.append("all samples are used for training; n_train_samples makes it fewer")
        return
    for way in found:
        if way.pairs:
            again = Way(BLOCKWISE, way.kernel, way.params, way.width) if way.kind == STORED else way
            costs.spend("labels of other samples", again.rates(m, job.k).sweep * float(m) * job.n)
    costs.keep("scores", 8.0 * job.n * job.k * (1 + job.views))


def _multi_view_kernel_spectral(job: Job) -> Costs:
    m = _training(job)
    trained = Job(job.estimator, m, job.widths, job.k)
    found = ways(trained)
    found = [Way(STORED, way.kernel, way.params, way.width) if way.kind != GIVEN else way for way in found]
    costs = begin(trained, found)
    costs.keep("samples", 8.0 * (job.n - m) * job.width)
    costs.keep("centred kernels and their eigenvectors", (2 * job.views + 2) * 8.0 * m**2)
    costs.spend("all eigenvectors", job.views * rates.decomposition_seconds() * float(m) ** 3, Count(1, 0.7, 1.5))
    products = 36 * 2 * job.views * (job.k + GUARD) * float(m) ** 2
    costs.spend("coupled eigenvectors", rates.multiply_seconds() * products, Count(1, 0.1, 2))
    _assign_rest(costs, job, found, m)
    return costs


def _convex(job: Job) -> Costs:
    learned = job.views > 1 and job.setting("view_weights") == "learned"
    often = VIEW_PRODUCTS if learned else PRODUCTS
    stored = 8.0 * job.n**2 <= job.limit
    kernel = job.setting("kernel") if job.setting("divergence") == "kernel" else "rbf"
    kernel = "rbf" if kernel == "precomputed" else kernel
    found = [Way(STORED if stored else BLOCKWISE, kernel, (), width) for width in job.widths]
    costs = begin(job, found)
    for way in found:
        each = rates.product_seconds() if stored else way.rates(job.n, job.k).sweep
        costs.spend("products with similarities", each * float(job.n) ** 2, often)
    active = min((LATER_ACTIVE if learned else ACTIVE) * job.n, MOST_ACTIVE)
    seconds = rates.multiply_seconds() * (job.views * job.n * active**2 + active**3) + 20 * rates.step_seconds()
    costs.spend("second-order steps", seconds, VIEW_SECOND_ORDER if learned else SECOND_ORDER)
    costs.keep("columns of second-order steps", 8.0 * (2048 * active + 2 * active**2))
    costs.path = costs.path.replace("kernel matrix", "matrix of similarities").replace("kernel values", "similarities")
    costs.assumptions.append(
        f"about {often.usual:.0f} products with the similarities ({often.least:.0f} to {often.most:.0f})"
    )
    return costs


#: How neighbours are searched, in words.
_SEARCHED = {"exact": "", "auto": ", found in nearby cells", "approximate": ", found by indexes"}


def _compared_pairs(search: str, n: int) -> float:
    """Return the pairs of samples whose comparison takes as long as a search of neighbours."""
    if search == "exact":
        return float(n) ** 2
    return n**1.5 * EXACT_LIMIT**0.5 if search == "auto" else float(n) * min(n, INDEX_PAIRS)


def _graph_fusion(job: Job) -> Costs:
    asked = str(job.setting("neighbor_search", "auto"))
    search = "exact" if asked == "auto" and job.n <= EXACT_LIMIT else asked
    costs = Costs(
        f"in this process, on {job.threads} thread(s): graphs of neighbours"
        + _SEARCHED[search]
        + ", fused, then cut; the number of clusters and the views are judged on at most 1,200 samples"
    )
    costs.keep("Python and libraries", PROCESS)
    costs.keep("samples", 3.0 * job.input_bytes)
    costs.keep("graphs", float(GRAPH_SAMPLE) * job.n * job.views)
    costs.keep("eigenvectors", 16 * (job.k + GUARD) * 8.0 * job.n)
    costs.keep("judged samples", 6 * 8.0 * min(job.n, JUDGED) ** 2)
    for width in job.widths:
        turns = 2 if width >= 10 else 1
        costs.spend("neighbours", turns * rates.neighbor_seconds(width, job.n) * _compared_pairs(search, job.n))
    rows = min(job.n, PILOT_ROWS)
    kind: Any = type(job.estimator)
    plain = (("n_clusters", min(job.k, rows // 2)), ("check_views", False), ("random_state", 0))
    cut = rates.pilot_seconds(kind, plain, job.widths, rows)
    costs.spend("fusion and cut", cut * job.n / rows, PILOT)
    chosen = not isinstance(job.setting("n_clusters"), int)
    if chosen or (job.views > 1 and job.setting("check_views")):
        judged = (("n_clusters", "auto"), *plain[1:]) if chosen else (plain[0], plain[2])
        taken = max(0.0, rates.pilot_seconds(kind, judged, job.widths, rows) - cut)
        costs.spend("judging", taken * (min(job.n, JUDGED) / rows) ** JUDGED_EXPONENT, PILOT)
    costs.assumptions.append(f"fusion and cut grow as n from a fit of {rows} samples")
    return costs


#: The methods with an estimate, by the class of their estimator.
METHODS: dict[str, Callable[[Job], Costs]] = {
    "KernelKMeans": _kernel_kmeans,
    "GlobalKernelKMeans": _global,
    "MinMaxKMeans": _kernel_kmeans,
    "MinMaxKernelKMeans": _kernel_kmeans,
    "MultiViewKernelKMeans": _multi_view_kernel_kmeans,
    "MultiViewSpectralClustering": _multi_view_spectral,
    "KernelSpectralClustering": _kernel_spectral,
    "MultiViewKernelSpectralClustering": _multi_view_kernel_spectral,
    "ConvexMixture": _convex,
    "MultiViewConvexMixture": _convex,
    "GraphFusionClustering": _graph_fusion,
}
