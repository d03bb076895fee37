"""What a user waits for before anything runs: the import, and compilation in the first fit."""

import os
import tempfile

from benchmarks._harness import Row, in_fresh_process

SUITE = "start-up"
IMPORT = "import time; t = time.process_time(); {statement}; result = time.process_time() - t"
OURS = "from kernelweave import KernelKMeans"
THEIRS = "import sklearn.cluster"
# The compiler's own start, which any use of it brings, is paid before the clock runs.
FIT = """
import time
import numba
import numpy as np
from kernelweave import KernelKMeans
numba.njit(lambda: 1)()
X = np.random.default_rng(0).standard_normal((200, 3))
t = time.process_time()
KernelKMeans(3, n_init=1, random_state=0).fit(X)
first = time.process_time() - t
t = time.process_time()
KernelKMeans(3, n_init=1, random_state=0).fit(X)
result = [first, time.process_time() - t]
"""


def run():
    return [import_time(), *compilation()]


def import_time(repeats=5):
    best = {OURS: float("inf"), THEIRS: float("inf")}
    for _ in range(repeats):
        for statement in best:
            best[statement] = min(best[statement], in_fresh_process(IMPORT.format(statement=statement))[0])
    ratio = best[OURS] / best[THEIRS]
    note = f"{ratio:.2f} x the processor time of import sklearn.cluster"
    return Row(SUITE, OURS, note, "at most 1.3 x", ratio <= 1.3)


def compilation():
    with tempfile.TemporaryDirectory() as cache:
        env = {**os.environ, "NUMBA_CACHE_DIR": cache}
        (cold, plain), _ = in_fresh_process(FIT, env=env)
        (warm, _), _ = in_fresh_process(FIT, env=env)
    yield Row(
        SUITE, "first fit, nothing compiled yet", f"{cold - plain:.1f} s of compilation", "under 8 s", cold - plain < 8
    )
    kept = warm - plain < 0.25 * (cold - plain)
    yield Row(
        SUITE,
        "first fit in the second process",
        f"{warm - plain:.2f} s of loading, beside numba's own start",
        "almost none",
        kept,
    )
