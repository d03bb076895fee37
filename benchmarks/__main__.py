"""Run every suite and print a table; ``--write`` adds it to RESULTS.md with date and commit."""

import argparse
import datetime
import platform
import subprocess
from importlib import import_module
from pathlib import Path

from benchmarks._harness import markdown
from kernelweave.foundation.threads import thread_count

SUITES = (
    "kernel_kmeans",
    "cores",
    "global_search",
    "graph_cuts",
    "minmax",
    "convex_mixture",
    "multi_view",
    "quick",
    "exponents",
    "ratio_mkc",
    "kernel_spectral",
    "comparators",
    "graph_fusion",
    "incomplete",
    "cluster_counts",
    "memory",
    "memory_options",
    "startup",
)
RESULTS = Path(__file__).with_name("RESULTS.md")


def heading():
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    dirty = subprocess.run(["git", "status", "--porcelain", "-uno"], capture_output=True, text=True, check=False)
    mark = " with uncommitted changes" if dirty.stdout.strip() else ""
    today = datetime.datetime.now(tz=datetime.UTC).date()
    return (
        f"## {today}, commit {commit.stdout.strip() or 'unknown'}{mark}, {thread_count()} threads, {platform.machine()}"
    )


def main():
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("suites", nargs="*", default=SUITES, metavar="SUITE", help=f"any of {', '.join(SUITES)}")
    parser.add_argument("--write", action="store_true", help="add the table to benchmarks/RESULTS.md")
    chosen = parser.parse_args()
    rows = []
    for name in chosen.suites:
        rows += import_module(f"benchmarks.{name}").run()
    table = f"{heading()}\n\n{markdown(rows)}"
    print(table)
    if chosen.write:
        before = RESULTS.read_text() if RESULTS.exists() else "# Benchmark results\n\nPrinted by `make bench`.\n"
        RESULTS.write_text(f"{before.rstrip()}\n\n{table}")
    return int(any(row.kept is False for row in rows))


if __name__ == "__main__":
    raise SystemExit(main())
