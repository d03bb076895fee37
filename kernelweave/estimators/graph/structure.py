"""Whether data have clusters, how many, and what each view has to do with them.

The graphs that are judged join every sample to ten neighbours, by the representations of the fit. Data without clusters
go through the same steps. Of many samples a random part is judged: it has the same clusters. The part is smaller where
memory is short.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from sklearn.metrics import adjusted_mutual_info_score
from sklearn.utils import check_random_state

from kernelweave.estimators.graph.fusion_views import (
    FEWEST_NEIGHBORS,
    NeighborSearch,
    ViewType,
    fit_views,
    of_present,
)
from kernelweave.foundation.array_types import Ints, Matrix
from kernelweave.foundation.errors import ParameterError
from kernelweave.foundation.memory import FREE, matrices_mib
from kernelweave.foundation.random_streams import streams
from kernelweave.foundation.threads import parallel_map
from kernelweave.inputs import Views
from kernelweave.kernels.chunked import in_blocks, some_samples
from kernelweave.kernels.structureless import (
    Structureless,
    StructurelessCounts,
    StructurelessGraph,
    StructurelessKernel,
    StructurelessTable,
)
from kernelweave.solvers.graph.cluster_count import (
    NULL_RUNS,
    RUNS,
    ClusterCount,
    Sweep,
    choose_count,
    counts_to_try,
    cut_shares,
    sweep,
    sweep_with,
)
from kernelweave.solvers.graph.fusion import Overlap, fuse_graphs, weighted_sum

#: Most samples that are judged: eigenvectors of graphs without clusters are found slowly in larger ones.
JUDGED = 1200
#: Fewer of more samples would tell too little.
LEAST_JUDGED = 300
# Arrays of the size of a view of the judged samples that are kept, and that come on top for a while: in all views while
# graphs are made, in one while data like them are. Of a kernel, a wide table and all samples together matrices.
KEPT_COPIES = 2
GRAPH_COPIES = 4
COPIES = 4
KERNEL_MATRICES = 8
COLUMN_MATRICES = 6
SAMPLE_MATRICES = 4.5
# Of these, what one graph takes while it is decomposed, and the graphs that are at the same time whatever the room.
DECOMPOSED = 2
LEAST_AT_ONCE = 2
#: The first limit of the number of clusters; it doubles while the clearest number is close to it.
FIRST_LIMIT = 20
LAST_LIMIT = 100
# Samples that a cluster must have in the mean.
SAMPLES_PER_CLUSTER = 6
#: Fewer samples than this say nothing about single views.
FEW_SAMPLES = 20
# A clearest split below this share of what is needed is not worth a word.
WORTH_SAYING = 0.5
# Numbers of clusters at which single views are cut besides the one of the fit.
VIEW_COUNTS = (2, 3, 4, 5, 6, 8, 10)
# A view has groups where its gap is above this, and above three times the spread of nulls.
VIEW_GAP = 0.2
# Sets of graphs without clusters that single views are compared with.
KEPT_NULLS = 2
# Shares of a view's own clearness that the joint clusters must keep to be supported, or not to be ignored.
SUPPORTED = 0.5
IGNORED = 0.3


@dataclass(frozen=True)
class ViewReport:
    """What one view has to do with the joint clusters."""

    name: str
    follows: float  # clearness of the joint clusters in this view, as a share of that of its own
    has_groups: bool
    own_count: int  # the clearest number of clusters in this view alone
    similarity: float  # adjusted mutual information of the joint clusters and the view's own


@dataclass(frozen=True)
class _OwnGroups:
    """What one view shows by itself."""

    sweep: Sweep
    has_groups: bool
    count: int  # the clearest number of clusters

    @property
    def labels(self) -> Ints:
        """The groups of the samples that the view has."""
        return self.sweep.labels[int(np.flatnonzero(self.sweep.counts == self.count)[0])]


class Judge:
    """The views of some samples, their graphs, and graphs of data without clusters like them."""

    def __init__(self, views: Views, types: Sequence[ViewType], random_state: int, room: float = np.inf) -> None:
        samples, drawing = streams(random_state, 2, "judged samples")
        n = views.n_samples
        count = judged_within(n, views.widths, types, room)
        self.samples = np.sort(samples.choice(n, count, replace=False)) if n > count else np.arange(n)
        self.names = views.names
        self._types = list(types)
        self._seed = random_state
        self._cells = drawing
        spare = room - judging_mib(count, views.widths, types)
        self._at_once = LEAST_AT_ONCE + int(min(max(0.0, spare) / matrices_mib(DECOMPOSED, count), JUDGED))
        whole = n <= count and not in_blocks(views.blocks[0])
        self.views = views if whole else _part(views, types, self.samples)
        self._overlap = None if self.views.observed is None else Overlap.of(self.views.observed)
        self.graphs = self._graphs(self.views)
        self.fused = self._sum(self.graphs)
        self._nulls: list[list[sp.csr_array]] = []
        self._own: dict[tuple[int, int], _OwnGroups] = {}
        self._structureless = [
            _without_structure(of_present(self.views, v, kind), kind) for v, kind in enumerate(self._types)
        ]

    @property
    def most_clusters(self) -> int:
        """The largest number of clusters that so many samples can show."""
        return len(self.samples) // SAMPLES_PER_CLUSTER

    def _sum(self, graphs: Sequence[sp.csr_array], positions: Sequence[int] | None = None) -> sp.csr_array:
        """Return the sum of the graphs of all views, or of some."""
        chosen = list(range(len(graphs))) if positions is None else list(positions)
        overlap = self._overlap
        if overlap is not None and len(chosen) < len(graphs):
            overlap = replace(overlap, patterns=overlap.patterns[:, chosen])
        return weighted_sum([graphs[position] for position in chosen], np.ones(len(chosen)), overlap)

    def _graphs(self, views: Views) -> list[sp.csr_array]:
        return fit_views(views, self._types, len(self.samples), NeighborSearch(self._cells, FEWEST_NEIGHBORS))[1]

    def null_graphs(self, rng: np.random.Generator) -> list[sp.csr_array]:
        """Return the graphs of all views of data without clusters."""
        n = len(self.samples)
        mixing = rng.standard_normal((n, n))
        if self.views.observed is None:
            blocks = [null.draw(mixing, rng) for null in self._structureless]
            del mixing  # the graphs take memory of their own
            return self._graphs(Views(self.names, tuple(blocks)))
        blocks = []
        for v, null in enumerate(self._structureless):
            there = self.views.present(v)
            blocks.append(among_all(null.draw(mixing[np.ix_(there, there)], rng), there, n, self._types[v]))
        return self._graphs(Views(self.names, tuple(blocks), self.views.observed))

    def null_graph(self, rng: np.random.Generator) -> sp.csr_array:
        """Return the fused graph of data without clusters."""
        return self._sum(self._kept_nulls(rng))

    def _kept_nulls(self, rng: np.random.Generator) -> list[sp.csr_array]:
        """Return the graphs of data without clusters; the first two are kept for the single views."""
        graphs = self.null_graphs(rng)
        if len(self._nulls) < KEPT_NULLS:
            self._nulls.append(graphs)
        return graphs

    def count(self, smallest: int, largest: int | None) -> ClusterCount:
        """Return the number of clusters; without a largest one the limit grows as needed.

        Where all views together show none, views that have the same groups each by itself may: the others are noise to
        them, or have groups that contradict. Their number counts if the joint graph has the same clusters.
        """
        every = range(len(self.names))
        count = self._count_in(every, smallest, largest)
        if count.confidence != "none" or len(self.names) == 1 or len(self.samples) < FEW_SAMPLES:
            return count
        self._look_at(every, 2)
        telling = self._agreeing([position for position in every if self._own_groups(position).has_groups])
        if not telling or len(telling) == len(self.names):
            return count
        theirs = self._count_in(telling, smallest, largest)
        if theirs.confidence == "none" or not self._joint_clusters_are(theirs):
            return count
        return replace(theirs, found_in=tuple(self.names[position] for position in telling))

    def _count_in(self, positions: Sequence[int], smallest: int, largest: int | None) -> ClusterCount:
        """Return the number of clusters that some of the views show together."""
        fused = self._sum(self.graphs, positions)
        limit = min(self.most_clusters, FIRST_LIMIT if largest is None else largest)
        while True:
            count = choose_count(
                fused,
                lambda rng: self._sum(self._kept_nulls(rng), positions),
                counts_to_try(max(1, limit)),
                self._seed,
                smallest=smallest,
            )
            most = min(self.most_clusters, LAST_LIMIT)
            if largest is not None or count.n_clusters <= 0.75 * limit or limit >= most:
                return count
            limit = min(2 * limit, most)

    def _agreeing(self, positions: Sequence[int]) -> list[int]:
        """Return the most views whose own groups agree with each other; none where several sets are as large."""
        if len(positions) < 2:
            return list(positions)
        alike = np.eye(len(positions), dtype=bool)
        for i, one in enumerate(positions):
            for j, other in enumerate(positions[:i]):
                alike[i, j] = alike[j, i] = self._same_groups(one, other)
        _, part = connected_components(sp.csr_array(alike), directed=False)
        sizes = np.bincount(part)
        largest = int(sizes.argmax())
        if (sizes == sizes[largest]).sum() > 1:
            return []
        return [position for position, number in zip(positions, part.tolist(), strict=True) if number == largest]

    def _same_groups(self, one: int, other: int) -> bool:
        """Return whether two views have the same groups, as far as they have the same samples."""
        labels = []
        for position in (one, other):
            own = np.full(len(self.samples), -1)
            own[self.views.present(position)] = self._own_groups(position).labels
            labels.append(own)
        both = (labels[0] >= 0) & (labels[1] >= 0)
        return bool(adjusted_mutual_info_score(labels[0][both], labels[1][both]) >= SUPPORTED)

    def _joint_clusters_are(self, count: ClusterCount) -> bool:
        """Return whether the graph of all views has the clusters that some of them show."""
        (rng,) = streams(self._seed, 1, "view checks")
        fused = fuse_graphs(self.graphs, count.n_clusters, observed=self.views.observed)
        joint = sweep(fused.affinity, np.array([1, count.n_clusters]), RUNS, rng)
        return adjusted_mutual_info_score(count.labels, joint.labels[-1]) >= SUPPORTED

    def view_reports(self, labels: Ints, n_clusters: int) -> list[ViewReport]:
        """Return what every view has to do with joint clusters of the judged samples."""
        self._look_at(range(len(self.names)), n_clusters)
        return [self._view_report(position, labels, n_clusters) for position in range(len(self.names))]

    def _view_report(self, position: int, labels: Ints, n_clusters: int) -> ViewReport:
        there = self.views.present(position)
        graph = self._among_present(self.graphs[position], there)
        labels = labels[there]
        own = self._own_groups(position, n_clusters)
        cut, expected = cut_shares(graph.tocoo(), np.asarray(graph.sum(axis=1)).ravel(), labels, n_clusters)
        at = int(np.flatnonzero(own.sweep.counts == max(n_clusters, 2))[0])
        return ViewReport(
            name=self.names[position],
            follows=_share(expected - cut, float(own.sweep.expected[at] - own.sweep.cut[at])),
            has_groups=own.has_groups,
            own_count=own.count,
            similarity=float(adjusted_mutual_info_score(labels, own.sweep.labels[at])),
        )

    def _among_present(self, graph: sp.csr_array, there: Ints) -> sp.csr_array:
        """Return a view's graph of the samples that it has."""
        return graph if self.views.observed is None else sp.csr_array(graph[there][:, there])

    def _own_groups(self, position: int, n_clusters: int = 2) -> _OwnGroups:
        """Return what a view shows by itself; ``n_clusters`` is among the numbers tried."""
        self._look_at([position], n_clusters)
        return self._own[position, max(n_clusters, 2)]

    def _keep_nulls(self) -> list[np.random.Generator]:
        """Make the null graphs unless they are there, and return the streams of the views."""
        rngs = streams(self._seed, KEPT_NULLS + len(self.names), "view checks")
        while len(self._nulls) < KEPT_NULLS:
            self._nulls.append(self.null_graphs(rngs[len(self._nulls)]))
        return rngs[KEPT_NULLS:]

    def _look_at(self, positions: Sequence[int], n_clusters: int) -> None:
        """Find what each of some views shows by itself.

        Graphs are looked at at the same time: eigenvectors and runs of k-means need the interpreter for moments only.
        """
        keys = [(position, max(n_clusters, 2)) for position in positions]
        keys = [key for key in keys if key not in self._own]
        rngs = self._keep_nulls()
        counts = self._counts(n_clusters)
        looks = [(graph, rngs[position].spawn(len(counts))) for position, _ in keys for graph in self._alone(position)]

        def look(task: tuple[sp.csr_array, list[np.random.Generator]]) -> Sweep:
            graph, seeds = task
            return sweep_with(graph, counts, NULL_RUNS, seeds)

        # As many threads as there are matrices that fit.
        batches = [looks[start : start + self._at_once] for start in range(0, len(looks), self._at_once)]
        sweeps = (found for batch in batches for found in parallel_map(look, batch, even_few=True))
        for key in keys:
            self._own[key] = _groups_beside(*(next(sweeps) for _ in range(1 + len(self._nulls))))

    def _alone(self, position: int) -> list[sp.csr_array]:
        """Return the graph of a view among the samples that it has, and the same of data without clusters."""
        there = self.views.present(position)
        return [self._among_present(graphs[position], there) for graphs in (self.graphs, *self._nulls)]

    def _counts(self, n_clusters: int) -> Ints:
        """Return the numbers of clusters that a view is looked at with."""
        most = max(2, self.most_clusters)
        return np.array([1, *sorted({*(k for k in VIEW_COUNTS if k <= most), max(n_clusters, 2)})])


