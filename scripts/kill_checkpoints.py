"""Fits that are killed at random moments, resumed until they end, and compared with fits that nobody disturbed.

``python scripts/kill_checkpoints.py [--kills N] [--seed S] [--only PATTERN]`` starts each fit in a process of its own,
ends it with SIGKILL up to five times, lets it go on in a new interpreter, and compares labels. It prints a Markdown
table; the exit status is 1 if labels differ or a file is refused. Files are written twenty times per second instead of
every three seconds, so that fits of a few seconds are enough.
"""

import argparse
import random
import re
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.neighbors import kneighbors_graph

import kernelweave
from kernelweave.foundation import checkpoints
from kernelweave.foundation.files import PREFIX

INTERVAL = 0.05
#: Most kills of one fit.
KILLS_OF_A_FIT = 5


def _table(n: int, n_features: int, n_groups: int) -> np.ndarray:
    """Return groups that overlap, so that runs take many steps."""
    rng = np.random.default_rng(0)
    centres = 2.0 * rng.standard_normal((n_groups, n_features))
    return centres[rng.integers(n_groups, size=n)] + rng.standard_normal((n, n_features))


def _views(n: int, n_groups: int) -> list[np.ndarray]:
    table = _table(n, 12, n_groups)
    return [table[:, :4], table[:, 4:8], table[:, 8:]]


def _graph(n: int, n_groups: int) -> Any:
    """Return the graph of nearest neighbours."""
    links = kneighbors_graph(_table(n, 6, n_groups), 10)
    return links.maximum(links.T)


#: By name, an estimator with its parameters, and the samples.
CASES: dict[str, tuple[str, dict[str, Any], Callable[[], Any]]] = {
    "kernel k-means, blockwise": (
        "KernelKMeans",
        {"n_clusters": 12, "init": "random_partition", "n_init": 3, "storage": "blockwise"},
        lambda: _table(4000, 6, 12),
    ),
    "global kernel k-means, exact": (
        "GlobalKernelKMeans",
        {"n_clusters": 12, "search": "exact"},
        lambda: _table(700, 6, 12),
    ),
    "MinMax kernel k-means": (
        "MinMaxKernelKMeans",
        {"n_clusters": 12, "n_init": 6, "refine": True},
        lambda: _table(2500, 6, 12),
    ),
    "pifs k-means": ("PifsKMeans", {"n_clusters": 20, "n_init": 8}, lambda: _table(30_000, 6, 20)),
    "multi-view kernel k-means": (
        "MultiViewKernelKMeans",
        {"n_clusters": 12, "init": "random_partition", "n_init": 6},
        lambda: _views(2500, 12),
    ),
    "multi-view spectral clustering": (
        "MultiViewSpectralClustering",
        {"n_clusters": 8, "tol": 0.0, "max_iter": 12},
        lambda: _views(1500, 8),
    ),
    "graph cut, exact": ("GraphCut", {"n_clusters": 12, "search": "exact"}, lambda: _graph(700, 12)),
    "convex mixture, EM": (
        "ConvexMixture",
        {"n_clusters": 12, "solver": "em", "max_iter": 400},
        lambda: _table(1500, 6, 12),
    ),
    "multi-view convex mixture": (
        "MultiViewConvexMixture",
        {"n_clusters": 8, "tol": 1e-7},
        lambda: _views(500, 8),
    ),
    "multi-view EM": ("MultiViewEM", {"n_clusters": 12, "n_init": 12}, lambda: _views(8000, 12)),
    "k-medoids": ("KMedoids", {"n_clusters": 12, "n_init": 8}, lambda: _table(1500, 6, 12)),
}


@dataclass
class Row:
    """What happened to the fits of one case."""

    name: str
    seconds: float  # of an undisturbed fit
    kills: int = 0
    resumed: int = 0  # fits that found a file
    ends: int = 0  # fits that came to their end
    equal: int = 0  # of these, with the labels of the undisturbed one
    lost: float = 0.0  # seconds that killed fits took longer, all together
    faults: list[str] = field(default_factory=list)

    def text(self) -> str:
        """Return the row of the table."""
        lost = f"{self.lost / self.kills:.2f} s" if self.kills else "-"
        counts = f"{self.kills} | {self.resumed} | {self.ends} | {self.equal}"
        return f"| {self.name} | {self.seconds:.1f} s | {counts} | {lost} |"


