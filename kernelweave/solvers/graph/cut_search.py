"""Graph cuts by global search: one cluster more at a time, split off where the objective suffers least.

Objective   normalized cut, ratio association or ratio cut, as the sum of the clusters' costs (partitions.graph_moves)
Input       a graph and the seeds tried in each cluster: all its nodes (exact), a few far apart (fast), exemplars
Method      a seed's cluster grows inside the seed's own, always by the node with the largest share of its edges
            inside, and stops where the objective is best. The best split over all seeds is carried out; then single
            nodes move while the objective improves, and two clusters are joined and another split where that helps
Cost        a cluster of m nodes and e edges: O(e log e) per seed; clusters that did not change are not tried again
Guarantee   every step after a split improves the objective; the outcome does not depend on the number of threads
Source      MSc 4.3 and 5.5 for the objectives and the search; Dhillon, Guan and Kulis, IEEE TPAMI 2007, for the moves
"""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Literal

import numpy as np

from kernelweave.foundation.array_types import Floats, Ints
from kernelweave.foundation.checkpoints import NOTHING, Keeper, State
from kernelweave.partitions.graph_moves import GraphMoves

Seeds = Literal["exact", "fast", "exemplars"]
# Seeds tried between two checks of the clock.
AT_A_TIME = 512
# Sweeps of single moves, joins tried in a round, and rounds of joining and splitting after each stage.
MAX_SWEEPS = 1000
JOINS = 6
ROUNDS = 1000
# Names of two candidates of a contest; rivals come with names of their own.
SEARCH = "search"
COMBINED = "combined"


@dataclass(frozen=True)
class CutPath:
    """Partitions into 1, 2, ... clusters and the objective of each."""

    labels: tuple[Ints, ...]
    values: tuple[float, ...]
    complete: bool  # every seed was tried and every polish came to its end


@dataclass(frozen=True)
class CutContest:
    """A search beside its rivals: the best of them at every stage, and what each has at the last one."""

    path: CutPath
    alone: CutPath  # the search as it is without rivals
    winner: str  # of the last stage
    values: dict[str, float]  # by candidate, at the last stage


@dataclass(frozen=True)
class _Stage:
    """The labels of one stage."""

    labels: Ints
    complete: bool  # until then every seed was tried and every polish came to its end


@dataclass(frozen=True)
class _ContestStage:
    """A stage of a contest: what the search finds alone, and from the last winner if that was another."""

    alone: _Stage
    combined: _Stage | None
    winner: str


class _Splits:
    """The best split of every cluster, kept for clusters that stay as they are."""

    def __init__(
        self, moves: GraphMoves, how: Seeds, exemplars: Ints | None, deadline: float, keeper: Keeper = NOTHING
    ) -> None:
        self.moves = moves
        self.how = how
        self.exemplars = exemplars
        self.deadline = deadline
        self.late = False
        self._keeper = keeper
        state = keeper.known() or {"known": {}, "cluster": "", "changes": None, "tried": 0}
        self._begun: State = state  # the cluster whose seeds were tried when the run was stopped
        self._known: dict[str, Any] = state["known"]  # least change and seed, by the digest of a cluster

    def best(self, labels: Ints, stats: Floats) -> tuple[float, int]:
        """Return the least change of the cost by one split, and its seed."""
        order = np.argsort(labels, kind="stable")
        ends = np.cumsum(np.bincount(labels, minlength=stats.shape[1]))
        members = np.split(order, ends[:-1])
        splits = [self._of(labels, stats, each) for each in members if len(each) > 1]
        return min(splits, key=lambda split: split[0], default=(np.inf, -1))

    def _of(self, labels: Ints, stats: Floats, members: Ints) -> tuple[float, int]:
        key = blake2b(members.tobytes(), digest_size=16).hexdigest()
        if key not in self._known:
            seeds = self._seeds(labels, members)
            if len(seeds) == 0:
                return np.inf, -1
            changes = self._changes(labels, stats, seeds, key)
            at = int(np.argmax(changes <= changes.min() + self.moves.tolerance))
            self._known[key] = (float(changes[at]), int(seeds[at]))
        change, seed = self._known[key]
        return change, seed

    def _changes(self, labels: Ints, stats: Floats, seeds: Ints, key: str) -> Floats:
        """Return what each seed reaches, some at a time; infinite for those the clock left out."""
        changes = np.full(len(seeds), np.inf)
        first = 0
        if self._begun["cluster"] == key and len(self._begun["changes"]) == len(seeds):  # fewer once time has run out
            changes = self._begun["changes"]
            first = self._begun["tried"]
        for start in range(first, len(seeds), AT_A_TIME):
            chunk = slice(start, start + AT_A_TIME)
            changes[chunk] = self.moves.splits(labels, stats, seeds[chunk])
            self.late = self.late or time.monotonic() > self.deadline
            if self.late:
                break
            self._keeper.keep(dict, known=self._known, cluster=key, changes=changes, tried=start + AT_A_TIME)
        return changes

    def _seeds(self, labels: Ints, members: Ints) -> Ints:
        usable = members[self.moves.masses[members] > 0]
        self.late = self.late or time.monotonic() > self.deadline
        if len(usable) < 2:
            return usable[:0]
        if self.how == "exact" and not self.late:
            return usable
        components = self.moves.components(usable)
        chosen = np.intersect1d(usable, self.exemplars) if self.exemplars is not None else usable[:0]
        if len(components) > 1:  # a component is split off at no cost
            chosen = np.union1d(chosen, components)
        if self.exemplars is None or len(chosen) == 0:
            chosen = np.union1d(chosen, self.moves.ends(labels, int(usable[0])))
        return chosen