def judged_within(n_samples: int, widths: Sequence[int], types: Sequence[ViewType], room: float) -> int:
    """Return how many of the samples are judged within ``room`` MiB; an error where they would tell too little."""
    most = min(n_samples, JUDGED)
    if judging_mib(most, widths, types) <= max(FREE, room):
        return most
    count = bisect_right(range(1, most), max(FREE, room), key=lambda n: judging_mib(n, widths, types))
    if count >= LEAST_JUDGED:
        return count
    least = min(most, LEAST_JUDGED)
    needed = judging_mib(least, widths, types)
    raise ParameterError(
        f"memory_limit leaves {room:.3g} MiB to look for clusters and to check views, and {least} samples take "
        f"{needed:.3g} MiB; fewer tell too little. Raise memory_limit by {np.ceil(needed - room):g}, or give "
        f"n_clusters (GraphFusionClustering: and check_views=False). {count:,} samples would fit."
    )


def judged_bytes(n_judged: int, widths: Sequence[int], types: Sequence[ViewType]) -> float:
    """Return the bytes that are kept of judged samples."""
    sizes = [n_judged * (n_judged if kind == "kernel" else width) for width, kind in zip(widths, types, strict=True)]
    dense = [size for size, kind in zip(sizes, types, strict=True) if kind in ("table", "kernel")]
    return 8.0 * KEPT_COPIES * sum(dense)