def warmed_up(name: str) -> Callable[[Path], None]:
    """Return what fits one case and writes labels and seconds; what the first fit loads is loaded now."""
    estimator, parameters, samples = CASES[name]
    checkpoints.INTERVAL = INTERVAL
    checkpoints.SHARE = 1.0
    cls = getattr(kernelweave, estimator)
    X = samples()
    few = [view[:60] for view in X] if isinstance(X, list) else X[:60]
    if estimator == "GraphCut":
        few = few[:, :60]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cls(**{**parameters, "n_clusters": 2}, random_state=0).fit(few)

    def fit(folder: Path) -> None:
        warnings.simplefilter("ignore")
        began = time.perf_counter()
        model = cls(**parameters, random_state=0, checkpoint=folder / "run").fit(X)
        np.savez(folder / "end.npz", labels=model.labels_, seconds=time.perf_counter() - began)

    return fit


def _ended(folder: Path, status: int | None, errors: str, row: Row) -> np.ndarray | None:
    """Return the labels of a fit that has ended."""
    if status != 0:
        row.faults.append((errors.strip().splitlines() or [f"exit status {status}"])[-1])
        return None
    with np.load(folder / "end.npz") as end:
        row.lost += float(end["seconds"])
        return np.array(end["labels"])


def _whole(name: str, folder: Path, row: Row) -> np.ndarray | None:
    """Fit in a new interpreter and return the labels."""
    row.resumed += (folder / "run").exists()
    command = [sys.executable, __file__, "--fit", name, "--folder", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return _ended(folder, done.returncode, done.stderr, row)


def _killed(fit: Callable[[Path], None], folder: Path, row: Row, limit: float) -> np.ndarray | None:
    """Fit in a process of its own and kill it after ``limit`` seconds; return the labels if it came to its end."""
    row.resumed += (folder / "run").exists()
    process = get_context("fork").Process(target=fit, args=(folder,))
    process.start()
    process.join(limit)
    if process.exitcode is not None:
        return _ended(folder, process.exitcode, "", row)
    process.kill()
    process.join()
    row.kills += 1
    row.lost += limit
    return None


def check(name: str, kills: int, rng: random.Random) -> Row:
    """Kill fits of one case so many times, and return what became of them."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        row = Row(name, 0.0)
        expected = _whole(name, folder, row)
        fit = warmed_up(name)
        row.seconds = row.lost
        row.lost = 0.0
        while row.kills < kills and not row.faults:
            labels = None
            for _ in range(min(KILLS_OF_A_FIT, kills - row.kills)):
                labels = _killed(fit, folder, row, rng.uniform(0.05, 0.6) * row.seconds)
                if labels is not None or row.faults:
                    break
            if labels is None and not row.faults:
                labels = _whole(name, folder, row)
            row.lost -= row.seconds
            row.ends += 1
            row.equal += labels is not None and expected is not None and np.array_equal(labels, expected)
        left = [file.name for file in folder.iterdir() if file.name == "run" or file.name.startswith(PREFIX)]
        if left:
            row.faults.append(f"{left[0]} was left behind")
    return row


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=100, help="fits killed, over all cases")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="cases whose names match this pattern")
    parser.add_argument("--fit", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.fit is not None:
        warmed_up(options.fit)(options.folder)
        return 0
    rng = random.Random(options.seed)
    names = [name for name in CASES if re.search(options.only, name)]
    print("| fit | alone | kills | resumed | ended | labels equal | lost by a kill |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    good = bool(names)
    for number, name in enumerate(names):
        share = options.kills * (number + 1) // len(names) - options.kills * number // len(names)
        row = check(name, share, rng)
        print(row.text(), flush=True)
        for fault in row.faults:
            print(f"{name}: {fault}", file=sys.stderr)
        good = good and not row.faults and row.equal == row.ends
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
