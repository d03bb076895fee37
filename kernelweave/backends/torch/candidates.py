"""Runs of kernel k-means from every candidate of a stage of global search, in batches on the device.

All runs of a batch take a step together. Sums of clusters that changed are products of indicators with the kernel in
fixed point (``digits.py``), so that errors do not grow with the number of steps. The first digits decide; what their
known error leaves open is decided by all of them. A run stops when a step that lowers its objective leads to a
partition that another run has seen: from there both go the same way. Partitions are told apart by two sums of random
numbers of 64 bits, one for every sample and cluster.
"""

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from kernelweave.backends.meetings import ENDED, LEFT, MET, UNDONE, ends_of_runs
from kernelweave.backends.protocol import CandidateRuns
from kernelweave.backends.torch.array import TorchArray, ranges
from kernelweave.backends.torch.digits import DIGITS, FIRST, DigitMatrix
from kernelweave.foundation.array_types import Floats, Ints

# The sums of a batch may take this share of the memory that is free on a GPU, or so many bytes on a processor.
BATCH_SHARE = 0.25
HOST_BYTES = 2**26
# Bytes of a temporary: so many, and no more than this share of what is free on a GPU.
CHUNK_BYTES = 2**30
CHUNK_SHARE = 1 / 32


@dataclass(frozen=True)
class Rules:
    """What every run goes by."""

    weights: torch.Tensor  # (n,)
    mass: float
    tolerance: float
    noise: float
    max_iter: int
    deadline: float
    open_lead: float  # leads of clusters that errors of the first digits leave open
    open_fall: float  # falls of the objective that they leave open
    held: int  # bytes of temporaries


