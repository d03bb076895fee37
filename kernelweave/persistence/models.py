"""Fitted models in a file: a zip of a JSON description and plain arrays. Loading runs no code that the file brings.

model.json  format, versions, and the tree of the model: numbers, text, lists, dicts, and objects as class and fields
arrays/     every array as .npy, without pickles
SHA256SUMS  the checksum of every other member, as sha256sum writes it

Classes are looked up by name in a fixed list (``names``); a name that is not in it is refused. Fields of older files
are brought up to date (``upgrades``). Objects are made without their constructor, and their fields checked
(``fields``).
"""

import io
import json
import math
import os
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from kernelweave.foundation.errors import DataError, ParameterError
from kernelweave.foundation.files import replacement
from kernelweave.foundation.logged_warnings import warn
from kernelweave.foundation.versions import installed_version
from kernelweave.persistence.fields import KINDS, one_line
from kernelweave.persistence.names import ESTIMATORS, VERSION, name_of
from kernelweave.persistence.trees import Reader, Writer

#: Name of the format.
FORMAT = "kernelweave model"
# Names of members.
DESCRIPTION = "model.json"
SUMS = "SHA256SUMS"
# A file may unpack to this many bytes, or to this many times its size where that is more. DEFLATE reaches 1030 times;
# models that would grow further are saved without compression.
ALWAYS_ALLOWED = 16 * 2**20
LARGEST_GROWTH = 200
# The description is read into many small objects, so it has a limit of its own.
LARGEST_DESCRIPTION = 64 * 2**20
# Bytes unpacked at a time.
CHUNK = 2**20


def save_model(model: Any, path: str | os.PathLike[str], *, notes: Mapping[str, Any] | None = None) -> Path:
    """Write a fitted estimator to a file.

    Parameters
    ----------
    model : estimator
        A fitted estimator of this library, or a pipeline that ends in one; steps before it may be
        :class:`~kernelweave.preprocessing.ViewScaler` and scikit-learn's scalers.
    path : str or path
        File to write, usually ``.kwm``; an existing one is replaced once the new one is complete.
    notes : dict, default=None
        Anything that can be stored as JSON, kept with the model; :func:`read_notes` returns it.

    Returns
    -------
    path : Path
        The file.

    Notes
    -----
    The file is a zip archive of ``model.json`` and plain arrays. It holds what ``predict`` needs, which for kernel
    methods includes the training samples. Kernels that are Python functions cannot be saved: reading them back would
    mean running code from a file.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from kernelweave import KernelKMeans, load_model, save_model
    >>> from kernelweave.datasets import make_two_rings
    >>> X, y = make_two_rings(random_state=0)
    >>> model = KernelKMeans(2, kernel_params={"sigma": 0.5}, random_state=0).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = save_model(model, Path(folder) / "rings.kwm")
    ...     again = load_model(path)
    >>> bool((again.predict(X) == model.labels_).all())
    True
    """
    last = model[-1] if isinstance(model, Pipeline) else model
    if type(last) not in ESTIMATORS:
        raise ParameterError(
            f"model={type(last).__name__}(...) is not an estimator of kernelweave and cannot be saved in its format."
        )
    check_is_fitted(last)
    path = Path(path)
    _check_folder(path)
    _check_notes(notes)
    arrays: list[np.ndarray] = []
    tree = {
        "format": FORMAT,
        "version": VERSION,
        "kernelweave": installed_version("kernelweave"),
        "scikit-learn": installed_version("scikit-learn"),
        "estimator": type(last).__name__,
        "notes": dict(notes or {}),
        "model": Writer(arrays).encoded(model, type(model).__name__),
    }
    text = json.dumps(tree, allow_nan=False).encode()
    if len(text) > LARGEST_DESCRIPTION:
        raise ParameterError(
            f"The parameters and notes of the model take {_mib(len(text))} as text; {_mib(LARGEST_DESCRIPTION)} can be "
            "saved. Keep fewer notes, and give long lists as arrays."
        )
    with replacement(path) as partial:
        _write(partial, text, arrays)
    return path


def _check_folder(path: Path) -> None:
    if path.is_dir():
        raise ParameterError(f"path={str(path)!r} is a folder. Name a file in it, such as {str(path / 'model.kwm')!r}.")
    if not path.parent.is_dir():
        raise ParameterError(
            f"path={str(path)!r} lies in {str(path.parent)!r}, but there is no such folder. Create it first, or name "
            "another one."
        )


