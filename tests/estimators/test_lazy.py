"""New samples in Dask collections are answered in blocks, when asked for; fits that need all samples refuse them."""

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from kernelweave import (
    KernelKMeans,
    KernelSpectralClustering,
    KMedoids,
    MinMaxKMeans,
    MultiViewKernelKMeans,
    MultiViewKernelSpectralClustering,
    ParameterError,
    ViewError,
)
from kernelweave.inputs import as_views
from kernelweave.preprocessing import ViewScaler
from tests.estimators.discovery import blobs, for_estimators

pytestmark = [
    pytest.mark.filterwarnings("ignore:Every start left a cluster without variance"),
    pytest.mark.filterwarnings("ignore:Only .* samples have a prior above zero"),
]

X, _ = blobs(15)
CHUNKS = (1, 20, 0, 24)
METHODS = ("predict", "transform", "predict_proba", "decision_function")
NAMES = ["a", "b", "c", "d"]


def untouched(table, chunks=None):
    """Return a Dask array that cannot be computed."""

    def fail(block):
        raise AssertionError("Somebody computed the collection.")

    return lazy(table, chunks).map_blocks(fail, dtype=np.float64, meta=np.empty((0, 0)))


def lazy(table, chunks=None):
    return da.from_array(table, chunks=(chunks or CHUNKS, table.shape[1]))


def methods_of(model):
    return [name for name in METHODS if hasattr(model, name)]


@for_estimators(lambda case: case.has_predict)
def test_answers_are_lazy_and_those_of_arrays(case):
    table = case.form(X)
    model = case.make().fit(table)
    assert methods_of(model)
    columns_apart = da.from_array(table, chunks=(CHUNKS, (1, table.shape[1] - 1)))
    for name in methods_of(model):
        expected = getattr(model, name)(table)
        promised = getattr(model, name)(untouched(table))
        assert isinstance(promised, da.Array)
        assert (promised.shape, promised.dtype, promised.chunks[0]) == (expected.shape, expected.dtype, CHUNKS)
        answer = getattr(model, name)(columns_apart).compute()
        assert answer.dtype == expected.dtype
        np.testing.assert_allclose(answer, expected, atol=1e-12)


@for_estimators(lambda case: case.multi_view and case.has_predict)
def test_views_in_lists_and_dicts_follow_the_chunks_of_the_first(case):
    table = case.form(X)
    front = table[:, :2]
    back = table[:, 2:]
    model = case.make().fit({"p": front, "q": back})
    expected = model.predict({"p": front, "q": back})
    answer = model.predict({"q": lazy(back), "p": lazy(front, (30, 15))})
    assert answer.chunks == (CHUNKS,)
    assert answer.compute().tolist() == expected.tolist()
    listed = case.make().fit([front, back])
    assert listed.predict([lazy(front), back]).compute().tolist() == listed.predict([front, back]).tolist()


@for_estimators(lambda case: not getattr(case.cls, "_takes_blocks", False))
def test_fits_that_need_all_samples_refuse_collections_and_say_what_to_do(case):
    table = case.form(X)
    collections = [untouched(table), dd.from_pandas(pd.DataFrame(table), npartitions=2)]
    if case.multi_view:
        collections += [{"p": table, "q": untouched(table)}, [untouched(table)]]
    for collection in collections:
        with pytest.raises(ParameterError, match=rf"X is a Dask collection, and {case}(.|\n)*X.compute(.|\n)*KernelKM"):
            case.make().fit(collection)


def test_other_readers_refuse_collections():
    with pytest.raises(ParameterError, match="Dask collection"):
        as_views(untouched(X))
    with pytest.raises(ParameterError, match="ViewScaler needs all samples"):
        ViewScaler().fit([untouched(X)])


def test_fit_of_a_sample_then_predict_all():
    model = KernelSpectralClustering(3).fit(X[:30])
    assert model.predict(lazy(X)).compute().tolist() == model.predict(X).tolist()
    views = [X[:, :2], X[:, 2:]]
    several = MultiViewKernelSpectralClustering(3).fit([view[:30] for view in views])
    assert several.predict([lazy(view) for view in views]).compute().tolist() == several.predict(views).tolist()


# Data frames