def judging_mib(n_judged: int, widths: Sequence[int], types: Sequence[ViewType]) -> float:
    """Return the MiB that it takes to judge so many samples."""
    matrix = n_judged**2
    graphs = SAMPLE_MATRICES * matrix
    alone = 0
    for width, kind in zip(widths, types, strict=True):
        if kind == "kernel":
            alone = max(alone, KERNEL_MATRICES * matrix)
        elif kind == "table":
            graphs += GRAPH_COPIES * n_judged * width
            alone = max(alone, COPIES * n_judged * width + COLUMN_MATRICES * min(width, n_judged) ** 2)
    return (judged_bytes(n_judged, widths, types) + 8.0 * max(graphs, alone)) / 2**20


def _groups_beside(own: Sweep, *nulls: Sweep) -> _OwnGroups:
    """Return whether the groups of a view are clearer than those of data without clusters."""
    losses = np.array([null.loss() for null in nulls])
    gaps = losses.mean(axis=0) - own.loss()
    gaps[0] = 0.0
    noise = 3.0 * float(np.abs(losses - losses.mean(axis=0)).max())
    clearest = int(np.argmax(gaps))
    return _OwnGroups(own, bool(gaps[clearest] > max(VIEW_GAP, noise)), int(own.counts[clearest]))