def _check_notes(notes: Mapping[str, Any] | None) -> None:
    try:
        json.dumps(notes or {}, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ParameterError(
            f"notes must be valid JSON: text, finite numbers, lists and dicts ({one_line(error)})."
        ) from error


def _write(path: Path, text: bytes, arrays: list[np.ndarray]) -> None:
    """Write the archive, compressed unless it would then unpack to more than may be read again."""
    unpacked = _archive(path, text, arrays, zipfile.ZIP_DEFLATED)
    if unpacked > _allowed(path):
        _archive(path, text, arrays, zipfile.ZIP_STORED)


def _archive(path: Path, text: bytes, arrays: list[np.ndarray], method: int) -> int:
    """Write all members and their checksums; return the number of bytes they unpack to."""
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr(DESCRIPTION, text)
        sums = {DESCRIPTION: sha256(text).hexdigest()}
        for i, array in enumerate(arrays):
            name = f"arrays/{i}.npy"
            with archive.open(name, "w", force_zip64=True) as member:
                summed = _Summed(member)
                np.lib.format.write_array(summed, array, allow_pickle=False)
            sums[name] = summed.sum.hexdigest()
        archive.writestr(SUMS, "".join(f"{digest}  {name}\n" for name, digest in sums.items()))
        return sum(entry.file_size for entry in archive.infolist())


class _Summed:
    """A member being written, with the checksum of what was."""

    def __init__(self, member: Any) -> None:
        self.member = member
        self.sum = sha256()

    def write(self, data: bytes) -> int:
        """Write to both."""
        self.sum.update(data)
        return int(self.member.write(data))


def _allowed(path: Path) -> int:
    """Return the number of bytes a file may unpack to."""
    return max(ALWAYS_ALLOWED, LARGEST_GROWTH * path.stat().st_size)


def _mib(size: int) -> str:
    return f"{size / 2**20:,.1f} MiB"


def load_model(path: str | os.PathLike[str]) -> Any:
    """Read a fitted estimator from a file written by :func:`save_model`.

    Parameters
    ----------
    path : str or path
        The file. Nothing in it is executed; classes it may name come from a fixed list.

    Returns
    -------
    model : estimator
        The fitted estimator.

    Raises
    ------
    DataError
        Where the file is missing, is not a saved model, or was changed or damaged after it was saved.
    """
    return load_with_notes(path)[0]


def read_notes(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the notes that :func:`save_model` stored with the model; a file that is not a model has no notes."""
    return load_with_notes(path)[1]


def load_with_notes(path: str | os.PathLike[str]) -> tuple[Any, dict[str, Any]]:
    """Return the estimator of a file and the notes beside it, read once."""
    path = Path(path)
    if not path.is_file():
        raise DataError(f"{path}: there is no such file.")
    with _explained(path), zipfile.ZipFile(path) as archive:
        members = _Members(path, archive)
        tree = _described(path, members)
        notes = tree.get("notes", {})
        if not isinstance(notes, dict):
            raise DataError(f"{path}: the saved model is damaged: its notes are not a dict.")
        model = Reader(path, members, tree["version"]).model(tree["model"])
    _warn_of_other_version(path, tree, model)
    return model, notes


def _warn_of_other_version(path: Path, tree: dict[str, Any], model: Any) -> None:
    """Warn where transformers of scikit-learn, whose attributes are its own affair, were saved by another version."""
    steps = model.steps if isinstance(model, Pipeline) else []
    foreign = [step for _, step in steps if (name_of(type(step)) or "").startswith("transformer/")]
    written = str(tree.get("scikit-learn", "an older version"))
    current = installed_version("scikit-learn")
    if foreign and written.split(".")[:2] != current.split(".")[:2]:
        warn(
            f"{path}: {type(foreign[0]).__name__} was saved with scikit-learn {written}, and this is {current}: the "
            "model may answer differently or fail. Fit and save it again with this version.",
            UserWarning,
        )


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Turn whatever goes wrong with a file into one sentence that names it."""
    try:
        yield
    except (DataError, MemoryError):
        raise
    except zipfile.BadZipFile as error:
        raise DataError(f"{path}: this is not a saved model, or it is cut short or damaged ({error}).") from error
    except RecursionError:
        raise DataError(f"{path}: the saved model is damaged: its description is nested too deeply.") from None
    except OSError as error:
        raise DataError(f"{path}: the file cannot be read ({error.strerror or error}).") from error
    except Exception as error:  # a damaged file may bring about any
        raise DataError(f"{path}: the saved model is damaged ({one_line(error)}).") from error


def _described(path: Path, members: "_Members") -> dict[str, Any]:
    tree = json.loads(bytes(members.read(DESCRIPTION)))
    if not isinstance(tree, dict) or tree.get("format") != FORMAT:
        raise DataError(f"{path}: model.json does not describe a saved model of kernelweave.")
    number = tree.get("version")
    if not isinstance(number, int) or number < 1:
        raise DataError(f"{path}: the saved model has no valid version number ({number!r}).")
    if number > VERSION:
        raise DataError(
            f"{path}: the model was saved in version {number} of the format by kernelweave {tree.get('kernelweave')}; "
            f"this kernelweave reads versions up to {VERSION}. Install a newer one."
        )
    return tree


class _Members:
    """The members of a file: each is read once, within its size, and compared with its checksum."""

    def __init__(self, path: Path, archive: zipfile.ZipFile) -> None:
        self.path = path
        self.archive = archive
        self.left = {entry.filename: entry for entry in archive.infolist()}
        if DESCRIPTION not in self.left:
            raise DataError(f"{path}: this zip archive holds no model.json, so it is not a saved model.")
        if len(self.left) < len(archive.infolist()):
            raise DataError(f"{path}: the saved model is damaged: a part of it occurs twice.")
        for entry in self.left.values():
            if entry.flag_bits & 1:
                raise DataError(f"{path}: the archive is encrypted, which saved models are not; decrypt it first.")
            if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise DataError(f"{path}: the archive is not compressed like a saved model; it is refused.")
        size = sum(entry.file_size for entry in self.left.values())
        allowed = _allowed(path)
        if size > allowed:
            raise DataError(
                f"{path}: the archive of {_mib(path.stat().st_size)} would unpack to {_mib(size)}, more than the "
                f"{_mib(allowed)} allowed for a saved model of its size; it is refused."
            )
        if self.left[DESCRIPTION].file_size > LARGEST_DESCRIPTION:
            raise DataError(
                f"{path}: model.json would take {_mib(self.left[DESCRIPTION].file_size)}, more than the "
                f"{_mib(LARGEST_DESCRIPTION)} of the largest description; it is refused."
            )
        self.sums: dict[str, str] | None = None  # files of early versions have none
        if SUMS in self.left:
            lines = self.read(SUMS).decode().splitlines()
            self.sums = {name: digest for digest, name in (line.split("  ", 1) for line in lines)}
            if self.sums.keys() != self.left.keys():
                raise self._changed("parts were added or removed")

    def read(self, name: str) -> bytearray:
        """Return the content of a member."""
        entry = self.left.pop(name, None)
        if entry is None:
            raise DataError(f"{self.path}: the saved model is damaged: {name} is missing or used twice.")
        content = bytearray(entry.file_size)
        start = 0
        with self.archive.open(entry) as member:
            while start < len(content):  # a chunk at a time, as a member may hold more than it says
                chunk = member.read(min(CHUNK, len(content) - start))
                if not chunk:
                    raise DataError(f"{self.path}: the saved model is damaged: {name} is cut short.")
                content[start : start + len(chunk)] = chunk
                start += len(chunk)
        if self.sums is not None and sha256(content).hexdigest() != self.sums[name]:
            raise self._changed(f"{name} does not match its checksum")
        return content

    def array(self, name: str) -> np.ndarray:
        """Return a member that is an array; what its header says is compared with its size before it is made."""
        content = self.read(name)
        stream = io.BytesIO(content[: 2**16])
        if np.lib.format.read_magic(stream) != (1, 0):
            raise DataError(f"{self.path}: the saved model is damaged: {name} is an array of another format.")
        try:
            shape, fortran, dtype = np.lib.format.read_array_header_1_0(stream)
        except (MemoryError, RecursionError) as error:  # brackets in brackets
            raise DataError(f"{self.path}: the saved model is damaged: {name} has no valid header.") from error
        if dtype.kind not in KINDS or dtype.itemsize == 0:
            raise DataError(f"{self.path}: the saved model is damaged: {name} is an array of {dtype}.")
        size = math.prod(shape) * dtype.itemsize
        if min(shape, default=0) < 0 or size != len(content) - stream.tell():
            raise DataError(
                f"{self.path}: the saved model is damaged: {name} does not have the size that its header states."
            )
        return np.ndarray(shape, dtype, content, stream.tell(), order="F" if fortran else "C")

    def _changed(self, how: str) -> DataError:
        return DataError(f"{self.path}: the file was changed or damaged after it was saved ({how}).")
