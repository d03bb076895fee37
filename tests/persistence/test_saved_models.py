"""Saved models: every estimator comes back as it was, and files that are not models are refused.

Run as a program, this saves models that later versions must read (see ``stored_models``)::

    python -m tests.persistence.test_saved_models KernelKMeans KernelKMeans-nystroem

Without names it saves all that there is no file of in the present version of the format.
"""

import json
import pickle
import sys
import zipfile
from hashlib import sha256
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.cluster import KMeans
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from kernelweave import (
    ConvexMixture,
    DataError,
    KernelKMeans,
    MultiViewConvexMixture,
    MultiViewKernelKMeans,
    ParameterError,
    load_model,
    save_model,
)
from kernelweave.persistence import models
from kernelweave.persistence.names import VERSION
from tests.estimators.discovery import blobs, for_estimators, same
from tests.persistence.stored_models import NEW, X, keep_all

pytestmark = [
    pytest.mark.filterwarnings("ignore:Every start left a cluster without variance"),
    pytest.mark.filterwarnings("ignore:Only .* samples have a prior above zero"),
    pytest.mark.filterwarnings("ignore:View .* has no scatter left"),
    pytest.mark.filterwarnings("ignore:The clusters have no variance left"),
    pytest.mark.filterwarnings("ignore::kernelweave.NotPSDWarning"),
]

KERNELS = ["linear", "poly", "laplacian", "cosine", "chi2", "normalized_poly", "nearest_neighbors", "self_tuning"]


def round_trip(model, tmp_path):
    return load_model(save_model(model, tmp_path / "model.kwm"))


def assert_equal_models(model, again, new):
    """Check that all fitted attributes and all results are the same."""
    assert type(again) is type(model)
    assert again.get_params().keys() == model.get_params().keys()
    fitted = [name for name in vars(model) if name.endswith("_") and not name.startswith("_")]
    assert fitted
    for name in fitted:
        assert same(getattr(again, name), getattr(model, name)), name
    for method in ("predict", "transform", "predict_proba", "decision_function"):
        if hasattr(model, method):
            np.testing.assert_array_equal(getattr(again, method)(new), getattr(model, method)(new))


@for_estimators()
def test_every_estimator_comes_back_as_it_was(case, tmp_path):
    model = case.make().fit(case.form(X))
    assert_equal_models(model, round_trip(model, tmp_path), case.form(X) if case.pairwise else case.form(NEW))


@for_estimators(lambda case: case.multi_view)
def test_several_views_come_back_as_they_were(case, tmp_path):
    model = case.make().fit({"front": X[:, :2], "back": X[:, 2:]})
    assert_equal_models(model, round_trip(model, tmp_path), {"front": NEW[:, :2], "back": NEW[:, 2:]})


@pytest.mark.parametrize("kernel", [*KERNELS, ConstantKernel(2.0) * RBF(length_scale=4.0)], ids=str)
@for_estimators(lambda case: case.takes_kernel and not case.needs_feature_space)
def test_every_kernel_comes_back_as_it_was(case, kernel, tmp_path):
    model = case.make(kernel=kernel, **case.refined).fit(X / 10.0)  # small numbers: regressions on cubes take long
    again = round_trip(model, tmp_path)
    assert repr(again.kernel) == repr(model.kernel)
    assert_equal_models(model, again, NEW / 10.0)


@pytest.mark.parametrize("kernel", ["precomputed"])
@for_estimators(lambda case: case.takes_kernel and case.has_predict)
def test_models_of_kernel_matrices_come_back_as_they_were(case, kernel, tmp_path):
    K = np.exp(-0.01 * ((X[:, None] - X) ** 2).sum(axis=-1))
    model = case.make(**(case.precomputed | {"kernel": kernel})).fit(K)
    assert round_trip(model, tmp_path).predict(K[:5]).tolist() == model.predict(K[:5]).tolist()


@pytest.mark.parametrize("approximation", ["nystroem", "random_features"])
@for_estimators(lambda case: case.has("approximation"))
def test_approximations_come_back_as_they_were(case, approximation, tmp_path):
    model = case.make(approximation=approximation, n_components=8).fit(X)
    assert_equal_models(model, round_trip(model, tmp_path), NEW)