def search_cuts(
    moves: GraphMoves,
    *,
    n_clusters: int,
    how: Seeds = "fast",
    exemplars: Ints | None = None,
    polish: bool = True,
    deadline: float = np.inf,
    keeper: Keeper = NOTHING,
    on_stage: Callable[[Iterator[int]], Iterator[int]] = iter,
) -> CutPath:
    """Partition the nodes into 1 to ``n_clusters`` clusters in turn.

    After ``deadline`` (of ``time.monotonic``) new splits are looked for as in the fast search and nothing is polished.
    """
    search = _Stages(moves, _Splits(moves, how, exemplars, deadline, keeper.part("splits")), polish)
    path = [np.zeros(moves.n_nodes, dtype=np.int64)]
    complete = True
    for k in on_stage(iter(range(2, n_clusters + 1))):
        part = keeper.part(f"{k} clusters")
        stage = part.once(_Stage, lambda k=k, part=part: search.next(path[-1], k, part))  # type: ignore[misc]
        complete &= stage.complete
        path.append(stage.labels)
    return _path(moves, path, complete)


def search_beside_rivals(
    moves: GraphMoves,
    rivals: Mapping[str, CutPath],
    *,
    n_clusters: int,
    how: Seeds = "exact",
    polish: bool = True,
    deadline: float = np.inf,
    keeper: Keeper = NOTHING,
    on_stage: Callable[[Iterator[int]], Iterator[int]] = iter,
) -> CutContest:
    """Search as :func:`search_cuts` does, and go over to a rival at every stage at which that is better.

    A path of best splits can be led astray. The search also goes on alone, to tell what it finds by itself; both share
    the splits they know, and are one as long as no rival is better. The candidates at a stage, of which the first of
    equals wins: ``"search"``, the search alone; the rivals, by their names; ``"combined"``, the search from the winner
    of the stage before, where that was another.
    """
    search = _Stages(moves, _Splits(moves, how, None, deadline, keeper.part("splits")), polish)
    alone = [np.zeros(moves.n_nodes, dtype=np.int64)]
    best = [alone[0]]
    winner = SEARCH
    complete = True

    def candidates_of(k: int, mine: Ints, combined: _Stage | None) -> dict[str, Ints]:
        found = {SEARCH: mine} | {name: rival.labels[k - 1] for name, rival in rivals.items()}
        return found if combined is None else found | {COMBINED: combined.labels}

    def one_more(k: int, part: Keeper) -> _ContestStage:
        mine = part.part(SEARCH).once(_Stage, lambda: search.next(alone[-1], k, part.part(SEARCH)))
        combined = None if winner == SEARCH else search.next(best[-1], k, part.part(COMBINED))
        return _ContestStage(mine, combined, _best(moves, candidates_of(k, mine.labels, combined), k))

    candidates = candidates_of(1, alone[0], None)
    for k in on_stage(iter(range(2, n_clusters + 1))):
        part = keeper.part(f"{k} clusters")
        stage = part.once(_ContestStage, lambda k=k, part=part: one_more(k, part))  # type: ignore[misc]
        complete &= stage.alone.complete and (stage.combined is None or stage.combined.complete)
        candidates = candidates_of(k, stage.alone.labels, stage.combined)
        winner = stage.winner
        alone.append(candidates[SEARCH])
        best.append(candidates[winner])
    values = {name: moves.value(labels, n_clusters) for name, labels in candidates.items()}
    return CutContest(_path(moves, best, complete), _path(moves, alone, complete), winner, values)


