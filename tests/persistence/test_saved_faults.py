"""Model files that were damaged, edited or made to harm: one sentence that names the file, before anything is used."""

import io
import json
import random
import struct
import zipfile
import zlib
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF
from sklearn.pipeline import make_pipeline

from kernelweave import (
    AffinityPropagation,
    ConvexMixture,
    CorrelationalSpectralClustering,
    DataError,
    GlobalKernelKMeans,
    IterativeSVR,
    KernelKMeans,
    KernelSpectralClustering,
    KMedoids,
    MinMaxKernelKMeans,
    MinMaxKMeans,
    MultiViewConvexMixture,
    MultiViewEM,
    MultiViewKernelKMeans,
    MultiViewKernelSpectralClustering,
    MultiViewKMeans,
    MultiViewSpectralClustering,
    NgSpectralClustering,
    ParameterError,
    PifsKMeans,
    load_model,
    save_model,
)
from kernelweave.persistence import models
from kernelweave.preprocessing import ViewScaler
from tests.persistence.stored_models import FOLDER, X
from tests.persistence.test_saved_models import packed, rewritten, unpacked

MIB = 2**20


def unshared(model):
    """Return a fitted estimator whose public attributes share no array with its model: either can be replaced alone."""
    for name in [name for name in vars(model) if name.endswith("_")]:
        setattr(model, name, deepcopy(getattr(model, name)))
    return model


@pytest.fixture
def saved(tmp_path):
    return save_model(unshared(KernelKMeans(2, random_state=0).fit(X)), tmp_path / "model.kwm")


@pytest.fixture
def scaled(tmp_path):
    model = make_pipeline(ViewScaler(), MultiViewKernelKMeans(2, random_state=0))
    unshared(model.fit({"front": X[:, :2], "back": X[:, 2:]})[-1])
    return save_model(model, tmp_path / "scaled.kwm")


