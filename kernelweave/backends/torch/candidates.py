"""Runs of kernel k-means from every candidate of a stage of global search, in batches on the device.

All runs of a batch take a step together. Sums of clusters that changed are products of indicators with the kernel in
fixed point (``digits.py``), so that they are exact at any number of steps. A run stops when a step that lowers its
objective leads to a partition that another run has seen: from there both go the same way. Partitions are told apart by
two sums of random numbers of 64 bits, one for every sample and cluster.
"""

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from kernelweave.backends.meetings import ENDED, LEFT, MET, UNDONE, ends_of_runs
from kernelweave.backends.protocol import CandidateRuns
from kernelweave.backends.torch.array import TorchArray, ranges
from kernelweave.backends.torch.digits import DigitMatrix
from kernelweave.foundation.array_types import Floats, Ints

# The sums of a batch may take this share of the memory that is free on a GPU, or so many bytes on a processor.
BATCH_SHARE = 0.25
HOST_BYTES = 2**26
# Bytes of a temporary.
CHUNK_BYTES = 2**28


@dataclass(frozen=True)
class Rules:
    """What every run goes by."""

    weights: torch.Tensor  # (n,)
    mass: float
    tolerance: float
    noise: float
    max_iter: int
    deadline: float


class Visited:
    """Partitions that runs have come to: by whom, in which step, and with which objective."""

    def __init__(self, n: int, n_clusters: int, device: torch.device) -> None:
        generator = torch.Generator().manual_seed(0)
        span = torch.iinfo(torch.int64)
        marks = torch.randint(span.min, span.max, (2, n, n_clusters), generator=generator, dtype=torch.int64)
        self._marks = marks.to(device)
        self._known: dict[tuple[int, int], tuple[int, int, float]] = {}

    def keys(self, labels: torch.Tensor) -> list[tuple[int, int]]:
        """Return the keys of partitions, a row of labels each; sums wrap around."""
        parts = []
        for lo, hi in _chunks(len(labels), 32 * labels.shape[1]):
            some = labels[lo:hi].to(torch.int64).T
            parts.append(torch.stack([marks.gather(1, some).sum(dim=0) for marks in self._marks]))
        first, second = torch.cat(parts, dim=1).tolist()
        return list(zip(first, second, strict=True))

    def known(self, key: tuple[int, int]) -> tuple[int, int, float] | None:
        """Return who came to a partition, in which step and with which objective; None for nobody."""
        return self._known.get(key)

    def enter(self, key: tuple[int, int], run: int, step: int, objective: float) -> None:
        """Remember a partition."""
        self._known.setdefault(key, (run, step, objective))


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
        k = self.sums.shape[1]
        parts = []
        for lo, hi in _chunks(len(runs), 32 * self.sums.shape[2]):
            some = runs[lo:hi]
            labels = self.labels[some].to(torch.int64)
            own = self.sums[some[:, None], labels, torch.arange(labels.shape[1], device=runs.device)]
            own *= self.rules.weights
            counted = self.rules.weights > 0
            within = torch.stack([torch.where(labels == c, own, 0.0).sum(dim=1) for c in range(k)], dim=1)
            held = torch.stack([((labels == c) & counted).any(dim=1) for c in range(k)], dim=1)
            totals = torch.where(held, self.totals[some], torch.nan)
            self.norms[some] = within / totals**2
            parts.append(self.rules.mass - (within / totals).sum(dim=1))
        return torch.cat(parts)

    def steps(self, runs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the labels that some runs would have after a step, and how many samples would move."""
        tolerance = self.rules.tolerance
        new = []
        moved = []
        for lo, hi in _chunks(len(runs), 32 * self.sums.shape[1] * self.sums.shape[2]):
            some = runs[lo:hi]
            values = self.norms[some, :, None] - (2.0 / self.totals[some])[:, :, None] * self.sums[some]
            labels = self.labels[some].to(torch.int64)[:, None]
            kept = values.gather(1, labels)[:, 0]
            values.scatter_(1, labels, torch.inf)
            low = values.amin(dim=1)
            moves = low < kept - tolerance
            first = (values <= (low + tolerance)[:, None]).to(torch.uint8).argmax(dim=1)
            new.append(torch.where(moves, first, labels[:, 0]).to(self.labels.dtype))
            moved.append(moves.sum(dim=1))
        return torch.cat(new), torch.cat(moved)

    def move(self, runs: torch.Tensor, labels: torch.Tensor) -> None:
        """Let some runs take their step: sums of the clusters that changed are computed anew."""
        n = labels.shape[1]
        for c in range(self.sums.shape[1]):
            inside = labels == c
            changed = torch.nonzero((inside != (self.labels[runs] == c)).any(dim=1))[:, 0]
            for lo, hi in _chunks(len(changed), 32 * n):
                some = changed[lo:hi]
                members = inside[some]
                self.sums[runs[some], c] = self._digits.sums(members.to(torch.int8))
                self.totals[runs[some], c] = members.to(torch.float64) @ self.rules.weights
        self.labels[runs] = labels

    def coincide(self, runs: torch.Tensor) -> torch.Tensor:
        """Return of some runs whether two centres lie within the tolerance of each other."""
        k = self.sums.shape[1]
        parts = [torch.empty(0, dtype=torch.bool, device=runs.device)]
        for lo, hi in _chunks(len(runs), 32 * k * self.sums.shape[2]):
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
    rules = Rules(weights.tensor, mass, tolerance, noise, max_iter, deadline)
    digits = _digits_of(K, weights.tensor)
    base = (labels.tensor, sums.tensor, torch.as_tensor(totals, device=device))
    visited = Visited(len(K), len(totals) + 1, device)
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
        labels, moved = batch.steps(active)
        resting = moved == 0
        at_rest = active[resting]
        states[places[at_rest.cpu().numpy()]] = np.where(batch.coincide(at_rest).cpu().numpy(), LEFT, ENDED)
        active = active[~resting]
        labels = labels[~resting]
        if len(active) == 0:
            return
        at = places[active.cpu().numpy()]
        coming = visited.keys(labels)
        going, waiting = _meet(visited, coming, at, candidates, states, meetings, objectives, step, rules.noise)
        if not going:
            return
        chosen = torch.as_tensor(going, dtype=torch.int64, device=device)
        active = active[chosen]
        batch.move(active, labels[chosen])
        now = batch.objectives(active).cpu().numpy()
        falls = now < objectives[at[going]] - rules.noise
        rank = {position: order for order, position in enumerate(going)}
        for place, owner in waiting:
            value = now[rank[owner]]
            if value < objectives[place] - rules.noise:
                states[place] = MET
                meetings[place] = (candidates[at[owner]], step, step)
        for position, value, lower in zip(going, now.tolist(), falls.tolist(), strict=True):
            if lower:
                objectives[at[position]] = value
                meetings[at[position], 2] = step
                visited.enter(coming[position], int(candidates[at[position]]), step, value)
        active = active[torch.as_tensor(falls, device=device)]


def _meet(
    visited: Visited,
    coming: list[tuple[int, int]],
    at: Ints,
    candidates: Ints,
    states: Ints,
    meetings: Ints,
    objectives: Floats,
    step: int,
    noise: float,
) -> tuple[list[int], list[tuple[int, int]]]:
    """Settle the runs, at places ``at``, that come to partitions which others have seen.

    Returns the positions of those that go on, and the places of those that come in this very step to the partition of
    one of these, with that one's position.
    """
    going: list[int] = []
    waiting: list[tuple[int, int]] = []
    first: dict[tuple[int, int], int] = {}
    for position, (key, place) in enumerate(zip(coming, at.tolist(), strict=True)):
        known = visited.known(key)
        if known is not None:
            owner, their_step, value = known
            # A step onto a path counts only if it lowers the objective: else the general solver cuts it back.
            if owner != candidates[place] and value < objectives[place] - noise:
                states[place] = MET
                meetings[place] = (owner, their_step, step)
        elif key in first:
            waiting.append((place, first[key]))
        else:
            first[key] = position
            going.append(position)
    return going, waiting


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


def _chunks(count: int, bytes_each: int) -> list[tuple[int, int]]:
    """Return ranges of runs of which what is held at a time stays small."""
    return ranges(count, max(1, CHUNK_BYTES // max(bytes_each, 1)))
