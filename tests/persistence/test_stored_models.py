"""Models saved by earlier versions: they load and give the results they gave, whatever has moved since."""

import json
import shutil
import zipfile
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
import pytest

from kernelweave import DataError, KernelKMeans, KernelSpectralClustering, ParameterError, load_model, save_model
from kernelweave.estimators.shared.models import CenterModel
from kernelweave.kernels.spec.fitting import FormulaKernel
from kernelweave.persistence import models, names, steps, upgrades
from tests.estimators.discovery import all_estimators, for_estimators
from tests.persistence.stored_models import (
    FOLDER,
    FORMS,
    NEW,
    SUMS,
    VARIANTS,
    X,
    all_variants,
    answers,
    checksum,
    estimator_of,
    keep_all,
    sums,
)
from tests.persistence.test_saved_models import packed, rewritten, unpacked

pytestmark = [
    pytest.mark.filterwarnings("ignore:Number of distinct clusters"),
    pytest.mark.filterwarnings("ignore:Only .* samples have a prior above zero"),
    pytest.mark.filterwarnings("ignore::kernelweave.NotPSDWarning"),
]

FILES = sorted(FOLDER.glob("*.kwm"))
# Other processors add up in another order.
TOLERANCE = 1e-7
# The modules that version 1 wrote before and after the package was laid out by families of methods.
MOVED = {
    "kernelweave.estimators._dividing": "kernelweave.estimators.margin.dividing",
    "kernelweave.estimators._multi_view.": "kernelweave.estimators.shared.multi_view.",
    "kernelweave.estimators._multi_view_kernel_spectral": "kernelweave.estimators.spectral.multi_view_kernel_spectral",
    "kernelweave.estimators._ratio_mkc": "kernelweave.estimators.margin.ratio_clustering",
    "kernelweave.estimators._scaling": "kernelweave.preprocessing.view_scaler",
    "kernelweave.operators._neighbors": "kernelweave.kernels.spec.neighbors",
    "kernelweave.operators.divergences": "kernelweave.kernels.divergences",
    "kernelweave.operators.factory": "kernelweave.kernels.spec.fitting",
    "kernelweave.operators.formulas": "kernelweave.kernels.spec.formulas",
}


def description(path):
    with zipfile.ZipFile(path) as archive:
        return json.loads(archive.read(models.DESCRIPTION))


def class_names_in(tree):
    """Yield the name of every object in a description."""
    if isinstance(tree, dict | list):
        for item in tree.values() if isinstance(tree, dict) else tree:
            yield from class_names_in(item)
    if isinstance(tree, dict) and "$object" in tree:
        yield tree["$object"][0]


def assert_results(model, path):
    """Check the labels of a model and its results for new samples against those recorded beside its file."""
    recorded = json.loads(path.with_suffix(".json").read_text())
    form = recorded.pop("form")
    assert estimator_of(model).labels_.tolist() == recorded.pop("labels")
    results = answers(model, form)
    assert results.keys() >= recorded.keys()
    for method, values in recorded.items():
        if method.startswith("predict") and method != "predict_proba":
            assert results[method].tolist() == values
        else:
            np.testing.assert_allclose(results[method], values, rtol=TOLERANCE, atol=TOLERANCE)


# The files


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_stored_models_load_and_give_the_results_they_gave(path):
    model = load_model(path)
    assert type(estimator_of(model)).__name__ == path.stem.split("-")[1]
    assert description(path)["version"] == int(path.stem.split("-")[0].removeprefix("v"))
    assert_results(model, path)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_stored_models_load_again_when_they_are_saved_anew(path, tmp_path):
    assert_results(load_model(save_model(load_model(path), tmp_path / "anew.kwm")), path)


def test_stored_models_are_never_saved_again():
    present = {path.name: checksum(path) for path in FOLDER.iterdir() if path != SUMS}
    assert present == sums(), "files of models stay as they are; for a new one add a line to SHA256SUMS"


@for_estimators()
def test_every_estimator_has_a_file(case):
    stems = {path.stem for path in FILES}
    assert any(stem.split("-", 1)[1] == repr(case) for stem in stems), (
        f"save one with python -m tests.persistence.test_saved_models {case}"
    )