class _Stages:
    """One cluster more at a time: the best split, polished where asked for and while time is left."""

    def __init__(self, moves: GraphMoves, splits: _Splits, polish: bool) -> None:
        self.moves = moves
        self.splits = splits
        self.polish = polish
        self.ended = True  # every polish came to its end

    def next(self, labels: Ints, k: int, keeper: Keeper) -> _Stage:
        """Return labels with one cluster more, k in all."""
        known = keeper.part("polish").known()
        labels = _split(self.moves, self.splits, labels, k) if known is None else known["labels"]
        if self.polish and not self.splits.late:
            labels, ended = improve(self.moves, self.splits, labels, k, keeper.part("polish"))
            self.ended &= ended
        return _Stage(labels, self.ended and not self.splits.late)


def _path(moves: GraphMoves, labels: list[Ints], complete: bool) -> CutPath:
    """Return the solutions with their objectives."""
    values = (moves.value(each, k) for k, each in enumerate(labels, start=1))
    return CutPath(tuple(labels), tuple(values), complete)


def _best(moves: GraphMoves, candidates: Mapping[str, Ints], k: int) -> str:
    """Return the name of the labels of least cost, the first of equals."""
    winner = ""
    least = np.inf
    for name, labels in candidates.items():
        cost = float(moves.costs(moves.stats(labels, k)).sum())
        if cost < least - moves.tolerance:
            winner = name
            least = cost
    return winner


def polish_cut(
    moves: GraphMoves, labels: Ints, *, n_clusters: int, how: Seeds, deadline: float, keeper: Keeper = NOTHING
) -> CutPath:
    """Improve a partition by single moves, joins and splits."""
    splits = _Splits(moves, how, None, deadline, keeper.part("splits"))
    labels, ended = improve(moves, splits, labels.astype(np.int64), n_clusters, keeper.part("polish"))
    return CutPath((labels,), (moves.value(labels, n_clusters),), ended and not splits.late)


def improve(moves: GraphMoves, splits: _Splits, labels: Ints, k: int, keeper: Keeper = NOTHING) -> tuple[Ints, bool]:
    """Move single nodes, then join two clusters and split another, as long as the cost falls."""
    known = keeper.known()
    if known is None:
        labels, ended = moves.polished(labels, k, MAX_SWEEPS)
        rounds = 0
        keeper.keep(dict, labels=labels, ended=ended, rounds=rounds)
    else:
        labels = known["labels"]
        ended = known["ended"]
        rounds = known["rounds"]
    while rounds < ROUNDS:
        better = _exchange(moves, splits, labels, k)
        if better is None:
            return labels, ended
        labels = better
        rounds += 1
        keeper.keep(dict, labels=labels, ended=ended, rounds=rounds)
    return labels, False


def _exchange(moves: GraphMoves, splits: _Splits, labels: Ints, k: int) -> Ints | None:
    """Return better labels with two clusters joined and one split, or None where none of the cheapest joins pays."""
    stats = moves.stats(labels, k)
    cost = float(moves.costs(stats).sum())
    first, second, joins = moves.merge_costs(labels, stats)
    for at in np.argsort(joins, kind="stable")[:JOINS].tolist():
        joined = _joined(labels, int(first[at]), int(second[at]), k)
        change, _ = splits.best(joined, moves.stats(joined, k - 1))
        if splits.late or joins[at] + change >= -moves.tolerance:
            continue
        candidate, _ = moves.polished(_split(moves, splits, joined, k), k, MAX_SWEEPS)
        if float(moves.costs(moves.stats(candidate, k)).sum()) < cost - moves.tolerance:
            return candidate
    return None


def _joined(labels: Ints, first: int, second: int, k: int) -> Ints:
    """Return labels 0..k-2 with ``second`` merged into ``first``; the last cluster takes the free number."""
    target = np.arange(k)
    target[second] = first
    target[k - 1] = second if second != k - 1 else first
    return target[labels]


def _split(moves: GraphMoves, splits: _Splits, labels: Ints, k: int) -> Ints:
    """Return labels with the best split carried out; the new cluster is k - 1."""
    stats = moves.stats(labels, k - 1)
    _, seed = splits.best(labels, stats)
    labels = labels.copy()
    labels[moves.grown(labels, stats, seed)] = k - 1
    return labels
