"""Runs from several starts: what they start from, in which order they come, and who is told."""

import threading
from types import SimpleNamespace

import numpy as np
import pytest

from kernelweave import KernelKMeans, MinMaxKernelKMeans, MinMaxKMeans, ParameterError, PifsKMeans
from kernelweave.estimators.kmeans.vectors import center_starts
from kernelweave.estimators.shared import runs
from kernelweave.estimators.shared.models import feature_offset, shifted_features
from kernelweave.estimators.shared.runs import first_labels, label_starts, run_starts
from kernelweave.foundation.checkpoints import NOTHING
from kernelweave.foundation.random_streams import streams
from kernelweave.kernels.spec.fitting import fit_kernel
from kernelweave.solvers.kmeans.starts import start_labels
from tests.estimators.discovery import blobs

X = blobs(spread=5.0)[0]
ONES = np.ones(len(X))
OP = fit_kernel(X, "rbf").operator("dense")
LAZY = fit_kernel(X, "rbf").operator("blockwise")


def numbers(generators):
    return [rng.integers(2**60) for rng in generators]


def test_a_named_start_is_drawn_from_the_streams_of_the_seed():
    for seed in (0, 5):
        assert numbers(label_starts("random", 4, seed, len(X), 3)) == numbers(streams(seed, 4))
    assert numbers(label_starts("random", 4, 0, len(X), 3)) != numbers(label_starts("random", 4, 5, len(X), 3))


def test_labels_are_one_start_however_many_were_asked_for():
    labels = np.arange(len(X)) % 3
    (start,) = label_starts(labels.tolist(), 4, 0, len(X), 3)
    np.testing.assert_array_equal(start, labels)
    with pytest.raises(ParameterError, match="one entry per sample"):
        label_starts(labels[:-1], 4, 0, len(X), 3)


def test_centres_are_one_start_and_lead_to_the_nearest_of_them():
    offset = feature_offset(X)
    op = shifted_features(X, offset)
    (start,) = center_starts(X[[0, 10, 20]].tolist(), 4, 0, op, offset, 3)
    distances = np.linalg.norm(X[:, None] - X[[0, 10, 20]], axis=2)
    np.testing.assert_array_equal(start, distances.argmin(axis=1))
    assert numbers(center_starts("random", 4, 5, op, offset, 3)) == numbers(streams(5, 4))


def test_generators_draw_labels_and_labels_stay():
    first = first_labels(OP, "k-means++", ONES, 3)
    drawn = start_labels(OP, "k-means++", ONES, 3, np.random.default_rng(2))
    np.testing.assert_array_equal(first(np.random.default_rng(2)), drawn)
    labels = np.arange(len(X)) % 3
    assert first(labels) is labels


@pytest.mark.parametrize(("op", "alone"), [(OP, False), (LAZY, True)], ids=["stored", "computed again"])
def test_results_come_in_the_order_of_the_starts_and_kernels_computed_again_run_one_at_a_time(op, alone):
    threads = []

    def run(start, keeper):
        threads.append(threading.get_ident())
        return 10 * start

    results = list(run_starts(SimpleNamespace(verbose=0, _keeper=NOTHING), op, run, range(6), X, None))
    assert results == [0, 10, 20, 30, 40, 50]
    if alone:
        assert set(threads) == {threading.get_ident()}


@pytest.mark.parametrize("cls", [KernelKMeans, MinMaxKMeans, MinMaxKernelKMeans, PifsKMeans])
def test_other_seeds_draw_other_starts(cls):
    hard = blobs(40, spread=8.0)[0]
    paths = {tuple(cls(7, n_init=1, random_state=seed).fit(hard).objective_path_) for seed in range(4)}
    assert len(paths) > 1


def test_runs_on_a_kernel_that_is_computed_anew_follow_each_other(monkeypatch):
    for name in ("parallel_map", "cluster_map"):
        monkeypatch.setattr(runs, name, lambda run, starts: pytest.fail("threads would compute the kernel, too"))
    results = run_starts(KernelKMeans(), LAZY, lambda start, keeper: str(start), [1, 2], None, None)
    assert list(results) == ["1", "2"]