def test_the_first_models_of_scores_decide_at_zero_as_they_did():
    first = load_model(FOLDER / "v1-KernelSpectralClustering-first.kwm")
    assert first._model.codebook.floor.tolist() == [0.0, 0.0]
    assert first.predict(X).tolist() == first.labels_.tolist()
    views = load_model(FOLDER / "v1-MultiViewKernelSpectralClustering-first.kwm")
    assert views._model.codebook.floor.tolist() == [0.0, 0.0]
    later = load_model(FOLDER / "v1-KernelSpectralClustering.kwm")
    assert (later._model.codebook.floor > 0).all()


# Names


def test_files_have_every_class_that_version_1_could_write():
    written = {names.VERSION_1[name] for path in FOLDER.glob("v1-*.kwm") for name in class_names_in(description(path))}
    never = {"gaussian_process/CompoundKernel"}  # made by functions for several outputs, not by users
    assert set(names.VERSION_1.values()) - written == never


@pytest.mark.parametrize("path", sorted(FOLDER.glob("v1-*.kwm")), ids=lambda path: path.stem)
def test_version_1_wrote_other_modules_after_the_move(path, tmp_path):
    members = unpacked(path)
    text = members[models.DESCRIPTION].decode()
    for before, after in MOVED.items():
        text = text.replace(before, after)
    moved = packed(tmp_path / path.name, members | {models.DESCRIPTION: text.encode()})
    assert not any(name.startswith(tuple(MOVED)) for name in class_names_in(description(moved)))
    assert_results(load_model(moved), path)


@pytest.mark.parametrize("name", all_variants())
def test_every_variant_comes_back_and_names_no_module(name, tmp_path):
    cls, variant = all_variants()[name]
    model = variant.fitted(cls)
    path = save_model(model, tmp_path / "model.kwm")
    written = set(class_names_in(description(path)))
    assert f"estimator/{cls.__name__}" in written
    assert written <= names.CLASSES.keys()
    again = answers(load_model(path), variant.form)
    for method, values in answers(model, variant.form).items():
        np.testing.assert_array_equal(again[method], values)


def test_names_have_a_kind_and_one_class_each():
    for name, cls in names.CLASSES.items():
        kind, _, rest = name.partition("/")
        assert kind.isidentifier()
        assert rest.isidentifier()
        assert names.name_of(cls) == name
    assert {case.cls for case in all_estimators()} == names.ESTIMATORS


def test_names_do_not_follow_a_class_that_moves(tmp_path, monkeypatch):
    model = KernelKMeans(3, random_state=0).fit(X)
    path = save_model(model, tmp_path / "model.kwm")
    for cls in (KernelKMeans, FormulaKernel):
        monkeypatch.setattr(cls, "__module__", "kernelweave.elsewhere")
    assert load_model(path).predict(NEW).tolist() == model.predict(NEW).tolist()
    assert set(class_names_in(description(save_model(model, path)))) == {
        "estimator/KernelKMeans",
        "model/Centers",
        "kernel/FormulaKernel",
        "formula/Gaussian",
    }


def test_names_of_another_version_are_refused(tmp_path):
    path = save_model(KernelKMeans(3, random_state=0).fit(X), tmp_path / "model.kwm")
    rewritten(path, lambda tree: tree.update(version=1))
    with pytest.raises(DataError, match="names 'estimator/KernelKMeans', which is not a model class"):
        load_model(path)
    older = shutil.copyfile(FOLDER / "v1-KernelKMeans.kwm", tmp_path / "older.kwm")
    rewritten(older, lambda tree: tree.update(version=2))
    with pytest.raises(DataError, match=r"names 'kernelweave\.estimators\.KernelKMeans', which is not a model class"):
        load_model(older)


# Upgrades


@pytest.fixture
def older(tmp_path):
    return shutil.copyfile(FOLDER / "v1-KernelKMeans.kwm", tmp_path / "older.kwm")