def settle_n_clusters(
    estimator: Any, judged: Callable[[], tuple[Views, Sequence[ViewType]]], room: float = np.inf
) -> int:
    """Return the number of clusters of an estimator, chosen where it is "auto", and keep it with what speaks for it.

    Sets ``n_clusters_``, ``confidence_`` and ``verdict_``; ``judged`` gives the views that the number is read
    off, and their types. ``room`` MiB may be taken.
    """
    if isinstance(estimator.n_clusters, str):
        views, types = judged()
        seed = int(check_random_state(estimator.random_state).randint(np.iinfo(np.int32).max))
        part = estimator._keeper.part("count")
        count = part.once(ClusterCount, lambda: Judge(views, types, seed, room).count(1, None))
        k = count.n_clusters
        estimator.confidence_ = count.confidence
        estimator.verdict_ = verdict(count, views.n_samples)
    else:
        k = int(estimator.n_clusters)
        estimator.confidence_ = "given"
        estimator.verdict_ = as_asked(k)
    estimator.n_clusters_ = k
    return k


def as_asked(k: int) -> str:
    """Return the sentence about a number of clusters that was given."""
    return f"{k} clusters, as requested." if k > 1 else "1 cluster, as requested."


def view_warnings(reports: Sequence[ViewReport], n_clusters: int) -> list[str]:
    """Return a sentence for every view that misleads."""
    if n_clusters == 1:
        return [
            f"View {report.name!r} alone has groups (about {report.own_count}), but not together with the other views."
            for report in reports
            if report.has_groups
        ]
    messages = [
        f"View {report.name!r} has groups of its own (about {report.own_count}) that contradict the joint clusters."
        if report.has_groups
        else f"View {report.name!r} shows no groups and does not support the joint clusters."
        for report in reports
        if report.follows < IGNORED
    ]
    follows = np.array([report.follows for report in reports])
    supporting = np.flatnonzero(follows >= SUPPORTED)
    if len(supporting) == 1 and (np.delete(follows, supporting) < IGNORED).all():
        messages.append(f"The clusters are those of view {reports[int(supporting[0])].name!r} alone.")
    elif len(supporting) == 0:
        messages.append("No view by itself shows the joint clusters well.")
    return messages