def test_sparse_samples_names_and_random_states_are_kept(tmp_path):
    sparse = KernelKMeans(3, random_state=np.random.RandomState(3)).fit(sp.csr_array(X))
    again = round_trip(sparse, tmp_path)
    assert again.predict(sp.csr_array(NEW)).tolist() == sparse.predict(sp.csr_array(NEW)).tolist()
    assert again.random_state.randint(10**9) == sparse.random_state.randint(10**9)
    frame = pd.DataFrame(X, columns=list("abcd"))
    named = MultiViewKernelKMeans(3, views={"p": ["a", "b"], "q": slice(2, None)}, random_state=0).fit(frame)
    again = round_trip(named, tmp_path)
    assert again.views == {"p": ["a", "b"], "q": slice(2, None)}
    assert again.feature_names_in_.tolist() == list("abcd")
    with pytest.raises(ValueError, match="feature names"):
        again.predict(frame.rename(columns={"a": "z"}))
    assert again.fit(frame).labels_.tolist() == named.labels_.tolist()


def test_numbers_that_are_not_finite_are_kept(tmp_path):
    model = KernelKMeans(2, random_state=0).fit(X)
    model.odd_ = [np.inf, -np.inf, np.float32(0.5), np.bool_(True), (1, None)]
    odd = round_trip(model, tmp_path).odd_
    assert odd == model.odd_
    assert [type(value) for value in odd] == [type(value) for value in model.odd_]


# What cannot be saved


def test_functions_are_not_saved_and_the_message_says_why(tmp_path):
    model = KernelKMeans(2, kernel=lambda A, B: A @ B.T, random_state=0).fit(X)
    with pytest.raises(ParameterError, match=r"KernelKMeans\.kernel is the Python function '<lambda>'.*run code"):
        save_model(model, tmp_path / "model.kwm")
    assert list(tmp_path.iterdir()) == []


def test_only_fitted_estimators_of_the_library_are_saved(tmp_path):
    with pytest.raises(NotFittedError):
        save_model(KernelKMeans(2), tmp_path / "model.kwm")
    with pytest.raises(ParameterError, match=r"KMeans.* is not an estimator of kernelweave"):
        save_model(KMeans(2), tmp_path / "model.kwm")
    assert list(tmp_path.iterdir()) == []


