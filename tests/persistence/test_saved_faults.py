"""Model files that were damaged, edited or made to harm: one sentence that names the file, before anything is used."""

import io
import json
import random
import struct
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF
from sklearn.pipeline import make_pipeline

from kernelweave import (
    ConvexMixture,
    DataError,
    KernelKMeans,
    MinMaxKMeans,
    MultiViewConvexMixture,
    MultiViewKernelKMeans,
    NgSpectralClustering,
    ParameterError,
    load_model,
    save_model,
)
from kernelweave.persistence import models
from kernelweave.preprocessing import ViewScaler
from tests.persistence.stored_models import FOLDER, X
from tests.persistence.test_saved_models import packed, rewritten, unpacked

MIB = 2**20


@pytest.fixture
def saved(tmp_path):
    return save_model(KernelKMeans(2, random_state=0).fit(X), tmp_path / "model.kwm")


@pytest.fixture
def scaled(tmp_path):
    model = make_pipeline(ViewScaler(), MultiViewKernelKMeans(2, random_state=0))
    return save_model(model.fit({"front": X[:, :2], "back": X[:, 2:]}), tmp_path / "scaled.kwm")


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
        assert "compressed in another way" in refusal(saved)


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
        ("predict", 5, "'predict', which is no field"),
        ("_kernels", [{"$object": ["kernel/ViewKernel", {}]}], "has no 'kernel'"),
        ("odd_", {"$object": ["kernel/GraphFit", {"graph": "x"}]}, "'graph' of a wrong kind"),
        (
            "odd_",
            {"$object": ["formula/Laplacian", {"gamma": True}]},
            "'gamma' of a wrong kind",
        ),
        ("odd_", {"$object": ["gaussian_process/RBF", {}]}, "has no 'length_scale'"),
        ("odd_", {"$scalar": ["V1", 10**12]}, "is no number"),
        ("odd_", {"$scalar": ["<f8", "x"]}, "is no number"),
        ("odd_", {"$bool": [1]}, "is no truth value"),
        ("odd_", {"$texts": [1]}, "texts are something else"),
        ("odd_", {"$sparse": [[1], [0], [0, 1], [1, 1]]}, "sparse matrix does not consist of arrays"),
        ("odd_", {"$random": [{"$array": 0}, 10**6, 0, 0.0]}, "no valid position"),
        ("odd_", {"$dict": [[[], 1]]}, "unhashable"),
        ("odd_", {"$array": "x"}, "invalid literal"),
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


@pytest.mark.parametrize(
    ("model", "name", "value"),
    [
        (KernelKMeans(2), "labels_", np.full(30, 10**6)),
        (KernelKMeans(2), "labels_", np.full(30, -1)),
        (KernelKMeans(2), "labels_", np.zeros((30, 1), dtype=int)),
        (KernelKMeans(2), "labels_", np.zeros(10**5, dtype=int)),
        (KernelKMeans(2), "_totals", np.ones(1)),
        (KernelKMeans(2), "_norms", np.ones(10**5)),
        (KernelKMeans(2), "_weights", np.ones(1)),
        (KernelKMeans(2), "_weights", np.ones(30, dtype=int)),
        (MinMaxKMeans(2), "cluster_centers_", np.ones((10**5, 4))),
        (MinMaxKMeans(2), "cluster_centers_", np.ones((2, 3))),
        (MinMaxKMeans(2), "_coefs", np.ones(1)),
        (NgSpectralClustering(2), "_centers", np.ones((1, 2))),
        (ConvexMixture(2, refine="kernel_kmeans"), "labels_", np.full(30, 10**6)),
        (ConvexMixture(2, refine="kernel_kmeans"), "_refined_norms", np.ones(10**5)),
    ],
)
def test_arrays_whose_sizes_do_not_agree_are_refused(tmp_path, model, name, value):
    """Compiled loops would read and write beyond the end of such arrays."""
    model = clone(model).fit(X)
    path = save_model(model, tmp_path / "model.kwm")
    members = unpacked(path)
    number = fields(json.loads(members["model.json"]))[name]["$array"]
    assert "has '" in refusal(packed(path, members | {f"arrays/{number}.npy": npy(value)}))
    setattr(model, name, value)
    with pytest.raises(ParameterError, match=r"cannot be saved: .* has '"):
        save_model(model, path)


@pytest.mark.parametrize("kernel", ["linear", "rbf", "precomputed"])
def test_kernels_of_other_samples_are_refused(tmp_path, kernel):
    samples = X @ X.T if kernel == "precomputed" else X
    model = KernelKMeans(2, kernel=kernel, random_state=0).fit(samples)
    model.labels_, model._weights = np.tile(model.labels_, 2), np.tile(model._weights, 2)
    with pytest.raises(ParameterError, match="has a kernel of other samples"):
        save_model(model, tmp_path / "model.kwm")


@pytest.mark.parametrize("cls", [ConvexMixture, MultiViewConvexMixture])
def test_kernels_of_refined_mixtures_must_be_of_the_same_samples(tmp_path, cls):
    model = cls(2, refine="kernel_kmeans").fit(X)
    model.labels_, model._weights = np.tile(model.labels_, 2), np.tile(model._weights, 2)
    with pytest.raises(ParameterError, match="has a kernel of other samples"):
        save_model(model, tmp_path / "model.kwm")


def test_kernel_models_without_a_kernel_are_refused(saved):
    rewritten(saved, lambda tree: fields(tree).pop("_kernel"))
    assert "KernelKMeans has no kernel" in refusal(saved)


def test_fields_that_a_class_does_not_have_are_refused(saved):
    rewritten(saved, lambda tree: fields(tree)["_kernel"]["$object"][1].update(more=5))
    assert "FormulaKernel has 'more', which is no field" in refusal(saved)


def test_centres_that_are_lists_are_refused(tmp_path):
    path = save_model(MinMaxKMeans(2, random_state=0).fit(X), tmp_path / "model.kwm")
    rewritten(path, lambda tree: fields(tree).update(cluster_centers_=[[1.0] * 4] * 9))
    assert "'cluster_centers_' of a wrong shape" in refusal(path)


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
    assert "no names of their own" in refusal(scaled)


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
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (10000000000000,), }", "another size than its header"),
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (-1, -1), }", "another size than its header"),
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
    with pytest.raises(ParameterError, match=r"missing', and there is no such folder\. Make it first"):
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
