"""The number of clusters of a graph: how clear its cuts are beside those of graphs without clusters.

Clearness   q(k) = Q(k) / (1 - 1/k), Q the modularity of the k clusters: 0 for a random split, 1 if no edge is cut
Gap         G(k) = mean log(1 - q0(k) + e) - log(1 - q(k) + e) over null graphs, which the caller makes from data of
            the same shape without clusters by the steps that made the graph
Choice      1 if the largest gap is not clearly above those that nulls have among themselves; else, of the numbers
            within 5 % of the largest gap, the one whose clusters are the most stable under subsamples of 80 %, and then
            a finer one that cuts no more
Cost        a sweep over k for the graph and for every subsample, a shorter one for every null
Source      gap after Tibshirani, Walther and Hastie, J. R. Statist. Soc. B 2001; modularity after Newman and Girvan,
            Phys. Rev. E 2004. The constants were chosen on synthetic cases, not on single sets.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy.sparse as sp
from sklearn.metrics import adjusted_rand_score

from kernelweave.foundation.array_types import Bools, Floats, Ints
from kernelweave.foundation.random_streams import streams
from kernelweave.foundation.threads import parallel_map
from kernelweave.solvers.graph.fusion import graph_eigenvectors, kmeans_on, unit_rows

Confidence = Literal["high", "moderate", "low", "none"]
NullGraph = Callable[[np.random.Generator], sp.csr_array]

# Keeps the logarithm of a perfect clearness finite.
SOFTENING = 0.05
# Numbers of clusters whose gap is within this share of the largest are about as clear.
NEAR = 0.05
# A finer clustering is preferred if it cuts no more than this share of the edges beyond the coarser one.
SAME_CUT = 0.002
# A gap must be this much above what nulls have among themselves, which counts as no less than the floor.
CLEAR = 1.3
FLOOR = 0.03
# Graphs without clusters, more where they do not decide, and subsamples with the share of samples in each.
NULLS = 3
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

    @property
    def clearness(self) -> Floats:
        """Q of every number of clusters, 0 for one cluster."""
        most = np.where(self.counts > 1, 1.0 - 1.0 / self.counts, 1.0)
        return np.where(self.counts > 1, (self.expected - self.cut) / most, 0.0)

    @property
    def relative_cut(self) -> Floats:
        """The cut as a share of what a random graph would cut, 1 for one cluster."""
        return np.divide(self.cut, self.expected, out=np.ones_like(self.cut), where=self.expected > 0)

    def loss(self, counts: Ints | None = None) -> Floats:
        """Return log(1 - q + e), at other numbers of clusters by interpolation."""
        values = np.log(np.maximum(1.0 - self.clearness, 0.0) + SOFTENING)
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
    counts: Ints  # numbers tried
    gaps: Floats  # (K,) their gaps
    votes: tuple[int, ...]  # what each subsample chose
    stability: float  # mean adjusted Rand index with the clusters of subsamples; NaN where none were drawn
    plausible: tuple[int, ...]  # numbers about as clear, with the one chosen
    runner_up: int | None  # the clearest number that is not close to the one chosen
    candidate: int  # the clearest number, also where it was not clear enough
    labels: Ints  # of the graph for the number chosen

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
    n = W.shape[0]
    vectors = graph_eigenvectors(W, int(counts.max())).vectors
    degrees = np.asarray(W.sum(axis=1)).ravel()
    edges = W.tocoo()
    seeds = rng.spawn(len(counts))

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
    return Sweep(counts, labels, np.array(cut), np.array(expected))


def cut_shares(edges: sp.coo_array, degrees: Floats, labels: Ints, n_clusters: int) -> tuple[float, float]:
    """Return the share of edge weight between clusters, and what it is in a random graph of the same degrees."""
    total = float(degrees.sum())
    if total <= 0:
        return 0.0, 0.0
    inside = labels[edges.row] == labels[edges.col]
    shares = np.bincount(labels, degrees, n_clusters) / total
    return 1.0 - float(edges.data[inside].sum()) / total, 1.0 - float(shares @ shares)


def choose_count(
    W: sp.csr_array, null_graph: NullGraph, counts: Ints, random_state: int, *, smallest: int = 1
) -> ClusterCount:
    """Return the number of clusters of a graph; ``smallest`` is the least number that may be answered."""
    rngs = streams(random_state, 2 + NULLS + MORE_NULLS + SUBSAMPLES, "reference data")
    whole = sweep(W, counts, RUNS, rngs[0])
    null_counts = _thinned(counts)
    nulls = [sweep(null_graph(rng), null_counts, NULL_RUNS, rng) for rng in rngs[2 : 2 + NULLS]]
    gaps, limit = _gaps(whole, nulls)
    if 0.5 * limit < gaps.max() < 2.5 * limit:
        later = rngs[2 + NULLS : 2 + NULLS + MORE_NULLS]
        nulls += [sweep(null_graph(rng), null_counts, NULL_RUNS, rng) for rng in later]
        gaps, limit = _gaps(whole, nulls)
    strength = float(gaps.max() / limit)
    base = np.mean([null.loss(counts) for null in nulls], axis=0)
    wanted = strength >= CLEAR or smallest > 1
    subsamples = _Subsamples(W, whole, base, gaps, rngs[-SUBSAMPLES:]) if wanted else None
    return _decide(whole, gaps, strength, subsamples, smallest)


def _thinned(counts: Ints) -> Ints:
    """Return the numbers of clusters at which nulls are cut: their clearness is smooth and needs few."""
    kept = [1]
    for k in counts[1:].tolist():
        if k <= 6 or k >= 1.25 * kept[-1] or k == counts[-1]:
            kept.append(k)
    return np.array(kept)


def _gaps(whole: Sweep, nulls: Sequence[Sweep]) -> tuple[Floats, float]:
    """Return the gap of every number of clusters, and the largest that nulls have among themselves."""
    losses = np.array([null.loss(whole.counts) for null in nulls])
    gaps = losses.mean(axis=0) - whole.loss()
    gaps[whole.counts == 1] = 0.0
    among = np.array([np.delete(losses, i, axis=0).mean(axis=0) - losses[i] for i in range(len(losses))])
    among[:, whole.counts == 1] = 0.0
    return gaps, max(FLOOR, float(among.max()), 3.0 * float(among[:, 1:].std()))


class _Subsamples:
    """Sweeps over subsamples: how stable the clusters are, and which number each subsample would choose."""

    def __init__(
        self, W: sp.csr_array, whole: Sweep, base: Floats, gaps: Floats, rngs: Sequence[np.random.Generator]
    ) -> None:
        best = int(np.argmax(gaps))
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
                [
                    adjusted_rand_score(labels[samples], others)
                    for labels, others in zip(whole.labels, part.labels, strict=False)
                ]
            )
        self.stability = np.full(len(whole.counts), -1.0)
        self.stability[self.tried] = np.mean(agreements, axis=0)
        self.stability[whole.counts == 1] = 1.0
        self._base = base[self.tried]

    def votes(self) -> tuple[int, ...]:
        """Return the number that each subsample chooses."""
        answers = []
        for part in self.sweeps:
            gaps = self._base - part.loss()
            gaps[part.counts == 1] = 0.0
            answers.append(int(part.counts[_clearest(part, gaps, self.stability[self.tried])]))
        return tuple(answers)


def _clearest(whole: Sweep, gaps: Floats, stability: Floats | None) -> int:
    """Return the position of the number to choose: near the largest gap, stable, and finer where that costs nothing."""
    best = int(np.argmax(gaps))
    cut = whole.relative_cut
    if stability is not None and gaps[best] > 0 and cut[best] > 0.01:
        near = np.flatnonzero((gaps >= (1.0 - NEAR) * gaps[best]) & (whole.counts > 1))
        if len(near):
            best = int(near[stability[near] >= stability[near].max() - 0.01][-1])
    least = max(LEAST_SAMPLES, LEAST_SHARE * len(whole.labels[0]))
    for finer in range(len(whole.counts) - 1, best, -1):
        if cut[finer] <= cut[best] + SAME_CUT and whole.smallest(finer) >= least:
            return finer
    return best


def _decide(whole: Sweep, gaps: Floats, strength: float, subsamples: _Subsamples | None, smallest: int) -> ClusterCount:
    """Return the answer: the clearest number if it is clear enough and subsamples agree."""
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
    if agreement >= 0.8 and stability >= 0.85 and strength >= 2.0:
        return "high"
    return "moderate" if agreement >= 0.4 and stability >= 0.6 else "low"