def test_a_save_that_fails_leaves_the_older_file_alone(tmp_path):
    path = save_model(KernelKMeans(2, random_state=0).fit(X), tmp_path / "model.kwm")
    before = path.read_bytes()
    with pytest.raises(ParameterError):
        save_model(KernelKMeans(2, kernel=lambda A, B: A @ B.T).fit(X), path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_disk_that_fills_up_leaves_the_older_file_alone(tmp_path, monkeypatch):
    model = KernelKMeans(2, random_state=0).fit(X)
    path = save_model(model, tmp_path / "model.kwm")
    before = path.read_bytes()

    def fill(place, *_):
        place.write_bytes(b"half of it")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(models, "_archive", fill)
    with pytest.raises(OSError, match="No space left"):
        save_model(model, path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


# What cannot be loaded


@pytest.fixture
def saved(tmp_path):
    return save_model(KernelKMeans(2, random_state=0).fit(X), tmp_path / "model.kwm")


def unpacked(path):
    """Return the members of a file by name, without the checksums."""
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist() if name != models.SUMS}


def packed(path, members):
    """Write members with checksums that match, as a careful forger would; return the file."""
    sums = "".join(f"{sha256(content).hexdigest()}  {name}\n" for name, content in members.items())
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in {**members, models.SUMS: sums}.items():
            archive.writestr(name, content)
    return path


def rewritten(path, change):
    """Return the file with its description changed and the checksums computed again."""
    members = unpacked(path)
    tree = json.loads(members["model.json"])
    change(tree)
    return packed(path, members | {"model.json": json.dumps(tree).encode()})


class Trap:
    """Unpickled, it would write a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(DataError, match=r"none\.kwm: there is no such file"):
        load_model(tmp_path / "none.kwm")


def test_newer_and_invalid_versions_are_refused(saved):
    with pytest.raises(DataError, match=r"version 99 .* reads versions up to 2\. Install a newer one"):
        load_model(rewritten(saved, lambda tree: tree.update(version=99)))
    for version in ("1", 0, None, 1.5):
        with pytest.raises(DataError, match="no valid version number"):
            load_model(rewritten(saved, lambda tree, version=version: tree.update(version=version)))


@pytest.mark.parametrize("name", ["os.system", "builtins.eval", "subprocess.Popen", "kernelweave.cli.main"])
def test_classes_that_are_not_of_models_are_refused(saved, name):
    def change(tree):
        tree["model"]["$object"][1]["kernel"] = {"$object": [name, {}]}

    with pytest.raises(DataError, match=f"names '{name}', which is not a model class"):
        load_model(rewritten(saved, change))


@pytest.mark.parametrize("key", ["__class__", "__dict__", "a b", ""])
def test_fields_that_are_none_are_refused(saved, key):
    with pytest.raises(DataError, match="is not a field of"):
        load_model(rewritten(saved, lambda tree: tree["model"]["$object"][1].update({key: 1})))


def test_pickles_are_never_opened(saved, tmp_path):
    trap = tmp_path / "sprung"
    bad = tmp_path / "bad.kwm"
    bad.write_bytes(pickle.dumps(Trap(trap)))
    with pytest.raises(DataError, match=r"bad\.kwm: this is not a saved model"):
        load_model(bad)
    array = tmp_path / "array.npy"
    np.save(array, np.array([Trap(trap)], dtype=object), allow_pickle=True)
    packed(saved, unpacked(saved) | {"arrays/0.npy": array.read_bytes()})
    with pytest.raises(DataError, match=r"damaged: arrays/0\.npy is an array of object"):
        load_model(saved)
    assert not trap.exists()


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.99])
def test_a_file_cut_short_is_refused(saved, share):
    content = saved.read_bytes()
    saved.write_bytes(content[: int(share * len(content))])
    with pytest.raises(DataError, match=r"model\.kwm: "):
        load_model(saved)


def test_other_archives_and_descriptions_are_refused(saved, tmp_path):
    other = tmp_path / "other.zip"
    np.savez(tmp_path / "plain.npz", a=X)
    with pytest.raises(DataError, match=r"holds no model\.json"):
        load_model(tmp_path / "plain.npz")
    for text, match in (("[]", "does not describe"), ("{", "damaged"), ('{"format": "other"}', "does not describe")):
        with zipfile.ZipFile(other, "w") as archive:
            archive.writestr("model.json", text)
        with pytest.raises(DataError, match=match):
            load_model(other)
    for tree in ({"$evil": 1}, {"$array": 10**6}, {"$object": ["x"]}, {"a": 1, "b": 2}, {"$float": "1e400"}):
        with pytest.raises(DataError):
            load_model(rewritten(saved, lambda whole, tree=tree: whole.update(model=tree)))


def test_a_model_without_a_parameter_is_refused(saved):
    with pytest.raises(DataError, match="has no 'kernel'"):
        load_model(rewritten(saved, lambda tree: tree["model"]["$object"][1].pop("kernel")))


@pytest.mark.parametrize("cls", [ConvexMixture, MultiViewConvexMixture])
def test_mixtures_refined_by_kernel_k_means_come_back(cls, tmp_path):
    X, _ = blobs(20)
    data = X if cls is ConvexMixture else [X, X[:, :1]]
    model = cls(3, refine="kernel_kmeans").fit(data)
    back = load_model(save_model(model, tmp_path / "refined.kwm"))
    np.testing.assert_array_equal(back.predict(data), model.predict(data))


@pytest.mark.parametrize("notes", [{"a": object()}, {"a": float("nan")}, {"a": np.arange(3)}])
def test_notes_that_json_cannot_hold_are_refused_and_nothing_is_written(notes, tmp_path):
    model = KernelKMeans(2, random_state=0).fit(blobs(5)[0])
    with pytest.raises(ParameterError, match="notes must be valid JSON"):
        save_model(model, tmp_path / "m.kwm", notes=notes)
    assert list(tmp_path.iterdir()) == []


if __name__ == "__main__":
    keep_all(sys.argv[1:], VERSION)