def replaced_array(path, key, value):
    """Put another array where a field of the estimator was; return the file."""
    members = unpacked(path)
    number = description(path)["model"]["$object"][1][key]["$array"]
    with (path.parent / "array.npy").open("wb") as file:
        np.save(file, value)
    return packed(path, members | {f"arrays/{number}.npy": (path.parent / "array.npy").read_bytes()})


def test_fields_move_into_a_composed_object_and_come_back(older, tmp_path):
    before = description(older)["model"]["$object"][1]
    model = load_model(older)
    gone = {"_kernel", "_weights", "_totals", "_norms"}
    assert vars(model).keys() == before.keys() - gone | {"_model", "checkpoint"}
    assert vars(model._model).keys() == {"kernel", "labels", "weights", "totals", "norms", "factors", "view_norms"}
    assert model._model.labels is model.labels_
    again = load_model(save_model(model, tmp_path / "again.kwm"))
    for name in ("labels", "weights", "totals", "norms"):
        assert getattr(again._model, name).tolist() == getattr(model._model, name).tolist()
    assert description(tmp_path / "again.kwm")["model"]["$object"][1]["_model"]["$object"][0] == "model/Centers"


@pytest.mark.parametrize(
    ("key", "value", "match"),
    [
        ("_totals", np.ones(2), "'norms' of a wrong size"),
        ("_totals", np.ones((3, 1)), "'totals' of a wrong shape"),
        ("_weights", np.ones(29), "'weights' of a wrong size"),
        ("_weights", np.ones(30, dtype=int), "CenterModel has 'weights' of a wrong kind"),
        ("labels_", np.full(30, 3), "'labels_' of clusters that are not there"),
        ("labels_", np.zeros(31, dtype=int), "'weights' of a wrong size"),
    ],
)
def test_sizes_in_composed_objects_are_compared_with_those_of_the_estimator(older, key, value, match):
    replaced_array(older, key, value)
    with pytest.raises(DataError, match=rf"older\.kwm: the saved model is damaged: .*{match}"):
        load_model(older)


def test_kernels_in_composed_objects_must_be_of_the_same_samples(older):
    replaced_array(older, "labels_", np.zeros(31, dtype=int))
    replaced_array(older, "_weights", np.ones(31))
    with pytest.raises(DataError, match="KernelKMeans has a kernel of other samples"):
        load_model(older)


def test_an_upgrade_of_a_file_without_the_field_says_which(older):
    rewritten(older, lambda tree: tree["model"]["$object"][1].pop("_norms"))
    with pytest.raises(DataError, match=r"older\.kwm: the saved model is damaged: it has no '_norms'"):
        load_model(older)


def test_whatever_goes_wrong_in_an_upgrade_is_damage_of_the_file(tmp_path):
    path = shutil.copyfile(FOLDER / "v1-KernelSpectralClustering-first.kwm", tmp_path / "first.kwm")
    for value in (None, 5, [], {"$texts": ["a"]}):
        rewritten(path, lambda tree, value=value: tree["model"]["$object"][1].update(codebook_=value))
        with pytest.raises(DataError, match=r"first\.kwm: the saved model is damaged"):
            load_model(path)


def test_files_of_the_present_version_are_not_upgraded(monkeypatch, tmp_path):
    def refuse(old):
        raise AssertionError(old)

    path = save_model(KernelSpectralClustering(3, random_state=0).fit(X), tmp_path / "model.kwm")
    monkeypatch.setitem(upgrades.UPGRADES[1], "estimator/KernelSpectralClustering", refuse)
    assert load_model(path).labels_.shape == (30,)