class Visited:
    """Partitions that runs have come to: by whom, in which step, and with which objective."""

    def __init__(self, n: int, n_clusters: int, device: torch.device, held: int = CHUNK_BYTES) -> None:
        self._held = held
        generator = torch.Generator().manual_seed(0)
        span = torch.iinfo(torch.int64)
        marks = torch.randint(span.min, span.max, (2, n_clusters * n), generator=generator, dtype=torch.int64)
        self._marks = marks.to(device)  # cluster by cluster
        self._keys = np.empty((0, 2), dtype=np.int64)  # in the order of the first number, in two parts
        self._sorted = 0  # where the second part begins
        self.owners = np.empty(0, dtype=np.intp)
        self.steps = np.empty(0, dtype=np.intp)
        self.objectives = np.empty(0)

    def keys(self, labels: torch.Tensor) -> Ints:
        """Return the keys of partitions, a row of labels each; sums wrap around."""
        parts = []
        for lo, hi in ranges(len(labels), max(1, self._held // (32 * labels.shape[1]))):
            places = labels[lo:hi].to(torch.int64) * labels.shape[1]
            places += torch.arange(labels.shape[1], device=labels.device)
            parts.append(torch.stack([marks[places].sum(dim=1) for marks in self._marks], dim=1))
        return np.asarray(torch.cat(parts).cpu().numpy())

    def find(self, keys: Ints) -> Ints:
        """Return where partitions are entered, -1 for those that nobody came to."""
        found = np.full(len(keys), -1)
        for start, stop in ((0, self._sorted), (self._sorted, len(self._keys))):
            if stop > start:
                inside = np.minimum(start + np.searchsorted(self._keys[start:stop, 0], keys[:, 0]), stop - 1)
                found = np.where((self._keys[inside] == keys).all(axis=1), inside, found)
        return found

    def enter(self, keys: Ints, owners: Ints, step: int, objectives: Floats) -> None:
        """Remember partitions that nobody came to before; those entered last are sorted apart until they are many."""
        self._keys = np.concatenate([self._keys, keys])
        self.owners = np.concatenate([self.owners, owners])
        self.steps = np.concatenate([self.steps, np.full(len(keys), step)])
        self.objectives = np.concatenate([self.objectives, objectives])
        if 4 * (len(self._keys) - self._sorted) > len(self._keys):
            self._sorted = 0
        order = np.argsort(self._keys[self._sorted :, 0], kind="stable")
        for values in (self._keys, self.owners, self.steps, self.objectives):
            values[self._sorted :] = values[self._sorted :][order]
        if self._sorted == 0:
            self._sorted = len(self._keys)


class Batch:
    """Runs that take their steps together: labels, sums and objectives of each."""

    def __init__(self, K: torch.Tensor, digits: DigitMatrix, rules: Rules, base: Any, candidates: torch.Tensor) -> None:
        labels, sums, totals = base
        self.rules = rules
        self._digits = digits
        count = len(candidates)
        k = len(totals) + 1
        device = K.device
        every = torch.arange(count, device=device)
        self.labels = labels.to(torch.int16 if k > 255 else torch.uint8).repeat(count, 1)
        old = labels[candidates]
        self.labels[every, candidates] = k - 1
        carried = rules.weights[candidates]
        self.totals = torch.cat([totals.repeat(count, 1), carried[:, None]], dim=1)
        self.totals[every, old] -= carried
        self.sums = torch.empty(count, k, len(labels), dtype=torch.float64, device=device)
        self.sums[:, : k - 1] = sums
        rows = K[candidates].to(torch.float64) * carried[:, None]
        self.sums[:, k - 1] = rows
        self.sums[every, old] -= rows
        self.norms = torch.empty(count, k, dtype=torch.float64, device=device)

    def objectives(self, runs: torch.Tensor) -> torch.Tensor:
        """Return the objectives of some runs, and set their norms; NaN where a cluster is empty."""
        parts = [torch.empty(0, dtype=torch.float64, device=runs.device)]
        if self.sums.is_cuda:
            from kernelweave.backends.torch.triton_sums import within_runs

            within, totals, held = within_runs(self.sums, self.labels, runs, self.rules.weights)
            self.totals[runs] = totals
            totals = torch.where(held, totals, torch.nan)
            self.norms[runs] = within / totals**2
            return self.rules.mass - (within / totals).sum(dim=1)
        for lo, hi in self._chunks(len(runs), 32):
            some = runs[lo:hi]
            labels = self.labels[some].to(torch.int64)
            own = self.sums[some[:, None], labels, torch.arange(labels.shape[1], device=runs.device)]
            within, totals = self._within(own, labels, self.totals[some])
            self.norms[some] = within / totals**2
            parts.append(self.rules.mass - (within / totals).sum(dim=1))
        return torch.cat(parts)

    def objectives_of(self, labels: torch.Tensor) -> Floats:
        """Return the objectives of partitions, a row of labels each, by all digits."""
        parts = [torch.empty(0, dtype=torch.float64, device=labels.device)]
        k = self.sums.shape[1]
        for lo, hi in self._chunks(len(labels), 32):
            some = labels[lo:hi].to(torch.int64)
            own = torch.empty(some.shape, dtype=torch.float64, device=labels.device)
            totals = torch.empty(len(some), k, dtype=torch.float64, device=labels.device)
            for c in range(k):
                members = some == c
                own = torch.where(members, self._digits.sums(members.to(torch.int8)), own)
                totals[:, c] = members.to(torch.float64) @ self.rules.weights
            within, totals = self._within(own, some, totals)
            parts.append(self.rules.mass - (within / totals).sum(dim=1))
        return np.asarray(torch.cat(parts).cpu().numpy())

    def _within(
        self, own: torch.Tensor, labels: torch.Tensor, totals: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the sums inside clusters from those of samples over their own, and totals, NaN of empty clusters."""
        k = self.sums.shape[1]
        own = own * self.rules.weights
        counted = self.rules.weights > 0
        within = torch.stack([torch.where(labels == c, own, 0.0).sum(dim=1) for c in range(k)], dim=1)
        held = torch.stack([((labels == c) & counted).any(dim=1) for c in range(k)], dim=1)
        return within, torch.where(held, totals, torch.nan)

    def steps(self, runs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the labels that some runs would have after a step, and which of their clusters would change."""
        new = []
        changed = []
        # In plain torch, temporaries are as large as the sums.
        each = 4 if self.sums.is_cuda else 32 * self.sums.shape[1]
        for lo, hi in self._chunks(len(runs), each):
            some = runs[lo:hi]
            labels, touched, left_open = self._decisions(some, self.rules.open_lead)
            if self.rules.open_lead and bool(left_open.any()):
                self.refine(some[left_open])
                labels[left_open], touched[left_open], _ = self._decisions(some[left_open], 0.0)
            new.append(labels)
            changed.append(touched)
        return torch.cat(new), torch.cat(changed)

    def _decisions(self, some: torch.Tensor, open_lead: float) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return new labels, which clusters change, and whether errors leave anything open."""
        tolerance = self.rules.tolerance
        if self.sums.is_cuda:
            from kernelweave.backends.torch.triton_sums import decide_runs

            return decide_runs(self.sums, self.norms, self.totals, self.labels, some, tolerance, open_lead)
        values = self.norms[some, :, None] - (2.0 / self.totals[some])[:, :, None] * self.sums[some]
        labels = self.labels[some].to(torch.int64)[:, None]
        kept = values.gather(1, labels)[:, 0]
        values.scatter_(1, labels, torch.inf)
        low = values.amin(dim=1)
        moves = low < kept - tolerance
        first = (values <= (low + tolerance)[:, None]).to(torch.uint8).argmax(dim=1)
        new = torch.where(moves, first, labels[:, 0])
        clusters = range(self.sums.shape[1])
        changed = torch.stack([((new == c) != (labels[:, 0] == c)).any(dim=1) for c in clusters], dim=1)
        left_open = torch.zeros(len(some), dtype=torch.bool, device=some.device)
        if open_lead:
            several = (values <= (low + tolerance + open_lead)[:, None]).sum(dim=1) > 1
            unclear = (low - (kept - tolerance)).abs() <= open_lead
            left_open = (unclear | (moves & several)).any(dim=1)
        return new.to(self.labels.dtype), changed, left_open

    def refine(self, runs: torch.Tensor) -> torch.Tensor:
        """Compute sums and norms of some runs by all digits; returns their objectives."""
        k = self.sums.shape[1]
        every = torch.arange(k, device=runs.device)
        self._write_sums(runs.repeat_interleave(k), every.repeat(len(runs)), DIGITS)
        return self.objectives(runs)

    def move(self, runs: torch.Tensor, labels: torch.Tensor, changed: torch.Tensor) -> None:
        """Let some runs take their step: sums of the clusters that changed are computed anew, by their first digits."""
        self.labels[runs] = labels
        rows, clusters = torch.nonzero(changed, as_tuple=True)
        self._write_sums(runs[rows], clusters, FIRST)

    def _write_sums(self, runs: torch.Tensor, clusters: torch.Tensor, count: int) -> None:
        """Compute the sums over a cluster of a run, for pairs of both, and its weight."""
        for lo, hi in self._chunks(len(runs), 32):
            some = runs[lo:hi]
            there = clusters[lo:hi]
            self._digits.write_sums(self.sums, self.labels, some, there, count)
            if not self.sums.is_cuda:  # there, weights are taken together with objectives
                members = self.labels[some] == there[:, None].to(self.labels.dtype)
                self.totals[some, there] = members.to(torch.float64) @ self.rules.weights

    def _chunks(self, count: int, bytes_each: int) -> list[tuple[int, int]]:
        """Return ranges of runs of which what is held at a time stays small, so many bytes for every sample of each."""
        return ranges(count, max(1, self.rules.held // (bytes_each * self.sums.shape[2])))

    def falls(self, old: torch.Tensor, new: torch.Tensor, before: Floats, after: Floats) -> Any:
        """Return for steps from old to new labels whether they lower the objective; all digits decide what is open."""
        falls = after < before - self.rules.noise
        if self.rules.open_fall:
            left_open = np.flatnonzero(np.abs(before - self.rules.noise - after) <= self.rules.open_fall)
            if len(left_open):
                some = torch.as_tensor(left_open, device=old.device)
                known = self.objectives_of(old[some])
                falls[left_open] = self.objectives_of(new[some]) < known - self.rules.noise
        return falls

    def coincide(self, runs: torch.Tensor) -> torch.Tensor:
        """Return of some runs whether two centres lie within the tolerance of each other."""
        k = self.sums.shape[1]
        parts = [torch.empty(0, dtype=torch.bool, device=runs.device)]
        for lo, hi in self._chunks(len(runs), 32 * k):
            some = runs[lo:hi]
            indicators = torch.nn.functional.one_hot(self.labels[some].to(torch.int64), k).to(torch.float64)
            indicators *= self.rules.weights[:, None]
            totals = self.totals[some]
            products = torch.bmm(self.sums[some], indicators) / (totals[:, :, None] * totals[:, None, :])
            norms = self.norms[some]
            gaps = norms[:, :, None] + norms[:, None, :] - 2.0 * products
            parts.append((gaps.abs() <= self.rules.tolerance).triu(1).flatten(1).any(dim=1))
        return torch.cat(parts)


def run_candidates(
    K: TorchArray,
    labels: TorchArray,
    weights: TorchArray,
    sums: TorchArray,
    totals: Floats,
    candidates: Ints,
    *,
    mass: float,
    tolerance: float,
    noise: float,
    max_iter: int,
    deadline: float = np.inf,
) -> CandidateRuns:
    """Run kernel k-means from ``labels`` with each candidate in turn as the centre of one more cluster."""
    device = K.tensor.device
    digits = _digits_of(K, weights.tensor)
    # A mean of errors over a cluster is at most one of them over the least weight; distances have three such terms. An
    # objective is off by one error per sample.
    carried = weights.tensor[weights.tensor > 0]
    lead = 6.0 * digits.error / float(carried.min()) if len(carried) else 0.0
    fall = 2.0 * digits.error * len(K)
    held = _temporary_bytes(device)
    rules = Rules(weights.tensor, mass, tolerance, noise, max_iter, deadline, lead, fall, held)
    base = (labels.tensor, sums.tensor, torch.as_tensor(totals, device=device))
    visited = Visited(len(K), len(totals) + 1, device, held)
    count = len(candidates)
    states = np.full(count, UNDONE)
    meetings = np.full((count, 3), -1)
    objectives = np.full(count, np.nan)
    size = max(1, int(_room(device)) // (8 * (len(totals) + 1) * len(K)))
    for start in range(0, count, size):
        if time.monotonic() > deadline:
            break
        places = np.arange(start, min(start + size, count))
        batch = Batch(K.tensor, digits, rules, base, torch.as_tensor(candidates[places], device=device))
        _follow(batch, visited, candidates, places, states, meetings, objectives)
    ends = ends_of_runs(candidates, meetings, states, max_iter)
    followed = (ends == np.arange(count)) & (states == ENDED)
    return CandidateRuns(ends, np.where(followed, objectives, np.nan))


def _follow(
    batch: Batch,
    visited: Visited,
    candidates: Ints,
    places: Ints,
    states: Ints,
    meetings: Ints,
    objectives: Floats,
) -> None:
    """Take all runs of a batch to their ends, a step at a time."""
    rules = batch.rules
    device = batch.sums.device
    active = torch.arange(len(places), device=device)
    states[places] = LEFT
    meetings[places, 2] = 0
    objectives[places] = batch.objectives(active).cpu().numpy()
    active = active[torch.as_tensor(np.isfinite(objectives[places]), device=device)]
    for step in range(1, rules.max_iter + 1):
        if len(active) == 0:
            return
        if time.monotonic() > rules.deadline:
            states[places[active.cpu().numpy()]] = UNDONE
            return
        labels, changed = batch.steps(active)
        resting = ~changed.any(dim=1)
        at_rest = active[resting]
        if len(at_rest):
            here = places[at_rest.cpu().numpy()]
            objectives[here] = batch.refine(at_rest).cpu().numpy()
            states[here] = np.where(batch.coincide(at_rest).cpu().numpy(), LEFT, ENDED)
        active = active[~resting]
        labels = labels[~resting]
        changed = changed[~resting]
        if len(active) == 0:
            return
        at = places[active.cpu().numpy()]
        keys = visited.keys(labels)
        found = visited.find(keys)
        _join_paths(batch, visited, found, active, labels, candidates, at, states, meetings, objectives, step)
        going, waiting, leaders = _first_of_equal(keys, np.flatnonzero(found < 0))
        if len(going) == 0:
            return
        chosen = torch.as_tensor(going, device=device)
        old = batch.labels[active[chosen]]
        batch.move(active[chosen], labels[chosen], changed[chosen])
        now = batch.objectives(active[chosen]).cpu().numpy()
        # Those that come in this very step to the partition of one of these meet it there.
        others = torch.as_tensor(waiting, device=device)
        there = now[np.searchsorted(going, leaders)]
        meet = batch.falls(batch.labels[active[others]], labels[others], objectives[at[waiting]], there)
        states[at[waiting[meet]]] = MET
        meetings[at[waiting[meet]], 0] = candidates[at[leaders[meet]]]
        meetings[at[waiting[meet]], 1:] = step
        falls = batch.falls(old, labels[chosen], objectives[at[going]], now)
        lower = going[falls]
        objectives[at[lower]] = now[falls]
        meetings[at[lower], 2] = step
        visited.enter(keys[lower], candidates[at[lower]], step, now[falls])
        active = active[chosen][torch.as_tensor(falls, device=device)]


def _join_paths(
    batch: Batch,
    visited: Visited,
    found: Ints,
    active: torch.Tensor,
    labels: torch.Tensor,
    candidates: Ints,
    at: Ints,
    states: Ints,
    meetings: Ints,
    objectives: Floats,
    step: int,
) -> None:
    """Settle the runs, at places ``at``, that come to partitions which others have seen.

    A step onto a path counts only if it lowers the objective: else the general solver cuts it back.
    """
    owners = visited.owners[found[found >= 0]]
    known = np.flatnonzero(found >= 0)[owners != candidates[at[found >= 0]]]
    entries = found[known]
    some = torch.as_tensor(known, device=labels.device)
    there = visited.objectives[entries]
    meet = batch.falls(batch.labels[active[some]], labels[some], objectives[at[known]], there)
    states[at[known[meet]]] = MET
    meetings[at[known[meet]], 0] = visited.owners[entries[meet]]
    meetings[at[known[meet]], 1] = visited.steps[entries[meet]]
    meetings[at[known[meet]], 2] = step


def _first_of_equal(keys: Ints, positions: Ints) -> tuple[Ints, Ints, Ints]:
    """Return the first position of every key among these, the other positions, and the first one of each of these."""
    order = positions[np.lexsort((positions, keys[positions, 1], keys[positions, 0]))]
    first = np.ones(len(order), dtype=bool)
    first[1:] = (keys[order[1:]] != keys[order[:-1]]).any(axis=1)
    leaders = order[first][np.cumsum(first) - 1] if len(order) else order
    return np.sort(order[first]), order[~first], leaders[~first]


def _digits_of(K: TorchArray, weights: torch.Tensor) -> DigitMatrix:
    """Return the kernel in fixed point, made once for the stages of a search."""
    known = vars(K).get("digits")
    if known is None or not torch.equal(known[0], weights):
        known = (weights, DigitMatrix(K.tensor, weights))
        K.digits = known  # type: ignore[attr-defined]
    return known[1]


def _room(device: torch.device) -> float:
    """Return the bytes that the sums of a batch may take."""
    return BATCH_SHARE * torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else HOST_BYTES


def _temporary_bytes(device: torch.device) -> int:
    """Return the bytes that temporaries may take."""
    if device.type == "cuda":
        return min(CHUNK_BYTES, int(CHUNK_SHARE * torch.cuda.mem_get_info(device)[0]))
    return CHUNK_BYTES
