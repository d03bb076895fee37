"""Processes that run Python in one checkout or another, and work that is timed in two of them by turns."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

WORKER = Path(__file__).resolve().with_name("checkout_workloads.py")
IMPORT = """
import time
clock = time.perf_counter()
processor = time.process_time()
from kernelweave import KernelKMeans
print(time.perf_counter() - clock, time.process_time() - processor)
"""
IMPORT_NAME = "import of KernelKMeans"
# Threads that wait for work may spin for a while after a run; the other checkout's turn begins after that.
PAUSE = 0.05


def start(checkout: Path, *arguments: str, threads: int = 1, **pipes: Any) -> subprocess.Popen[str]:
    """Start Python in a checkout."""
    limits = {name: str(threads) for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}
    env = {**os.environ, **limits, "PYTHONPATH": str(checkout)}
    command = [sys.executable, "-W", "ignore", *arguments]
    return subprocess.Popen(command, cwd=checkout, env=env, stdout=subprocess.PIPE, text=True, **pipes)


def output(checkout: Path, *arguments: str, threads: int = 1) -> str:
    """Run Python in a checkout and return what it prints."""
    process = start(checkout, *arguments, threads=threads)
    text, _ = process.communicate()
    if process.returncode:
        raise SystemExit(f"A process in {checkout} failed; its message stands above.")
    return text


class Run(NamedTuple):
    """Seconds of one run, on the clock and on the processor; the latter hardly depend on what else runs."""

    clock: float
    processor: float


def run_once(process: subprocess.Popen[str]) -> Run | str:
    """Let a waiting process do its work once; a message comes back if that fails."""
    try:
        process.stdin.write("run\n")
        reply = json.loads(process.stdout.readline())
    except (OSError, ValueError):
        return "the process ended"
    return reply if isinstance(reply, str) else Run(*reply)


def timed(checkouts: list[Path], workload: str, threads: int, seconds: float, rounds: int) -> list[list[Run] | str]:
    """Time a workload by turns in both checkouts; a message stands for the runs if one fails.

    Every round has fresh processes, because one process may be faster than another for all its life.
    """
    if workload == IMPORT_NAME:
        texts = [[output(checkout, "-c", IMPORT) for checkout in checkouts] for _ in range(7)]
        return [[Run(*map(float, text.split())) for text in column[1:]] for column in zip(*texts, strict=True)]
    runs: list[list[Run]] = [[] for _ in checkouts]
    for _ in range(rounds):
        new_runs = timed_round(checkouts, workload, threads, seconds / rounds)
        if isinstance(new_runs[0], str):
            return new_runs
        runs = [column + more for column, more in zip(runs, new_runs, strict=True)]
    return runs


def timed_round(checkouts: list[Path], workload: str, threads: int, seconds: float) -> list[list[Run] | str]:
    """Time a workload by turns in one fresh process per checkout, after one run each to compile and warm up."""
    pipes = {"stdin": subprocess.PIPE, "bufsize": 1, "threads": threads}
    processes = [start(checkout, str(WORKER), "time", workload, **pipes) for checkout in checkouts]
    for process in processes:
        process.stdout.readline()  # both have imported the package
    runs: list[list[Run]] = [[] for _ in checkouts]
    try:
        warm_up = [run_once(process) for process in processes]
        if any(isinstance(reply, str) for reply in warm_up):
            return [reply if isinstance(reply, str) else "ran" for reply in warm_up]
        end = time.perf_counter() + seconds
        while len(runs[0]) < 2 or (time.perf_counter() < end and len(runs[0]) < 10):
            order = (0, 1) if len(runs[0]) % 2 else (1, 0)
            for turn in order:
                time.sleep(PAUSE)
                reply = run_once(processes[turn])
                if isinstance(reply, str):
                    return [reply if at == turn else "ran" for at in range(2)]
                runs[turn].append(reply)
    finally:
        for process in processes:
            process.communicate()
    return runs