def frame(npartitions=3):
    return dd.from_pandas(pd.DataFrame(X, columns=NAMES), npartitions=npartitions)


def test_data_frames_keep_their_names_and_may_have_partitions_of_unknown_size():
    model = KMedoids(3, random_state=0).fit(pd.DataFrame(X, columns=NAMES))
    table = frame()
    few = table[table["a"] > 6.0]
    labels = model.predict(few)
    assert np.isnan(labels.shape[0])
    assert labels.compute().tolist() == model.predict(few.compute()).tolist()
    distances = model.transform(few)
    assert distances.shape[1] == 3
    np.testing.assert_array_equal(distances.compute(), model.transform(few.compute()))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(few.rename(columns={"a": "z"}))


def test_data_frames_as_views_need_the_same_partitions():
    views = {"p": X[:, :2], "q": X[:, 2:]}
    model = MultiViewKernelKMeans(3, kernel="linear", random_state=0).fit(views)
    table = frame()
    by_name = {"p": table[["a", "b"]], "q": table[["c", "d"]]}
    assert model.predict(by_name).compute().tolist() == model.predict(views).tolist()
    with pytest.raises(ParameterError, match="'q' cannot be matched with"):
        model.predict({"p": table[["a", "b"]], "q": lazy(X[:, 2:], (10, 35))})
    with pytest.raises(ParameterError, match="'q' cannot be matched with"):
        model.predict({"p": table[["a", "b"]], "q": X[:, 2:]})


# Faults


def test_faults_are_told_before_anything_is_computed():
    model = KernelKMeans(3, random_state=0).fit(X)
    with pytest.raises(ValueError, match="3 features"):
        model.predict(untouched(X[:, :3]))
    with pytest.raises(ParameterError, match="X has 1 dimensions"):
        model.predict(da.from_array(X[:, 0]))
    views = MultiViewKernelKMeans(3, kernel="linear", random_state=0).fit([X[:, :2], X[:, 2:]])
    with pytest.raises(ViewError, match="44 samples"):
        views.predict([lazy(X[:, :2]), da.from_array(X[:44, 2:])])
    with pytest.raises(ValueError, match="not fitted"):
        KernelKMeans().predict(untouched(X))


def test_faults_in_the_samples_are_told_when_they_are_computed():
    model = KernelKMeans(3, random_state=0).fit(X)
    spoilt = X.copy()
    spoilt[40, 2] = np.nan
    answer = model.predict(lazy(spoilt))
    with pytest.raises(ValueError, match="NaN"):
        answer.compute()


# What scikit-learn's tools do with it


def test_set_output_does_not_compute():
    model = KernelKMeans(3, kernel="linear", random_state=0).fit(X).set_output(transform="pandas")
    distances = model.transform(untouched(X))
    assert isinstance(distances, da.Array)
    np.testing.assert_array_equal(model.transform(lazy(X)).compute(), model.transform(X).to_numpy())
    fresh = KernelKMeans(3, kernel="linear", random_state=0).set_output(transform="pandas")
    assert isinstance(fresh.fit_transform(lazy(X)), da.Array)


def test_an_answer_is_that_of_the_model_it_was_asked_of():
    model = MinMaxKMeans(3, random_state=0).fit(X)
    expected = model.predict(X)
    answer = model.predict(lazy(X))
    model.set_params(n_clusters=2).fit(X)
    assert answer.compute().tolist() == expected.tolist()


@for_estimators(lambda case: hasattr(case.make(), "score"))
def test_scores_that_are_sums_are_computed_in_blocks(case):
    table = case.form(X)
    model = case.make().fit(table)
    if "mean log-likelihood" in (case.cls.score.__doc__ or ""):
        with pytest.raises(ParameterError, match="Dask collection"):
            model.score(untouched(table))
        return
    assert model.score(lazy(table)) == pytest.approx(model.score(table))
    with pytest.raises(ParameterError, match="sample_weight"):
        model.score(untouched(table), sample_weight=np.ones(len(table)))


def test_chunks_may_be_sparse():
    model = KernelKMeans(3, kernel="linear", random_state=0).fit(X)
    sparse = lazy(X).map_blocks(sp.csr_array)
    assert model.predict(sparse).compute().tolist() == model.predict(X).tolist()