def test_classes_that_are_gone_have_a_successor_and_versions_follow_one_another(monkeypatch, older):
    for module in (names, upgrades):
        monkeypatch.setattr(module, "VERSION", 3)
    monkeypatch.setitem(names.REPLACED, 1, {"formula/Gaussian": "formula/Second"})
    monkeypatch.setitem(names.REPLACED, 2, {"formula/Second": "formula/Third"})
    monkeypatch.setitem(names.CLASSES, "formula/Third", names.CLASSES["formula/Gaussian"])
    monkeypatch.delitem(names.CLASSES, "formula/Gaussian")
    passed = []

    def noted(step):
        return lambda old: passed.append((step, sorted(old))) or steps.renamed(old, gamma="width", width="gamma")

    monkeypatch.setitem(upgrades.UPGRADES[1], "formula/Gaussian", noted("first"))
    monkeypatch.setitem(upgrades.UPGRADES, 2, {"formula/Second": noted("second"), "formula/Third": noted("never")})
    model = load_model(older)
    assert passed == [("first", ["centre", "gamma"]), ("second", ["centre", "width"])]
    assert model.predict(NEW).shape == (12,)
    assert names.name_of(type(model._model.kernel.formula)) == "formula/Third"


@dataclass(frozen=True)
class Several:
    """Fields of types that composed objects may have."""

    parts: tuple[CenterModel, ...]
    mode: Literal["joint", "per_view"]

    @cached_property
    def expensive(self):
        return object()


def test_types_of_composed_objects_are_checked_and_what_they_cache_is_not_saved(older, tmp_path, monkeypatch):
    monkeypatch.setitem(names.CLASSES, "model/Several", Several)
    model = load_model(older)
    model._several = Several((model._model,), "joint")
    assert model._several.expensive is not None
    again = load_model(save_model(model, tmp_path / "model.kwm"))
    assert vars(again._several).keys() == {"parts", "mode"}
    for wrong in (Several((5,), "joint"), Several([model._model], "joint"), Several((), "none")):
        model._several = wrong
        with pytest.raises(ParameterError, match=r"Several has '(parts|mode)' of a wrong kind"):
            save_model(model, tmp_path / "model.kwm")


def test_sizes_are_compared_in_objects_within_objects(older, tmp_path, monkeypatch):
    monkeypatch.setitem(names.CLASSES, "model/Several", Several)
    model = load_model(older)
    model._several = Several((replace(model._model, totals=np.ones(2)),), "joint")
    with pytest.raises(ParameterError, match="KernelKMeans has 'totals' of a wrong size"):
        save_model(model, tmp_path / "model.kwm")


def test_names_can_be_passed_on_at_once():
    old = {"weights": "learned", "view_weights": None, "ridge": 0.1, "p": 2.0}
    new = steps.renamed(old, weights="view_weights", view_weights="init_view_weights", ridge="regularization")
    assert new == {"view_weights": "learned", "init_view_weights": None, "regularization": 0.1, "p": 2.0}
    assert list(old) == ["weights", "view_weights", "ridge", "p"]


def test_the_tables_are_complete():
    versions = set(range(1, names.VERSION))
    assert upgrades.UPGRADES.keys() == versions
    assert names.REPLACED.keys() == versions
    for version in versions:
        known = names.CLASSES.keys() | {old for step in names.REPLACED.values() for old in step}
        assert upgrades.UPGRADES[version].keys() <= known
    for written in names.VERSION_1:
        assert names.names_since(written, 1)[-1] in names.CLASSES


# The command


def test_saving_new_files_adds_their_checksums_and_leaves_others_alone(tmp_path):
    keep_all(["KernelKMeans", "KernelKMeans-sparse"], names.VERSION, tmp_path)
    lines = (tmp_path / SUMS.name).read_text().splitlines()
    stems = [f"v{names.VERSION}-KernelKMeans", f"v{names.VERSION}-KernelKMeans-sparse"]
    files = [tmp_path / f"{stem}{suffix}" for stem in stems for suffix in (".kwm", ".json")]
    assert lines == [f"{checksum(path)}  {path.name}" for path in files]
    for path in files[::2]:
        assert_results(load_model(path), path)
    with pytest.raises(SystemExit, match=r"v\d-KernelKMeans\.kwm is there already"):
        keep_all(["KernelKMeans"], names.VERSION, tmp_path)
    with pytest.raises(SystemExit, match="There is no model 'KMeans'"):
        keep_all(["KMeans"], names.VERSION, tmp_path)
    assert (tmp_path / SUMS.name).read_text().splitlines() == lines


def test_variants_use_every_form_of_input():
    assert {variant.form for variant in VARIANTS.values()} == FORMS.keys() - {"similarities"}
