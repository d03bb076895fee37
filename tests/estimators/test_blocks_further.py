"""What else works on tables in blocks: checkpoints, kernel spectral clustering, starts on the workers of a cluster."""

import dask.array as da
import joblib
import numpy as np
import pytest
import zarr
from distributed import Client

from kernelweave import (
    KernelKMeans,
    KernelSpectralClustering,
    MinMaxKMeans,
    MultiViewKernelSpectralClustering,
    ParameterError,
)
from kernelweave.foundation import checkpoints
from tests.dask_clusters import two_views

N = 400
K = 3
CHUNKS = (1, 150, 1, 90, 158)


A, B = two_views(N, K, distance=4.0)


def in_chunks(X):
    return da.from_array(X, chunks=(CHUNKS, X.shape[1]))


class StoppedError(Exception):
    """Stands for the end of the process."""


@pytest.fixture
def stop_after(monkeypatch):
    """Have every state written at once, and a fit end after so many of them."""
    monkeypatch.setattr(checkpoints, "INTERVAL", 0.0)
    keep = checkpoints._FileKeeper.keep

    def set_count(count):
        left = [count]

        def stopping(self, *args, **kwargs):
            keep(self, *args, **kwargs)
            left[0] -= 1
            if left[0] == 0:
                raise StoppedError

        monkeypatch.setattr(checkpoints._FileKeeper, "keep", stopping)

    return set_count


@pytest.mark.parametrize("count", [1, 5, 12])
def test_a_stopped_fit_of_a_table_in_blocks_goes_on_and_ends_with_the_labels_of_one_process(
    count, stop_after, tmp_path
):
    X = np.random.default_rng(1).standard_normal((N, 5))
    model = KernelKMeans(8, kernel="linear", n_init=3, random_state=0)
    kept = KernelKMeans(8, kernel="linear", n_init=3, random_state=0, checkpoint=tmp_path / "fit.ck")
    stop_after(count)
    with pytest.raises(StoppedError):
        kept.fit(in_chunks(X))
    assert (tmp_path / "fit.ck").exists()
    stop_after(-1)
    with pytest.raises(ParameterError, match="X was a table in blocks"):
        kept.fit(in_chunks(X + 1.0))
    np.testing.assert_array_equal(kept.fit(in_chunks(X)).labels_, model.fit(X).labels_)
    assert not (tmp_path / "fit.ck").exists()


@pytest.mark.parametrize("selection", ["random", "entropy"])
def test_kernel_spectral_clustering_trains_on_the_rows_it_trains_on_in_memory(selection):
    model = KernelSpectralClustering(K, n_train_samples=60, selection=selection, random_state=0)
    there = model.fit(in_chunks(A))
    indices = there.train_indices_
    labels = there.labels_
    here = model.fit(A)
    np.testing.assert_array_equal(indices, here.train_indices_)
    np.testing.assert_array_equal(labels, here.labels_)
    assert isinstance(labels, np.ndarray)


def test_kernel_spectral_clustering_of_views_and_of_other_tables_in_blocks():
    model = MultiViewKernelSpectralClustering(K, n_train_samples=80, random_state=0)
    expected = model.fit({"a": A, "b": B}).labels_
    np.testing.assert_array_equal(model.fit({"a": in_chunks(A), "b": in_chunks(B)}).labels_, expected)
    np.testing.assert_array_equal(model.fit({"a": zarr.array(A), "b": zarr.array(B)}).labels_, expected)
    single = KernelSpectralClustering(K, n_train_samples=60, random_state=0)
    expected = single.fit(A).labels_
    np.testing.assert_array_equal(single.fit(zarr.array(A, chunks=(50, 5))).labels_, expected)


def test_training_on_all_samples_in_blocks_or_view_by_view_is_refused():
    with pytest.raises(ParameterError, match=r"n_train_samples=None trains on all 400 samples"):
        KernelSpectralClustering(K).fit(in_chunks(A))
    model = MultiViewKernelSpectralClustering(K, n_train_samples=80, assignment="per_view")
    with pytest.raises(ParameterError, match="assignment='per_view'"):
        model.fit({"a": in_chunks(A), "b": in_chunks(B)})


def test_starts_on_the_workers_of_a_cluster_end_as_they_do_here():
    models = [KernelKMeans(5, n_init=3, random_state=0), MinMaxKMeans(3, init="k-means++", n_init=3, random_state=0)]
    expected = [model.fit(A).labels_ for model in models]
    with (
        Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=":0"),
        joblib.parallel_config("dask"),
    ):
        found = [model.fit(A).labels_ for model in models]
    for one, other in zip(expected, found, strict=True):
        np.testing.assert_array_equal(one, other)
