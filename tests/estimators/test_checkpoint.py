"""Fits that are stopped go on from their checkpoint and end as if nothing had happened, for every estimator."""

import os
import warnings

import numpy as np
import pytest
from sklearn.base import clone

from kernelweave import KernelKMeans
from kernelweave.foundation import checkpoints
from tests.estimators.discovery import blobs, for_estimators

X, _ = blobs(25, spread=2.0)
OTHER, _ = blobs(25, seed=1, spread=2.0)

# Other tests are about these warnings; here the tables are small.
pytestmark = pytest.mark.filterwarnings("ignore")


class Stopped(Exception):
    """The stand-in for ``kill -9``: nothing of the run is left but the file."""


def data(case, table):
    """Return samples in the form the default instance takes, as two views where it takes views."""
    table = case.form(table)
    return {"front": table[:, :2], "back": table[:, 2:]} if case.multi_view else table


@pytest.fixture
def stop_after(monkeypatch):
    """Return what makes runs write at every step, and stops them after so many writes; 0 is never."""
    written = {"count": 0, "limit": 0}
    write = checkpoints.write_atomically

    def counted(path, content):
        if 0 < written["limit"] <= written["count"]:
            raise Stopped
        written["count"] += 1
        return write(path, content)

    def set_limit(limit):
        written.update(count=0, limit=limit)
        return written

    monkeypatch.setattr(checkpoints, "INTERVAL", 0.0)
    monkeypatch.setattr(checkpoints, "SHARE", np.inf)
    monkeypatch.setattr(checkpoints, "write_atomically", counted)
    return set_limit


def resumed(model, samples, stop_after, steps):
    """Fit with a stop after every few writes; return the fitted model and the number of stops."""
    stops = 0
    while True:
        stop_after(steps)
        try:
            return clone(model).fit(samples), stops
        except Stopped:
            stops += 1
            assert os.path.exists(model.checkpoint)
            assert stops < 500


@for_estimators(lambda case: case.has("max_iter") or case.has("n_init"))
def test_every_iterative_estimator_has_checkpoints(case):
    assert case.has("checkpoint")
    assert case.cls().checkpoint is None


@for_estimators(lambda case: case.has("checkpoint"))
def test_a_fit_that_was_stopped_gives_the_labels_of_one_that_was_not(case, stop_after, tmp_path):
    samples = data(case, X)
    undisturbed = case.make().fit(samples)
    path = tmp_path / "run"
    model = case.make(checkpoint=path)
    writes = stop_after(0)
    clone(model).fit(samples)
    count = writes["count"]
    assert count > 0
    for steps in sorted({1, 2, max(1, count // 2), count}):
        fitted, stops = resumed(model, samples, stop_after, steps)
        assert stops > 0 or steps >= count
        np.testing.assert_array_equal(fitted.labels_, undisturbed.labels_)
        assert fitted.objective_ == pytest.approx(undisturbed.objective_, rel=1e-9)
        assert fitted.n_iter_ == undisturbed.n_iter_
        assert not path.exists()
        assert not hasattr(fitted, "_keeper") or "_keeper" not in vars(fitted)