def verdict(count: ClusterCount, n_samples: int) -> str:
    """Return the answer in a sentence."""
    if len(count.counts) == 1:
        return (
            f"No search for clusters: {n_samples} samples are too few to tell clusters from chance. "
            "Give n_clusters to cluster them anyway."
        )
    clearest = (
        f"the clearest split ({count.candidate} clusters) is {_times(count.strength)} as clear as the clearest in "
        "structureless data of the same shape"
    )
    k = count.n_clusters
    if count.confidence == "none":
        if k > 1:
            return f"No clear clusters: {clearest}. The {k} clusters are the best of the numbers allowed."
        if count.votes:
            votes = _listed([str(vote) for vote in sorted(count.votes)])
            return f"No clear clusters: {clearest}, and subsamples chose {votes}."
        if count.unweighed >= count.needed:
            return (
                f"No clear clusters: a split is {_times(count.unweighed)} as clear as the clearest in structureless "
                "data of the same shape, but its clusters merge into each other: this looks like a continuum."
            )
        if count.candidate == 1 or count.strength < WORTH_SAYING:
            return "No clusters found: no split is clearer than those of structureless data of the same shape."
        return f"No clusters found: {clearest}."
    where = _in_views(count.found_in)
    return (
        f"{k} clusters, {count.confidence} confidence: {where}the split is {_times(count.strength)} as clear as the "
        f"clearest in structureless data of the same shape; {count.agreeing} of {len(count.votes)} subsamples agree; "
        f"{_alternatives(count)}."
    )


def _in_views(names: Sequence[str]) -> str:
    if not names:
        return ""
    return f"in {'view' if len(names) == 1 else 'views'} {_listed([repr(name) for name in names])} "


def _alternatives(count: ClusterCount) -> str:
    if len(count.plausible) > 1:
        return f"{count.plausible[0]} to {count.plausible[-1]} clusters are about as clear"
    return f"next best {count.runner_up}" if count.runner_up is not None else "no other number was tried"


def _times(strength: float) -> str:
    return f"{strength:.0f} times" if strength >= 9.5 else f"{strength:.1f} times"


def _listed(words: Sequence[str]) -> str:
    return ", ".join(words[:-1]) + f" and {words[-1]}" if len(words) > 1 else words[0]


def _share(part: float, whole: float) -> float:
    """Return part / whole within 0 and 1; the joint clusters may be clearer than those found in the view."""
    return float(np.clip(part / whole, 0.0, 1.0)) if whole > 0 else 0.0


def _part(views: Views, types: Sequence[ViewType], samples: Ints) -> Views:
    """Return some samples of every view; of kernels and graphs rows and columns."""
    if in_blocks(views.blocks[0]):
        return Views(views.names, tuple(some_samples(block, samples) for block in views.blocks))
    part = views.take(samples)
    blocks = []
    for block, kind in zip(part.blocks, types, strict=True):
        blocks.append(block[:, samples] if kind in ("kernel", "graph") else block)
    return replace(part, blocks=tuple(blocks))


def among_all(block: Matrix, there: Ints, n_samples: int, kind: ViewType) -> Matrix:
    """Return a view of some samples as one of all, NaN where the others are; graphs without edges there."""
    if kind == "graph" or sp.issparse(block):
        entries = sp.coo_array(block)
        columns = there[entries.col] if kind == "graph" else entries.col
        width = n_samples if kind == "graph" else block.shape[1]
        return sp.csr_array((entries.data, (there[entries.row], columns)), shape=(n_samples, width))
    whole = np.full((n_samples, n_samples if kind == "kernel" else block.shape[1]), np.nan)
    if kind == "kernel":
        whole[np.ix_(there, there)] = block
    else:
        whole[there] = block
    return whole


def _without_structure(block: Matrix, kind: ViewType) -> Structureless:
    if kind == "graph":
        return StructurelessGraph(sp.csr_array(block))
    if kind == "counts":
        return StructurelessCounts(block)
    table = np.asarray(block.toarray() if sp.issparse(block) else block, dtype=np.float64)
    return StructurelessKernel(table) if kind == "kernel" else StructurelessTable(table)
