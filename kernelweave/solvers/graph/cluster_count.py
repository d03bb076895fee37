"""The number of clusters of a graph: how clear its cuts are compared with those of graphs without clusters.

Clearness   q(k) = Q(k) / (1 - 1/k), Q the modularity of the k clusters: 0 for a random split, 1 if no edge is cut
Gap         G(k) = mean log(1 - q0(k) + e) - log(1 - q(k) + e) over null graphs, which the caller makes from data of
            the same shape without clusters by the steps that made the graph
Choice      1 if the largest gap is not clearly above those that nulls have among themselves; else the finest of the
            numbers whose clusters all lie in valleys and that have a gap of 70 % or more, or clusters that subsamples
            of 80 % repeat; where there is none, of the numbers within 5 % of the largest gap the most stable one, and
            then a finer one that cuts no more. A gap that is not large counts only as far as valleys lie between the
            clusters: a continuum (a curve, a gradient) can be cut cheaply anywhere, and no null has its shape. Clusters
            far apart along one line look like one long cloud to the null; deep valleys give them away
Cost        a sweep over k for the graph and for every subsample, a shorter one for every null
Source      gap after Tibshirani, Walther and Hastie, J. R. Statist. Soc. B 2001; modularity after Newman and Girvan,
            Phys. Rev. E 2004. The constants were chosen on synthetic cases, not on single sets.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
import scipy.sparse as sp

from kernelweave.foundation.array_types import Bools, Floats, Ints
from kernelweave.foundation.random_streams import streams
from kernelweave.foundation.threads import parallel_map
from kernelweave.solvers.graph.fusion import graph_eigenvectors, kmeans_on, unit_rows
from kernelweave.solvers.shared.rand_index import rand_index

Confidence = Literal["high", "moderate", "low", "none"]
Measure = Literal["cut", "valley"]
NullGraph = Callable[[np.random.Generator], sp.csr_array]

# Keeps the logarithm of a perfect clearness finite.
SOFTENING = 0.05
# Numbers of clusters whose gap is within this share of the largest are about as clear.
NEAR = 0.05
# A finer clustering is preferred if it cuts no more than this share of the edges beyond the coarser one.
SAME_CUT = 0.002
# The limit of a gap: so many times the spread that nulls have among themselves, and no less than the floor.
SPREADS: dict[Measure, float] = {"cut": 3.0, "valley": 2.7}
FLOORS: dict[Measure, float] = {"cut": 0.03, "valley": 0.55}
# A gap must be this many times its limit. The less it is above it, the more it counts only as far as there are valleys
# between clusters; from the second number on they do not matter.
CLEAR = 1.2
SURE = 4.0
# The finest number is taken whose clusters all lie in valleys no shallower than this (splitting a cluster leaves a
# valley close to 1), if its gap is at least this share of the largest or its clusters are at least this stable. The gap
# alone would miss clusters in a row, of uneven sizes or one around another: the null of their covariance is cut as
# cheaply.
SEPARATE = 0.4
FINE = 0.7
STEADY = 0.95
# Clusters of this stability can be relied on.
STABLE = 0.85
# How far from the border, as a share of the smaller cluster, the least cut is looked for.
BORDER = 0.1
# Where cuts are not clear, valleys may be: no shallower than this, and around clusters of at least this share.
DEEP = 0.25
VALLEY_SHARE = 0.05
# Graphs without clusters, more where they do not decide, and subsamples with the share of samples in each.
NULLS = 5
MORE_NULLS = 4
SUBSAMPLES = 5
SUBSAMPLED = 0.8
# Runs of k-means for each number of clusters: of the graph, of nulls, of subsamples.
RUNS = 5
NULL_RUNS = 3
SUBSAMPLE_RUNS = 2
# Every number up to this one is tried, then steps of an eighth.
DENSE_COUNTS = 20
# The least samples of a cluster, as a number and as a share, that a finer clustering may have.
LEAST_SAMPLES = 5
LEAST_SHARE = 0.01


@dataclass(frozen=True)
class Sweep:
    """Clusters of a graph for several numbers of clusters, with the share of edges that each cuts."""

    counts: Ints  # numbers of clusters, 1 first
    labels: tuple[Ints, ...]
    cut: Floats  # share of the edge weight between clusters
    expected: Floats  # the same in a random graph of these degrees
    edges: sp.coo_array  # of the graph, each once
    vectors: Floats  # (n, K) its leading eigenvectors

    @cached_property
    def valleys(self) -> Floats:
        """The shallowest valley between clusters, see :func:`valley_of`; 1 for one cluster."""
        tried = zip(self.counts.tolist(), self.labels, strict=True)
        return np.array([valley_of(self.edges, self.vectors, labels, k) if k > 1 else 1.0 for k, labels in tried])

    @property
    def clearness(self) -> Floats:
        """Q of every number of clusters, 0 for one cluster."""
        most = np.where(self.counts > 1, 1.0 - 1.0 / self.counts, 1.0)
        return np.where(self.counts > 1, (self.expected - self.cut) / most, 0.0)

    @property
    def relative_cut(self) -> Floats:
        """The cut as a share of what a random graph would cut, 1 for one cluster."""
        return np.divide(self.cut, self.expected, out=np.ones_like(self.cut), where=self.expected > 0)

    def loss(self, measure: Measure = "cut", counts: Ints | None = None) -> Floats:
        """Return log(1 - q + e), or log(valley + e), at other numbers of clusters by interpolation."""
        lost = np.maximum(1.0 - self.clearness, 0.0) if measure == "cut" else self.valleys
        values = np.log(lost + SOFTENING)
        return values if counts is None else np.interp(counts, self.counts, values)

    def smallest(self, position: int) -> int:
        """Return the size of the smallest cluster."""
        return int(np.bincount(self.labels[position]).min())


@dataclass(frozen=True)
class ClusterCount:
    """The number of clusters with what speaks for it."""

    n_clusters: int  # 1: no clusters
    confidence: Confidence
    strength: float  # the largest gap over the largest that nulls have among themselves
    unweighed: float  # the same before valleys between clusters were looked at
    counts: Ints  # numbers tried
    gaps: Floats  # (K,) their gaps
    votes: tuple[int, ...]  # what each subsample chose
    stability: float  # mean adjusted Rand index with the clusters of subsamples; NaN where none were drawn
    plausible: tuple[int, ...]  # numbers about as clear, with the one chosen
    runner_up: int | None  # the clearest number that is not close to the one chosen
    candidate: int  # the clearest number, also where it was not clear enough
    labels: Ints  # of the graph for the number chosen
    found_in: tuple[str, ...] = ()  # views that show it, where all together do not

    @property
    def needed(self) -> float:
        """The strength from which on there are clusters."""
        return CLEAR

    @property
    def agreeing(self) -> int:
        """How many subsamples chose the same number, within a tenth."""
        return sum(abs(vote - self.n_clusters) <= 0.1 * self.n_clusters for vote in self.votes)


def counts_to_try(largest: int, every: int = DENSE_COUNTS) -> Ints:
    """Return 1, 2, ... up to ``every``, then in steps of an eighth up to ``largest``."""
    counts = list(range(1, min(largest, every) + 1))
    while counts[-1] < largest:
        counts.append(min(largest, int(np.ceil(counts[-1] * 1.125))))
    return np.array(counts)


def sweep(W: sp.csr_array, counts: Ints, n_runs: int, rng: np.random.Generator) -> Sweep:
    """Return the clusters of a graph for every number of clusters: k-means on its leading eigenvectors."""
    return sweep_with(W, counts, n_runs, rng.spawn(len(counts)))


def sweep_with(W: sp.csr_array, counts: Ints, n_runs: int, seeds: Sequence[np.random.Generator]) -> Sweep:
    """Return the same, with a generator for every number of clusters."""
    n = W.shape[0]
    vectors = graph_eigenvectors(W, int(counts.max())).vectors
    degrees = np.asarray(W.sum(axis=1)).ravel()
    edges = W.tocoo()

    def cluster(position: int) -> tuple[Ints, float, float]:
        k = int(counts[position])
        if k == 1:
            return np.zeros(n, dtype=np.intp), 0.0, 0.0
        run = kmeans_on(unit_rows(vectors[:, :k]), k)
        candidates = [run(seed) for seed in seeds[position].spawn(n_runs)]
        shares = [cut_shares(edges, degrees, labels, k) for labels in candidates]
        best = int(np.argmin([cut - expected for cut, expected in shares]))
        return candidates[best], *shares[best]

    labels, cut, expected = zip(*parallel_map(cluster, range(len(counts))), strict=True)
    return Sweep(counts, labels, np.array(cut), np.array(expected), sp.coo_array(sp.triu(W, 1)), vectors)


def cut_shares(edges: sp.coo_array, degrees: Floats, labels: Ints, n_clusters: int) -> tuple[float, float]:
    """Return the share of edge weight between clusters, and what it is in a random graph of the same degrees."""
    total = float(degrees.sum())
    if total <= 0:
        return 0.0, 0.0
    inside = labels[edges.row] == labels[edges.col]
    shares = np.bincount(labels, degrees, n_clusters) / total
    return 1.0 - float(edges.data[inside].sum()) / total, 1.0 - float(shares @ shares)


def valley_of(edges: sp.coo_array, vectors: Floats, labels: Ints, n_clusters: int) -> float:
    """Return the shallowest valley between a cluster and the one it has most links with.

    The samples of both are put in order from one centre to the other, and the graph is cut at every place of the order.
    The valley is the least cut close to the border, as a share of cuts through the middle half of either cluster (their
    lower quartile): about 1 in a continuum, where other places are as good, and small between clusters. Links between
    the far ends of both are chance and left out. Clusters without links have 0.
    """
    n = len(labels)
    embedding = unit_rows(vectors[:, :n_clusters])
    members = sp.csr_array((np.ones(n), (labels, np.arange(n))), shape=(n_clusters, n))
    centers = (members @ embedding) / np.maximum(np.bincount(labels, minlength=n_clusters), 1)[:, None]
    pairs = labels[edges.row] * n_clusters + labels[edges.col]
    links = np.bincount(pairs, edges.data, n_clusters**2).reshape(n_clusters, n_clusters)
    links = links + links.T
    np.fill_diagonal(links, 0.0)
    deepest = [0.0]
    for c in range(n_clusters):
        other = int(links[c].argmax())
        if links[c, other] > 0:
            position = embedding @ (centers[other] - centers[c])
            deepest.append(_valley(edges, position, labels == c, labels == other))
    return max(deepest)


def _valley(edges: sp.coo_array, position: Floats, here: Bools, there: Bools) -> float:
    both = here | there
    members = np.flatnonzero(both)
    order = members[np.lexsort((position[members], there[members]))]
    rank = np.empty(len(here), dtype=np.intp)
    rank[order] = np.arange(len(order))
    inside = both[edges.row] & both[edges.col]
    weights = edges.data[inside]
    row = rank[edges.row[inside]]
    col = rank[edges.col[inside]]
    first = np.minimum(row, col)
    last = np.maximum(row, col)
    steps = np.bincount(first, weights, len(order)) - np.bincount(last, weights, len(order))
    size = int(here.sum())
    other = len(order) - size
    far = (first < size // 2) & (last >= size + other // 2)
    by_chance = float(weights[far].sum()) / max(1, (size // 2) * (other - other // 2))
    places = np.arange(1, len(order))
    cuts = np.cumsum(steps)[:-1] - by_chance * places * (len(order) - places)  # cuts[t]: between places t and t + 1
    reach = max(1, round(BORDER * min(size, other)))
    border = max(float(cuts[max(0, size - 1 - reach) : size + reach].min()), 0.0)
    middles = (cuts[size // 4 : 3 * size // 4], cuts[size + other // 4 : size + 3 * other // 4])
    middle = min((lower_quartile(part) for part in middles if len(part)), default=0.0)
    return min(1.0, border / middle) if middle > 0 else 1.0


def lower_quartile(values: Floats) -> float:
    """Return ``np.quantile(values, 0.25)``, which takes ten times as long for the few values of a cluster."""
    position = 0.25 * (len(values) - 1)
    below = int(position)
    above = min(below + 1, len(values) - 1)
    low, high = np.partition(values, (below, above))[[below, above]].tolist()
    share = position - below
    step = high - low
    return low + step * share if share < 0.5 else high - step * (1.0 - share)


def choose_count(
    W: sp.csr_array, null_graph: NullGraph, counts: Ints, random_state: int, *, smallest: int = 1
) -> ClusterCount:
    """Return the number of clusters of a graph; ``smallest`` is the least number that may be answered."""
    rngs = streams(random_state, 1 + NULLS + MORE_NULLS + SUBSAMPLES, "reference data")
    whole = sweep(W, counts, RUNS, rngs[0])
    null_counts = _thinned(counts)
    nulls = [sweep(null_graph(rng), null_counts, NULL_RUNS, rng) for rng in rngs[1 : 1 + NULLS]]
    evidence = _evidence(whole, nulls)
    if 0.5 * CLEAR < evidence.strength < 2.0 * CLEAR:
        later = rngs[1 + NULLS : 1 + NULLS + MORE_NULLS]
        nulls += [sweep(null_graph(rng), null_counts, NULL_RUNS, rng) for rng in later]
        evidence = _evidence(whole, nulls)
    wanted = evidence.strength >= CLEAR or smallest > 1
    subsamples = _Subsamples(W, whole, evidence, rngs[-SUBSAMPLES:]) if wanted else None
    return _decide(whole, evidence, subsamples, smallest)


def _thinned(counts: Ints) -> Ints:
    """Return the numbers of clusters at which nulls are cut: their clearness is smooth and needs few."""
    kept = [1]
    for k in counts[1:].tolist():
        if k <= 6 or k >= 1.25 * kept[-1] or k == counts[-1]:
            kept.append(k)
    return np.array(kept)


@dataclass(frozen=True)
class _Evidence:
    """How far every number of clusters stands out against nulls."""

    gaps: Floats  # (K,)
    limits: Floats  # (K,) the largest gap that nulls have among themselves at about this number
    base: Floats  # (K,) mean loss of nulls
    measure: Measure = "cut"
    unweighed: float = 0.0  # the strength before valleys were looked at

    @property
    def best(self) -> int:
        """Position of the largest gap."""
        return int(np.argmax(self.gaps))

    @property
    def strength(self) -> float:
        """The largest gap over the limit there."""
        return float(self.gaps[self.best] / self.limits[self.best])


def _evidence(whole: Sweep, nulls: Sequence[Sweep]) -> _Evidence:
    """Return the gaps of cuts, weighed by valleys where they are not large, or of valleys where cuts are not clear."""
    cuts = _compared(whole, nulls, "cut")
    sure = np.clip((cuts.gaps / cuts.limits - 1.0) / (SURE - 1.0), 0.0, 1.0) ** 2
    weighed = replace(cuts, gaps=cuts.gaps * (1.0 - whole.valleys * (1.0 - sure)), unweighed=cuts.strength)
    if weighed.strength >= CLEAR:
        return weighed
    depths = _compared(whole, nulls, "valley")
    least = max(LEAST_SAMPLES, VALLEY_SHARE * len(whole.labels[0]))
    sizes = np.array([whole.smallest(position) for position in range(len(whole.counts))])
    plain = (whole.valleys < DEEP) & (sizes >= least) & (cuts.gaps > -cuts.limits)
    depths = replace(depths, gaps=np.where(plain, depths.gaps, 0.0), unweighed=cuts.strength)
    return depths if depths.strength >= CLEAR else weighed


def _compared(whole: Sweep, nulls: Sequence[Sweep], measure: Measure) -> _Evidence:
    losses = np.array([null.loss(measure, whole.counts) for null in nulls])
    base = losses.mean(axis=0)
    gaps = base - whole.loss(measure)
    gaps[whole.counts == 1] = 0.0
    among = np.array([np.delete(losses, i, axis=0).mean(axis=0) - losses[i] for i in range(len(losses))])
    spread = np.sqrt(_neighbors_mean(np.square(among).mean(axis=0)))
    return _Evidence(gaps, np.maximum(FLOORS[measure], SPREADS[measure] * spread), base, measure)


def _neighbors_mean(values: Floats) -> Floats:
    """Return the mean of every entry and those beside it; nulls are few, and similar at numbers close together."""
    padded = np.concatenate([values[1:2], values[1:], values[-1:]])  # one cluster has no spread
    middle = (padded[:-2] + padded[1:-1] + padded[2:]) / 3.0
    return np.concatenate([middle[:1], middle]) if len(values) > 1 else values


class _Subsamples:
    """Sweeps over subsamples: how stable the clusters are, and which number each subsample would choose."""

    def __init__(self, W: sp.csr_array, whole: Sweep, evidence: _Evidence, rngs: Sequence[np.random.Generator]) -> None:
        best = evidence.best
        gaps = evidence.gaps
        near = np.flatnonzero(gaps >= (1.0 - NEAR) * gaps[best])
        largest = max(2 * int(whole.counts[best]) + 2, 6, int(whole.counts[near[-1]]))
        self.tried: Bools = whole.counts <= largest
        counts = whole.counts[self.tried]
        n = W.shape[0]
        self.sweeps: list[Sweep] = []
        agreements = []
        for rng in rngs:
            samples = np.sort(rng.choice(n, int(SUBSAMPLED * n), replace=False))
            part = sweep(sp.csr_array(W[samples][:, samples]), counts, SUBSAMPLE_RUNS, rng)
            self.sweeps.append(part)
            agreements.append(
                [rand_index(labels[samples], others) for labels, others in zip(whole.labels, part.labels, strict=False)]
            )
        self.stability = np.full(len(whole.counts), -1.0)
        self.stability[self.tried] = np.mean(agreements, axis=0)
        self.stability[whole.counts == 1] = 1.0
        self._base = evidence.base[self.tried]
        self._measure = evidence.measure

    def votes(self) -> tuple[int, ...]:
        """Return the number that each subsample chooses."""
        answers = []
        for part in self.sweeps:
            gaps = self._base - part.loss(self._measure)
            gaps[part.counts == 1] = 0.0
            answers.append(int(part.counts[_clearest(part, gaps, self.stability[self.tried])]))
        return tuple(answers)


def _clearest(whole: Sweep, gaps: Floats, stability: Floats | None) -> int:
    """Return the position of the number to choose: near the largest gap, stable, and finer where that costs nothing."""
    best = int(np.argmax(gaps))
    cut = whole.relative_cut
    least = max(LEAST_SAMPLES, LEAST_SHARE * len(whole.labels[0]))
    clear = (gaps >= FINE * gaps[best]) & (gaps > 0)
    steady = np.zeros_like(clear)
    if stability is not None:
        # Coarser clusters take the place of the clearest ones only where subsamples do not repeat those.
        reach = whole.counts >= (whole.counts[best] if stability[best] >= STABLE else 1)
        steady = (stability >= STEADY) & reach & np.isfinite(gaps)
    separate = (whole.valleys <= SEPARATE) & (clear | steady) & (whole.counts > 1)
    for finest in np.flatnonzero(separate)[::-1].tolist():
        if whole.smallest(finest) >= least:
            return int(finest)
    if stability is not None and gaps[best] > 0 and cut[best] > 0.01:
        near = np.flatnonzero((gaps >= (1.0 - NEAR) * gaps[best]) & (whole.counts > 1))
        if len(near):
            best = int(near[stability[near] >= stability[near].max() - 0.01][-1])
    for finer in range(len(whole.counts) - 1, best, -1):
        if cut[finer] <= cut[best] + SAME_CUT and whole.smallest(finer) >= least:
            return finer
    return best


def _decide(whole: Sweep, evidence: _Evidence, subsamples: _Subsamples | None, smallest: int) -> ClusterCount:
    """Return the answer: the clearest number if it is clear enough and subsamples agree."""
    gaps = evidence.gaps
    strength = evidence.strength
    stability = None if subsamples is None else subsamples.stability
    allowed = np.where(whole.counts >= smallest, gaps, -np.inf) if smallest > 1 else gaps
    position = _clearest(whole, allowed, stability)
    candidate = int(whole.counts[position])
    votes = () if subsamples is None else subsamples.votes()
    agreement = float(np.mean([abs(vote - candidate) <= _tolerance(candidate) for vote in votes])) if votes else 0.0
    stable = float(stability[position]) if stability is not None else float("nan")
    none = candidate == 1 or strength < CLEAR or (strength < 2.0 and agreement < 0.6)
    chosen = 0 if none and smallest == 1 else position
    near = whole.counts[(gaps >= (1.0 - NEAR) * gaps.max()) & (whole.counts > 1)]
    k = int(whole.counts[chosen])
    others = [i for i in range(1, len(gaps)) if abs(whole.counts[i] - k) > max(1.0, 0.2 * k)]
    runner_up = int(whole.counts[max(others, key=lambda i: gaps[i])]) if others else None
    return ClusterCount(
        n_clusters=k,
        confidence=_confidence(none, agreement, stable, strength),
        strength=strength,
        unweighed=evidence.unweighed,
        counts=whole.counts,
        gaps=gaps,
        votes=votes,
        stability=stable,
        plausible=tuple(sorted({k, *near.tolist()})) if k > 1 else (1,),
        runner_up=runner_up,
        candidate=candidate,
        labels=whole.labels[chosen],
    )


def _tolerance(k: int) -> float:
    """Return how far a subsample's answer may be from k to count as agreement; large numbers are tried in steps."""
    return 0.1 * k if k <= DENSE_COUNTS else 0.2 * k


def _confidence(none: bool, agreement: float, stability: float, strength: float) -> Confidence:
    if none:
        return "none"
    if agreement >= 0.8 and stability >= STABLE and strength >= 2.0:
        return "high"
    return "moderate" if agreement >= 0.4 and stability >= 0.6 else "low"