def refusal(path):
    """Return the message of the refusal, which is one line and begins with the file."""
    with pytest.raises(DataError) as caught:
        load_model(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert message.endswith(".")
    assert "\n" not in message
    assert len(message) < len(str(path)) + 400
    return message


def fields(tree):
    """Return the fields of the estimator a description ends in."""
    model = tree["model"]
    return (model["$pipeline"][-1][1] if "$pipeline" in model else model)["$object"][1]


# Damage


def test_every_flipped_byte_is_noticed_or_harmless(saved):
    content, expected = saved.read_bytes(), load_model(saved).predict(X).tolist()
    refused = 0
    for place in range(0, len(content), 7):
        changed = bytearray(content)
        changed[place] ^= 0xFF
        saved.write_bytes(changed)
        try:
            model = load_model(saved)
        except DataError as error:
            assert str(saved) in str(error)  # noqa: PT017 - dates in the archive may change without harm
            refused += 1
        else:
            assert model.predict(X).tolist() == expected
    assert refused > len(content) / 7 / 2


def test_compressed_data_that_cannot_be_unpacked_is_refused(saved):
    with zipfile.ZipFile(saved) as archive:
        place = archive.getinfo("arrays/0.npy").header_offset
    content = bytearray(saved.read_bytes())
    name, extra = struct.unpack("<HH", content[place + 26 : place + 30])
    content[place + 30 + name + extra] |= 0b110  # a kind of block that DEFLATE does not have
    saved.write_bytes(content)
    with zipfile.ZipFile(saved) as archive, pytest.raises(zlib.error):
        archive.read("arrays/0.npy")
    assert "the saved model is damaged" in refusal(saved)


def test_encrypted_archives_and_other_compressions_are_refused(saved):
    content = saved.read_bytes()
    entry = content.index(b"PK\x01\x02")
    encrypted = bytearray(content)
    encrypted[entry + 8] |= 1
    encrypted[6] |= 1
    saved.write_bytes(encrypted)
    assert "the archive is encrypted" in refusal(saved)
    saved.write_bytes(content)
    members = unpacked(saved)
    for method in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        with zipfile.ZipFile(saved, "w", method) as archive:
            for name, member in members.items():
                archive.writestr(name, member)
        assert "not compressed like a saved model" in refusal(saved)


@pytest.mark.parametrize("depth", [101, 900, 100_000])
def test_descriptions_nested_too_deeply_are_refused(saved, depth):
    members = unpacked(saved)
    text = members["model.json"].replace(b'"kernel_params": null', b'"kernel_params": ' + b"[" * depth + b"]" * depth)
    assert text != members["model.json"]
    assert "nested too deeply" in refusal(packed(saved, members | {"model.json": text}))


def test_what_is_nested_too_deeply_is_not_saved(tmp_path):
    deep = []
    for _ in range(200):
        deep = [deep]
    model = KernelKMeans(2, random_state=0).fit(X)
    model.deep_ = deep
    with pytest.raises(ParameterError, match=r"KernelKMeans\.deep_ is nested more than 100 times"):
        save_model(model, tmp_path / "model.kwm")
    assert list(tmp_path.iterdir()) == []


def test_a_part_that_occurs_twice_or_is_used_twice_is_refused(saved):
    rewritten(saved, lambda tree: fields(tree).update(again_={"$array": 0}))
    assert "arrays/0.npy is missing or used twice" in refusal(saved)
    with zipfile.ZipFile(saved, "a") as archive, pytest.warns(UserWarning, match="Duplicate name"):
        archive.writestr("arrays/0.npy", b"")
    assert "occurs twice" in refusal(saved)


# Checksums


def test_members_match_their_checksums(saved):
    with zipfile.ZipFile(saved) as archive:
        before = archive.read(models.SUMS).decode()
        names = archive.namelist()
    assert sorted(line.split("  ")[1] for line in before.splitlines()) == sorted(set(names) - {models.SUMS})
    packed(saved, unpacked(saved))
    with zipfile.ZipFile(saved) as archive:
        assert archive.read(models.SUMS).decode() == before


def test_edited_parts_are_refused(saved):
    with zipfile.ZipFile(saved) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    edits = [
        {"model.json": members["model.json"].replace(b'"n_clusters": 2', b'"n_clusters": 3')},
        {"arrays/0.npy": members["arrays/1.npy"], "arrays/1.npy": members["arrays/0.npy"]},
        {"arrays/99.npy": members["arrays/0.npy"]},
    ]
    for edit in edits:
        with zipfile.ZipFile(saved, "w") as archive:
            for name, member in (members | edit).items():
                archive.writestr(name, member)
        assert "the file was changed or damaged after it was saved" in refusal(saved)
    with zipfile.ZipFile(saved, "w") as archive:
        for name in [name for name in members if name != "arrays/3.npy"]:
            archive.writestr(name, members[name])
    assert "the file was changed or damaged after it was saved (parts were added or removed)" in refusal(saved)


def test_files_without_checksums_are_read(saved):
    members = unpacked(saved)
    with zipfile.ZipFile(saved, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    assert load_model(saved).n_clusters == 2


# Values that cannot be, with checksums that match


@pytest.mark.parametrize(
    ("name", "value", "match"),
    [
        ("n_clusters", -1, "invalid parameter: .*'n_clusters'"),
        ("kernel", "none", "invalid parameter: .*'kernel'"),
        ("storage", 5, "invalid parameter: .*'storage'"),
        ("labels_", 5, "'labels_' of a wrong kind"),
        ("labels_", {"$texts": ["a"]}, "'labels_' of a wrong kind"),
        ("n_features_in_", "x", "'n_features_in_' of a wrong kind"),
        ("feature_names_in_", {"$texts": ["a"]}, "do not agree"),
        ("view_names_", ["a", "b", "c"], "different numbers of views"),
        ("objective_path_", None, "'objective_path_' of a wrong kind"),
        ("predict", 5, "'predict', which is not a field"),
        ("_kernels", [{"$object": ["kernel/ViewKernel", {}]}], "has no 'kernel'"),
        ("_model", {"$object": ["model/Centers", {}]}, "CenterModel has no 'kernel'"),
        ("_model", {"$object": ["kernel/GraphFit", {}]}, "has no 'graph'"),
        ("_model", {"$object": ["kernel/Precomputed", {"K": None, "name": "X"}]}, "'_model' of a wrong kind"),
        ("_model", None, "'_model' of a wrong kind"),
        ("odd_", {"$object": ["kernel/GraphFit", {"graph": "x"}]}, "'graph' of a wrong kind"),
        (
            "odd_",
            {"$object": ["formula/Laplacian", {"gamma": True}]},
            "'gamma' of a wrong kind",
        ),
        ("odd_", {"$object": ["gaussian_process/RBF", {}]}, "has no 'length_scale'"),
        ("odd_", {"$scalar": ["V1", 10**12]}, "is not a number"),
        ("odd_", {"$scalar": ["<f8", "x"]}, "is not a number"),
        ("odd_", {"$bool": [1]}, "is not a truth value"),
        ("odd_", {"$texts": [1]}, "texts are something else"),
        ("odd_", {"$sparse": [[1], [0], [0, 1], [1, 1]]}, "sparse matrix does not consist of arrays"),
        ("odd_", {"$random": [{"$array": 0}, 10**6, 0, 0.0]}, "no valid position"),
        ("odd_", {"$dict": [[[], 1]]}, "unhashable"),
        ("odd_", {"$array": "x"}, "invalid literal"),
        ("odd_", {"$shared": 999}, "array 999 occurs later, or too often"),
        ("odd_", [{"$shared": 0}] * 9, "array 0 occurs later, or too often"),
        ("odd_", {"$shared": [0]}, "unhashable"),
    ],
)
def test_values_that_cannot_be_are_refused(scaled, name, value, match):
    rewritten(scaled, lambda tree: fields(tree).update({name: value}))
    with pytest.raises(DataError, match=rf"scaled\.kwm: the saved model is damaged.*{match}"):
        load_model(scaled)


def npy(array):
    """Return an array as the content of a member."""
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def node(tree, path):
    """Return the part of a description that a path of fields leads to; items of tuples have numbers."""
    here = fields(tree)
    for key in path.split("."):
        here = here["$tuple"][int(key)] if key.isdigit() else (here["$object"][1] if "$object" in here else here)[key]
    return here


def changed(value, path, new):
    """Return an object, or a tuple of objects, with another value where a path of fields leads to."""
    key, _, rest = path.partition(".")
    if isinstance(value, tuple):
        items = list(value)
        items[int(key)] = changed(items[int(key)], rest, new) if rest else new
        return tuple(items)
    return replace(value, **{key: changed(getattr(value, key), rest, new) if rest else new})


def put_into(model, path, new):
    """Put another value into an estimator, or into an object it holds."""
    key, _, rest = path.partition(".")
    setattr(model, key, changed(getattr(model, key), rest, new) if rest else new)


TWO_VIEWS = {"views": {"a": [0, 1], "b": [2, 3]}}
HUGE = 10**5


@pytest.mark.parametrize(
    ("model", "name", "value"),
    [
        (KernelKMeans(2), "labels_", np.full(30, 10**6)),
        (KernelKMeans(2), "labels_", np.full(30, -1)),
        (KernelKMeans(2), "labels_", np.zeros((30, 1), dtype=int)),
        (KernelKMeans(2), "labels_", np.zeros(HUGE, dtype=int)),
        (KernelKMeans(2), "labels_", np.zeros(0, dtype=int)),
        (KernelKMeans(2), "_model.labels", np.full(30, 10**6)),
        (KernelKMeans(2), "_model.labels", np.full(30, -1)),
        (KernelKMeans(2), "_model.labels", np.zeros((30, 1), dtype=int)),
        (KernelKMeans(2), "_model.labels", np.zeros(HUGE, dtype=int)),
        (KernelKMeans(2), "_model.labels", np.zeros(30)),
        (KernelKMeans(2), "_model.totals", np.ones(1)),
        (KernelKMeans(2), "_model.norms", np.ones(HUGE)),
        (KernelKMeans(2), "_model.weights", np.ones(1)),
        (KernelKMeans(2), "_model.weights", np.ones(30, dtype=int)),
        (GlobalKernelKMeans(2), "_model.totals", np.ones(1)),
        (MinMaxKMeans(2), "cluster_centers_", np.ones((HUGE, 4))),
        (MinMaxKMeans(2), "cluster_centers_", np.ones((2, 3))),
        (MinMaxKMeans(2), "_model.centers", np.ones((HUGE, 4))),
        (MinMaxKMeans(2), "_model.centers", np.ones((2, 3))),
        (MinMaxKMeans(2), "_model.factors", np.ones(1)),
        (MinMaxKMeans(2), "_model.filled", np.ones(HUGE, dtype=bool)),
        (MinMaxKMeans(2), "_model.offset", np.ones(1)),
        (MinMaxKernelKMeans(2), "_model.factors", np.ones(1)),
        (PifsKMeans(2), "_model.factors", np.ones(1)),
        (NgSpectralClustering(2), "_model.centers", np.ones((1, 2))),
        (NgSpectralClustering(2), "_model.norms", np.ones(HUGE)),
        (NgSpectralClustering(2), "_model.extension.sources", np.ones((30, 3))),
        (NgSpectralClustering(2), "_model.extension.kernel.coefficients", np.ones((1, 1))),
        (NgSpectralClustering(2), "_model.extension.kernel.kernels.kernels.0.column_scale", np.ones(29)),
        (MultiViewKernelKMeans(2, **TWO_VIEWS), "_model.kernel.coefficients", np.ones(3)),
        (MultiViewSpectralClustering(2, **TWO_VIEWS), "_model.centers", np.ones((HUGE, 2))),
        (CorrelationalSpectralClustering(2, **TWO_VIEWS), "_model.norms", np.ones(HUGE)),
        (CorrelationalSpectralClustering(2, **TWO_VIEWS), "_model.extension.projections.0.shares", np.ones(29)),
        (KernelSpectralClustering(2), "_model.codebook.patterns", np.ones((2, 3))),
        (KernelSpectralClustering(2), "_model.codebook.floor", np.ones(3)),
        (KernelSpectralClustering(2), "_model.views.0.alphas", np.ones((30, 2))),
        (MultiViewKernelSpectralClustering(2, **TWO_VIEWS), "_model.views.1.alphas", np.ones((29, 1))),
        (MultiViewKernelSpectralClustering(2, **TWO_VIEWS), "_model.shares", np.ones(1)),
        (ConvexMixture(2, refine="kernel_kmeans"), "labels_", np.full(30, 10**6)),
        (ConvexMixture(2, refine="kernel_kmeans"), "_centers.labels", np.full(30, 10**6)),
        (ConvexMixture(2, refine="kernel_kmeans"), "_centers.norms", np.ones(HUGE)),
        (ConvexMixture(2), "_model.columns", np.zeros(3, dtype=int)),
        (MultiViewConvexMixture(2, **TWO_VIEWS), "_model.betas", np.ones(3)),
        (IterativeSVR(2), "_model.splits.0.sources", np.ones(29)),
        (AffinityPropagation(2), "_model.norms", np.ones(3)),
        (KMedoids(2), "_model.centers", np.ones((2, 3))),
        (MultiViewKMeans(2, **TWO_VIEWS), "_model.means.1", np.ones((3, 2))),
        (MultiViewEM(2, **TWO_VIEWS), "_model.densities.1.centres", np.ones((3, 2))),
    ],
)
def test_arrays_whose_sizes_do_not_agree_are_refused(tmp_path, model, name, value):
    """Compiled loops would read and write beyond the end of such arrays."""
    model = unshared(clone(model).fit(X))
    path = save_model(model, tmp_path / "model.kwm")
    members = unpacked(path)
    number = node(json.loads(members["model.json"]), name)["$array"]
    assert "has '" in refusal(packed(path, members | {f"arrays/{number}.npy": npy(value)}))
    put_into(model, name, value)
    with pytest.raises(ParameterError, match=r"cannot be saved: .* has '"):
        save_model(model, path)


def test_models_without_clusters_are_refused(tmp_path):
    """Loops begin with the first cluster."""
    path = save_model(NgSpectralClustering(2, random_state=0).fit(X), tmp_path / "model.kwm")
    members = unpacked(path)
    tree = json.loads(members["model.json"])
    empty = {"labels_": np.zeros(0, dtype=int), "_model.centers": np.ones((0, 2)), "_model.norms": np.ones(0)}
    for name, value in empty.items():
        members[f"arrays/{node(tree, name)['$array']}.npy"] = npy(value)
        assert "of a wrong size" in refusal(packed(path, members))


@pytest.mark.parametrize("kernel", ["linear", "rbf", "precomputed"])
def test_kernels_of_other_samples_are_refused(tmp_path, kernel):
    samples = X @ X.T if kernel == "precomputed" else X
    model = KernelKMeans(2, kernel=kernel, random_state=0).fit(samples)
    model.labels_ = np.tile(model.labels_, 2)
    model._model = replace(model._model, labels=model.labels_, weights=np.tile(model._model.weights, 2))
    with pytest.raises(ParameterError, match="has a kernel of other samples"):
        save_model(model, tmp_path / "model.kwm")


@pytest.mark.parametrize("cls", [ConvexMixture, MultiViewConvexMixture])
def test_kernels_of_refined_mixtures_must_be_of_the_same_samples(tmp_path, cls):
    model = cls(2, refine="kernel_kmeans").fit(X)
    model.labels_ = np.tile(model.labels_, 2)
    model._centers = replace(model._centers, labels=model.labels_, weights=np.tile(model._centers.weights, 2))
    with pytest.raises(ParameterError, match="has a kernel of other samples"):
        save_model(model, tmp_path / "model.kwm")


def test_kernels_of_several_views_must_be_of_the_same_samples_and_views(tmp_path):
    model = MultiViewKernelKMeans(2, random_state=0, **TWO_VIEWS).fit(X)
    kernels = model._model.kernel.kernels.kernels
    other = MultiViewKernelKMeans(2, random_state=0, **TWO_VIEWS).fit(X[:20])._model.kernel.kernels.kernels
    put_into(model, "_model.kernel.kernels.kernels", (kernels[0], other[1]))
    with pytest.raises(ParameterError, match="has a kernel of other samples"):
        save_model(model, tmp_path / "model.kwm")
    put_into(model, "_model.kernel.kernels.kernels", kernels[:1])
    with pytest.raises(ParameterError, match="has kernels of another number of views"):
        save_model(model, tmp_path / "model.kwm")


def test_models_without_a_kernel_and_estimators_without_a_model_are_refused(saved):
    content = saved.read_bytes()
    rewritten(saved, lambda tree: node(tree, "_model")["$object"][1].pop("kernel"))
    assert "CenterModel has no 'kernel'" in refusal(saved)
    saved.write_bytes(content)
    rewritten(saved, lambda tree: fields(tree).pop("_model"))
    assert "KernelKMeans has no '_model'" in refusal(saved)


def test_fields_that_a_class_does_not_have_are_refused(saved):
    rewritten(saved, lambda tree: node(tree, "_model.kernel")["$object"][1].update(more=5))
    assert "FormulaKernel has 'more', which is not a field" in refusal(saved)


def test_centres_that_are_lists_are_refused(tmp_path):
    path = save_model(unshared(MinMaxKMeans(2, random_state=0).fit(X)), tmp_path / "model.kwm")
    content = path.read_bytes()
    rewritten(path, lambda tree: node(tree, "_model")["$object"][1].update(centers=[[1.0] * 4] * 9))
    assert "MeanModel has 'centers' of a wrong kind" in refusal(path)
    path.write_bytes(content)
    rewritten(path, lambda tree: fields(tree).update(cluster_centers_=[[1.0] * 4] * 9))
    assert "'cluster_centers_' of a wrong shape" in refusal(path)


def test_arrays_that_estimator_and_model_share_are_written_once(tmp_path):
    model = KernelKMeans(2, random_state=0).fit(X)
    again = load_model(save_model(model, tmp_path / "model.kwm"))
    assert again._model.labels is again.labels_
    model.copies_ = [model.labels_] * 5
    again = load_model(save_model(model, tmp_path / "model.kwm"))
    assert [copy.tolist() for copy in again.copies_] == [model.labels_.tolist()] * 5
    assert len({id(again.labels_), *map(id, again.copies_)}) == 3  # no more than three are one


@pytest.mark.parametrize("value", [5, [], [5, 5], None])
def test_scalers_with_other_means_are_refused(scaled, value):
    rewritten(scaled, lambda tree: tree["model"]["$pipeline"][0][1]["$object"][1].update(means_=value))
    assert "ViewScaler has " in refusal(scaled)


@pytest.mark.parametrize("model", [5, None, [], {"$pipeline": []}, {"$pipeline": [["a", 5]]}, {"$float": "inf"}])
def test_models_that_are_no_estimators_are_refused(saved, model):
    rewritten(saved, lambda tree: tree.update(model=model))
    assert "damaged" in refusal(saved)


def test_pipelines_need_names_of_their_own(scaled):
    rewritten(scaled, lambda tree: [step.__setitem__(0, "same") for step in tree["model"]["$pipeline"]])
    assert "do not have unique names" in refusal(scaled)


def test_what_would_be_refused_is_not_saved(tmp_path):
    model = KernelKMeans(2, random_state=0).fit(X)
    with pytest.raises(ParameterError, match=r"KernelKMeans cannot be saved: .*invalid parameter: .*'n_clusters'"):
        save_model(model.set_params(n_clusters=-1), tmp_path / "model.kwm")
    model.set_params(n_clusters=2).when_ = np.array(["2020-01-01"], dtype="datetime64[D]")
    with pytest.raises(ParameterError, match=r"KernelKMeans\.when_ holds an array of datetime64"):
        save_model(model, tmp_path / "model.kwm")
    assert list(tmp_path.iterdir()) == []


# Sizes


def bomb(path, name, size):
    """Put many zeros into a member of the file."""
    members = unpacked(path)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for other, content in members.items():
            if other != name:
                archive.writestr(other, content)
        with archive.open(name, "w") as member:
            for _ in range(size // MIB):
                member.write(bytes(MIB))


def test_archives_that_unpack_to_far_more_than_their_size_are_refused(saved):
    content = saved.read_bytes()
    for name in ("arrays/0.npy", "model.json"):
        saved.write_bytes(content)
        bomb(saved, name, 80 * MIB)
        assert saved.stat().st_size < MIB
        assert "would unpack to 80.0 MiB, more than the " in refusal(saved)


def test_a_member_that_holds_more_than_it_says_is_not_unpacked(saved, monkeypatch):
    bomb(saved, "arrays/0.npy", 80 * MIB)
    content = bytearray(saved.read_bytes())
    with zipfile.ZipFile(saved) as archive:
        crc = archive.getinfo("arrays/0.npy").CRC
    entry = content.index(struct.pack("<I", crc), content.index(b"PK\x01\x02"))
    content[entry + 8 : entry + 12] = struct.pack("<I", 100)
    saved.write_bytes(content)
    asked = []
    read = zipfile.ZipExtFile.read
    monkeypatch.setattr(zipfile.ZipExtFile, "read", lambda self, n=-1: asked.append(n) or read(self, n))
    assert "Bad CRC-32" in refusal(saved)
    assert all(0 <= n <= MIB for n in asked)


def test_long_descriptions_are_neither_saved_nor_read(saved, monkeypatch):
    monkeypatch.setattr(models, "LARGEST_DESCRIPTION", 500)
    assert "more than the 0.0 MiB of the largest description" in refusal(saved)
    with pytest.raises(ParameterError, match="Keep fewer notes"):
        save_model(KernelKMeans(2, random_state=0).fit(X), saved, notes={"ids": ["id"] * 100})


def test_models_of_constants_are_saved_so_that_they_load(saved):
    model = load_model(saved)
    model.zeros_ = np.zeros((50_000, 50))  # 19 MiB, which would be 20 KiB compressed
    again = load_model(save_model(model, saved))
    assert saved.stat().st_size > 19 * MIB
    assert again.zeros_.shape == (50_000, 50)
    model.zeros_ = np.zeros((50_000, 10))
    assert load_model(save_model(model, saved)).zeros_.shape == (50_000, 10)
    assert saved.stat().st_size < MIB


@pytest.mark.parametrize(
    ("header", "match"),
    [
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (10000000000000,), }", "the size that its header states"),
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (-1, -1), }", "the size that its header states"),
        ("{'descr': '<U0', 'fortran_order': False, 'shape': (10000000000000,), }", "is an array of <U0"),
        ("{'descr': '|V8', 'fortran_order': False, 'shape': (1,), }", "is an array of |V8"),
        ("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", "is an array of object"),
        ("(" * 5000, "damaged"),
        ("-" * 9000 + "1", "damaged"),
        ("{}", "damaged"),
    ],
)
def test_arrays_are_compared_with_their_header_before_they_are_made(saved, header, match):
    text = header.encode()
    content = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + bytes(8)
    assert match in refusal(packed(saved, unpacked(saved) | {"arrays/0.npy": content}))


def test_arrays_of_every_form_come_back_as_they_were(tmp_path):
    model = KernelKMeans(2, kernel=RBF(2.0), random_state=0).fit(X)
    arrays = [np.array(2.5), np.empty((0, 3)), np.asfortranarray(X), X[::2, ::-1], np.array(["a", "bc"]), X > 1, 1j * X]
    model.arrays_, model.sparse_ = arrays, sp.csr_array(X)
    again = load_model(save_model(model, tmp_path / "model.kwm"))
    for loaded, array in zip(again.arrays_, arrays, strict=True):
        assert (loaded.dtype, loaded.shape) == (array.dtype, array.shape)
        np.testing.assert_array_equal(loaded, array)
        assert loaded.flags.writeable
        assert loaded.flags.aligned
    assert (again.sparse_ != model.sparse_).nnz == 0


# Saving


def test_a_folder_that_is_missing_is_named(tmp_path):
    model = KernelKMeans(2, random_state=0).fit(X)
    with pytest.raises(ParameterError, match=r"missing', but there is no such folder\. Create it first"):
        save_model(model, tmp_path / "missing" / "x.kwm")
    with pytest.raises(ParameterError, match=r"is a folder\. Name a file in it"):
        save_model(model, tmp_path)
    assert list(tmp_path.iterdir()) == []


# Chance


def places(tree, at=()):
    """Yield the place of every value in a description."""
    if isinstance(tree, dict | list):
        for key, part in tree.items() if isinstance(tree, dict) else enumerate(tree):
            yield from places(part, (*at, key))
    if at:
        yield at


def put(tree, at, value):
    for key in at[:-1]:
        tree = tree[key]
    tree[at[-1]] = value


VALUES = [None, True, -1, 0, 10**30, 1.5, "x", "", [], {}, [[1]], {"$array": 0}, {"$float": "nan"}, {"$tuple": []}]


def mutated(content, path, rng):
    """Write the file with one change made by chance."""
    kind = rng.choice(["flip", "cut", "swap", "value", "value", "value"])
    path.write_bytes(content)
    if kind == "flip":
        changed = bytearray(content)
        for _ in range(rng.choice([1, 1, 5])):
            changed[rng.randrange(len(content))] = rng.randrange(256)
        path.write_bytes(changed)
    elif kind == "cut":
        start = rng.randrange(len(content))
        path.write_bytes(content[:start] + content[start + rng.randrange(1, 500) :])
    elif kind == "swap":
        members = unpacked(path)
        first, second = rng.choices(list(members), k=2)
        packed(path, members | {first: members[second], second: members[first]})
    else:
        members = unpacked(path)
        tree = json.loads(members["model.json"])
        put(tree, rng.choice(list(places(tree))), rng.choice(VALUES))
        packed(path, members | {"model.json": json.dumps(tree).encode()})


def fuzz(files, folder, rounds, seed):
    """Load files changed by chance; return how many were refused."""
    rng, path, refused = random.Random(seed), folder / "fuzz.kwm", 0
    for _ in range(rounds):
        mutated(Path(rng.choice(files)).read_bytes(), path, rng)
        try:
            load_model(path)
        except DataError as error:
            assert str(error).startswith(f"{path}: ")  # noqa: PT017 - either outcome is right
            refused += 1
    return refused


@pytest.mark.filterwarnings("ignore")
def test_changes_by_chance_are_refused_or_load(tmp_path, saved, scaled):
    files = [saved, scaled, *sorted(FOLDER.glob("*.kwm"))]
    assert fuzz(files, tmp_path, rounds=400, seed=0) > 200
