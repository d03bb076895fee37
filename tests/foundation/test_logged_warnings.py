"""Warnings point at the caller's line and go into every log around them."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernelweave import AffinityPropagation, KernelKMeans, MultiViewKernelKMeans, MultiViewSpectralClustering
from kernelweave.foundation.errors import ConvergenceWarning
from kernelweave.foundation.logged_warnings import logged_warnings, warn
from kernelweave.model_selection import choose_n_clusters

SAME = np.full((12, 3), 0.5)
X = np.random.default_rng(0).normal(size=(40, 3))


def raised(call):
    with warnings.catch_warnings(record=True) as records:
        warnings.simplefilter("always")
        result = call()
    return result, records


def test_nested_logs_hold_each_warning_once_and_in_order():
    def talk():
        with logged_warnings() as outer:
            warn("first", UserWarning)
            with logged_warnings() as inner:
                warn("second", UserWarning)
                warn("second", UserWarning)
            warn("first", UserWarning)
        return outer, inner

    (outer, inner), records = raised(talk)
    assert (outer, inner) == (["first", "second"], ["second"])
    assert [str(one.message) for one in records] == ["first", "second", "second", "first"]
    assert {one.filename for one in records} == {__file__}


def test_a_log_ends_with_an_error():
    with logged_warnings() as outer:
        with pytest.raises(KeyError), logged_warnings():
            raise KeyError
        with pytest.warns(UserWarning, match="after"):
            warn("after", UserWarning)
    assert outer == ["after"]


@pytest.mark.parametrize(
    "call",
    [
        lambda: KernelKMeans(3, random_state=0).fit(SAME),
        lambda: KernelKMeans(3, random_state=0).fit_predict(SAME),
        lambda: make_pipeline(StandardScaler(), KernelKMeans(3, random_state=0)).fit(SAME),
        lambda: KernelKMeans(3, max_iter=1, n_init=1, random_state=0).fit(X),
        lambda: AffinityPropagation(max_iter=1).fit(X),
        lambda: MultiViewKernelKMeans(3, random_state=0).fit([SAME, SAME]),
        lambda: MultiViewSpectralClustering(3, random_state=0).fit([SAME, SAME]),
        lambda: choose_n_clusters(KernelKMeans(max_iter=1, n_init=1, random_state=0), X, [2, 3, 4]),
    ],
    ids=["fit", "fit_predict", "pipeline", "unfinished", "affinity", "views", "spectral", "choice"],
)
def test_warnings_point_at_the_first_line_outside(call):
    _, records = raised(call)
    assert records
    assert {one.filename for one in records} == {__file__}


def test_a_model_remembers_the_warnings_of_its_last_fit():
    model, records = raised(lambda: KernelKMeans(3, random_state=0).fit(SAME))
    assert model.warnings_ == tuple(dict.fromkeys(str(one.message) for one in records))
    assert model.fit(X).warnings_ == ()
    assert not hasattr(clone(model), "warnings_")


def test_a_warning_made_an_error_ends_the_fit():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ConvergenceWarning, match="distinct"):
            KernelKMeans(3, random_state=0).fit(SAME)
