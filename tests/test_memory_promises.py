"""Memory the project promises, as ceilings far from what noise can reach.

Peaks are those of new processes: what runs beside them does not matter.
"""

import numpy as np
import pytest

from benchmarks import kernel_kmeans as bench
from benchmarks import multi_view
from benchmarks._harness import forked_processes


@pytest.fixture(scope="module")
def new_process():
    """Return what runs code in a process of its own; they share the time that imports take."""
    with forked_processes() as run:
        yield run


def test_twenty_thousand_samples_blockwise_stay_under_600_mb_and_give_the_labels_of_the_dense_run(
    new_process, tmp_path
):
    peaks = {}
    for kind in ("blockwise", "dense"):
        _, peaks[kind] = new_process(bench.RBF, argv=(kind, str(tmp_path / f"{kind}.npy")))
    np.testing.assert_array_equal(np.load(tmp_path / "blockwise.npy"), np.load(tmp_path / "dense.npy"))
    assert peaks["blockwise"] * 1.048576 < 600 < peaks["dense"]


def test_half_a_million_samples_with_a_linear_kernel_stay_under_two_gb(new_process):
    (_, converged), peak = new_process(bench.LINEAR)
    assert converged
    assert peak * 1.048576 < 2000


def test_a_quarter_of_a_million_samples_in_five_linear_views_stay_under_two_gb(new_process):
    (_, _, converged), peak = new_process(multi_view.LARGE, argv=("250000",))
    assert converged
    assert peak * 1.048576 < 2000
