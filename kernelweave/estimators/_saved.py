"""Fitted models in a file: a zip of a JSON description and plain arrays. Loading runs no code that the file brings.

model.json  format, versions, and the tree of the model: numbers, text, lists, dicts, and objects as class and fields
arrays/     every array as .npy, without pickles
SHA256SUMS  the checksum of every other member, as sha256sum writes it

Classes are looked up by name in a list made of our own modules and scikit-learn's kernels; a name that is not in it is
refused. Objects are made without their constructor and given their fields, which must be of the kind they were.
"""

import io
import json
import math
import os
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields as fields_of
from dataclasses import is_dataclass
from functools import cache
from hashlib import sha256
from importlib import import_module
from importlib.metadata import version
from inspect import getmembers, isclass, ismethod, signature
from numbers import Integral, Real
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.gaussian_process.kernels import Kernel
from sklearn.neighbors import NearestNeighbors
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, Normalizer, StandardScaler
from sklearn.utils.validation import check_is_fitted

from kernelweave.foundation._errors import DataError, ParameterError
from kernelweave.foundation._typing import Bools, Floats, Ints
from kernelweave.operators.factory import FittedKernel, Precomputed

#: Name and number of the format; the number grows when older readers would go wrong.
FORMAT, VERSION = "kernelweave model", 1
# Modules whose classes may occur in a model.
HOMES = (
    "kernelweave.operators._neighbors",
    "kernelweave.operators.divergences",
    "kernelweave.operators.factory",
    "kernelweave.operators.formulas",
    "kernelweave.estimators._dividing",
    "kernelweave.estimators._multi_view",
    "kernelweave.estimators._multi_view_kernel_spectral",
    "kernelweave.estimators._ratio_mkc",
    "kernelweave.estimators._scaling",
    "sklearn.gaussian_process.kernels",
)
# Steps of scikit-learn that may stand before an estimator in a pipeline.
STEPS = (MaxAbsScaler, MinMaxScaler, Normalizer, StandardScaler)
# Names of members.
DESCRIPTION, SUMS = "model.json", "SHA256SUMS"
# A file may unpack to this many bytes, or to this many times its size where that is more. DEFLATE reaches 1030 times;
# models that would grow further are saved without compression.
ALWAYS_ALLOWED, LARGEST_GROWTH = 16 * 2**20, 200
# The description is read into many small objects, so it has a limit of its own.
LARGEST_DESCRIPTION = 64 * 2**20
# Lists and objects inside one another.
DEEPEST = 100
# Kinds of arrays: numbers, truth values and text.
KINDS = "biufcSU"
# Numbers in a state of the Mersenne Twister.
RANDOM_WORDS = 624
# Bytes unpacked at a time.
CHUNK = 2**20
# What fitted attributes hold, where many estimators have them.
FITTED: dict[str, Any] = {
    "labels_": Ints,
    "n_features_in_": int,
    "n_iter_": int,
    "converged_": bool,
    "objective_": float,
    "objective_path_": Floats,
    "view_names_": list[str],
    "view_weights_": Floats,
    "_view_widths": tuple,
    "methods_": list[str],
    "means_": list[Floats],
    "scales_": list[Floats],
    "_weights": Floats,
    "_totals": Floats,
    "_norms": Floats,
    "_refined_totals": Floats,
    "_refined_norms": Floats,
    "_coefs": Floats | None,
    "_filled": Bools,
    "_centers": Floats,
}
# Sizes of arrays that must agree, with letters for the numbers of samples, clusters, features and others: compiled
# loops do not look where an array ends.
SIZES = {
    "labels_": "n",
    "_weights": "n",
    "_totals": "k",
    "_norms": "k",
    "_refined_totals": "r",
    "_refined_norms": "r",
    "_coefs": "k",
    "_filled": "k",
    "_centers": "kd",
    "cluster_centers_": "kf",
    "_offset": "f",
}
# Fitted attributes with one entry for every view.
PER_VIEW = ("view_names_", "_view_widths", "methods_", "means_", "scales_")


def save_model(model: Any, path: str | os.PathLike[str], *, notes: Mapping[str, Any] | None = None) -> Path:
    """Write a fitted estimator to a file.

    Parameters
    ----------
    model : estimator
        A fitted estimator of this library, or a pipeline that ends in one; steps before it may be
        :class:`~kernelweave.preprocessing.ViewScaler` and scikit-learn's scalers.
    path : str or path
        File to write, ``.kwm`` by habit; an existing one is replaced once the new one is complete.
    notes : dict, default=None
        Anything JSON can hold, kept beside the model; :func:`read_notes` returns it.

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
    if type(last) not in set(_estimators().values()):
        raise ParameterError(
            f"model={type(last).__name__}(...) is no estimator of kernelweave and cannot be saved in its format."
        )
    check_is_fitted(last)
    path = Path(path)
    if path.is_dir():
        raise ParameterError(f"path={str(path)!r} is a folder. Name a file in it, such as {str(path / 'model.kwm')!r}.")
    if not path.parent.is_dir():
        raise ParameterError(
            f"path={str(path)!r} lies in {str(path.parent)!r}, and there is no such folder. Make it first, or name "
            "another one."
        )
    try:
        json.dumps(notes or {}, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ParameterError(
            f"notes must hold what JSON can: text, finite numbers, lists and dicts ({_told(error)})."
        ) from error
    arrays: list[np.ndarray] = []
    tree = {
        "format": FORMAT,
        "version": VERSION,
        "kernelweave": version("kernelweave"),
        "estimator": type(last).__name__,
        "notes": dict(notes or {}),
        "model": _Writer(arrays).encoded(model, type(model).__name__),
    }
    text = json.dumps(tree, allow_nan=False).encode()
    if len(text) > LARGEST_DESCRIPTION:
        raise ParameterError(
            f"The parameters and notes of the model take {_mib(len(text))} as text; {_mib(LARGEST_DESCRIPTION)} can be "
            "saved. Keep fewer notes, and give long lists as arrays."
        )
    partial = path.with_name(f"{path.name}.partial")
    try:
        unpacked = _write(partial, text, arrays, zipfile.ZIP_DEFLATED)
        if unpacked > _allowed(partial):
            _write(partial, text, arrays, zipfile.ZIP_STORED)
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)
    return path


def _write(path: Path, text: bytes, arrays: list[np.ndarray], method: int) -> int:
    """Write all members and their checksums; return the number of bytes they unpack to."""
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr(DESCRIPTION, text)
        sums = {DESCRIPTION: sha256(text).hexdigest()}
        for i, array in enumerate(arrays):
            name = f"arrays/{i}.npy"
            with archive.open(name, "w", force_zip64=True) as member:
                summed = _Summed(member)
                np.lib.format.write_array(summed, np.asarray(array, order="C"), allow_pickle=False)
            sums[name] = summed.sum.hexdigest()
        archive.writestr(SUMS, "".join(f"{digest}  {name}\n" for name, digest in sums.items()))
        return sum(entry.file_size for entry in archive.infolist())


class _Summed:
    """A member being written, with the checksum of what was."""

    def __init__(self, member: Any) -> None:
        self.member, self.sum = member, sha256()

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
        Where the file is missing, is no saved model, or was changed or damaged after it was saved.
    """
    return load_with_notes(path)[0]


def read_notes(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return what :func:`save_model` was asked to keep beside the model; a file that is no model has no notes."""
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
            raise DataError(f"{path}: the saved model is damaged: its notes are no dict.")
        return _Reader(path, members).model(tree["model"]), notes


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Turn whatever goes wrong with a file into one sentence that names it."""
    try:
        yield
    except (DataError, MemoryError):
        raise
    except zipfile.BadZipFile as error:
        raise DataError(f"{path}: this is no saved model, or it is cut short or damaged ({error}).") from error
    except RecursionError:
        raise DataError(f"{path}: the saved model is damaged: its description is nested too deeply.") from None
    except OSError as error:
        raise DataError(f"{path}: the file cannot be read ({error.strerror or error}).") from error
    except Exception as error:  # a damaged file may bring about any
        raise DataError(f"{path}: the saved model is damaged ({_told(error)}).") from error


def _told(error: Exception) -> str:
    """Return the message of an error in one line of moderate length."""
    text = " ".join(str(error).split()).rstrip(".") or type(error).__name__
    return text if len(text) <= 200 else f"{text[:200]}..."


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
        self.path, self.archive = path, archive
        self.left = {entry.filename: entry for entry in archive.infolist()}
        if DESCRIPTION not in self.left:
            raise DataError(f"{path}: this zip archive holds no model.json, so it is no saved model.")
        if len(self.left) < len(archive.infolist()):
            raise DataError(f"{path}: the saved model is damaged: a part of it occurs twice.")
        for entry in self.left.values():
            if entry.flag_bits & 1:
                raise DataError(f"{path}: the archive is encrypted, as no saved model is; decrypt it first.")
            if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise DataError(f"{path}: the archive is compressed in another way than saved models; it is refused.")
        size, allowed = sum(entry.file_size for entry in self.left.values()), _allowed(path)
        if size > allowed:
            raise DataError(
                f"{path}: the archive of {_mib(path.stat().st_size)} would unpack to {_mib(size)}, more than the "
                f"{_mib(allowed)} a saved model of its size may; it is refused."
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
        content, start = bytearray(entry.file_size), 0
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
            raise DataError(f"{self.path}: the saved model is damaged: {name} has another size than its header says.")
        return np.ndarray(shape, dtype, content, stream.tell(), order="F" if fortran else "C")

    def _changed(self, how: str) -> DataError:
        return DataError(f"{self.path}: the file was changed or damaged after it was saved ({how}).")


# Classes


@cache
def _estimators() -> dict[str, type]:
    """Return our estimators by name."""
    package = import_module("kernelweave.estimators")
    return {name: getattr(package, name) for name in package.__all__}


@cache
def _known() -> dict[str, type]:
    """Return every class that may occur in a model, by module and name."""
    found = {f"kernelweave.estimators.{name}": cls for name, cls in _estimators().items()}
    for home in HOMES:
        for name, cls in getmembers(import_module(home), isclass):
            if cls.__module__ == home:
                found[f"{home}.{name}"] = cls
    return found | {f"sklearn.preprocessing.{cls.__name__}": cls for cls in STEPS}


@cache
def _names() -> dict[type, str]:
    return {cls: name for name, cls in _known().items()}


# Fields


def _fault(found: Any) -> str | None:
    """Say what an object has that it cannot have, or has not and must, if there is anything."""
    cls, has = type(found), vars(found)
    for key in has:
        if callable(getattr(cls, key, None)):
            return f"has {key!r}, which is no field"
    must: list[str] = []
    hints: Mapping[str, Any] = {}
    if isinstance(found, BaseEstimator):
        must, hints = cls._get_param_names(), FITTED
    elif isinstance(found, Kernel):
        must = [name for name in signature(cls).parameters if name not in ("args", "kwargs")]
    elif is_dataclass(cls):
        must, hints = [field.name for field in fields_of(cls)], _hints(cls)
    for key in must:
        if key not in has:
            return f"has no {key!r}"
    for key, hint in hints.items():
        if key in has and not _fits(has[key], hint):
            return f"has {key!r} of a wrong kind"
    return _estimator_fault(found) if isinstance(found, BaseEstimator) else None


def _estimator_fault(found: Any) -> str | None:
    """Say which parameter is invalid or which fitted attributes do not agree in size, if any."""
    has = vars(found)
    try:
        found._validate_params()
    except (TypeError, ValueError) as error:
        return f"has an invalid parameter: {_told(error)}"
    if type(found) in set(_estimators().values()) and "labels_" not in has:
        return "has no 'labels_'"
    if "feature_names_in_" in has and np.shape(has["feature_names_in_"]) != (has.get("n_features_in_"),):
        return "has 'feature_names_in_' and 'n_features_in_' that do not agree"
    if len({len(has[key]) for key in PER_VIEW if key in has}) > 1:
        return "has attributes of different numbers of views"
    return _size_fault(has) or (_kernel_fault(has) if "_totals" in has else None)


def _size_fault(has: Mapping[str, Any]) -> str | None:
    sizes = {"f": has["n_features_in_"]} if "n_features_in_" in has else {}
    for key, letters in SIZES.items():
        value = has.get(key)
        of_views = key == "cluster_centers_" and isinstance(value, list) and "_offset" not in has
        if value is None or of_views:
            continue
        if not isinstance(value, np.ndarray) or value.ndim != len(letters):
            return f"has {key!r} of a wrong shape"
        if any(sizes.setdefault(letter, size) != size for letter, size in zip(letters, value.shape, strict=True)):
            return f"has {key!r} of a wrong size"
    labels = has.get("labels_", np.zeros(0))
    if labels.size and not 0 <= labels.min() <= labels.max() < sizes.get("k", np.inf):
        return "has 'labels_' of clusters that are not there"
    return None


def _kernel_fault(has: Mapping[str, Any]) -> str | None:
    """Say whether a kernel is of other samples than the labels, where sums over clusters are taken of it."""
    kernels = has["_kernels"] if "_kernels" in has else [has["_kernel"]]
    widths = has.get("_view_widths", (has["n_features_in_"],))
    for kernel, width in zip(kernels, widths, strict=True):
        inner = kernel if isinstance(kernel, FittedKernel) else kernel.kernel
        samples = getattr(inner, "features", getattr(inner, "prepared", None))
        rows = width if isinstance(inner, Precomputed) else getattr(samples, "shape", [None])[0]
        if not isinstance(inner, FittedKernel) or rows not in (None, len(has["labels_"])):
            return "has a kernel of other samples"
    return None


@cache
def _hints(cls: type) -> dict[str, Any]:
    found = get_type_hints(cls)
    return {field.name: found[field.name] for field in fields_of(cls)}


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value is of the kind a type hint says; types that say nothing at run time fit everything."""
    origin, parts = get_origin(hint), get_args(hint)
    if hint is Any:
        return True
    if origin in (Union, UnionType):
        return any(_fits(value, part) for part in parts)
    if origin is np.ndarray:
        wanted = get_args(parts[1])[0]
        kinds = KINDS if wanted is Any else {"i": "iu", "u": "iu"}.get(np.dtype(wanted).kind, np.dtype(wanted).kind)
        return isinstance(value, np.ndarray) and value.dtype.kind in kinds
    if origin is list:
        return isinstance(value, list) and all(_fits(part, parts[0]) for part in value)
    kind = {float: Real, int: Integral, bool: bool | np.bool_}.get(hint, origin or hint)
    return isinstance(value, kind) and (hint is bool or not isinstance(value, bool))


# Trees


class _Writer:
    """Turns objects into what JSON holds; arrays go into a list beside it."""

    def __init__(self, arrays: list[np.ndarray]) -> None:
        self.arrays = arrays
        self.depth = 0

    def encoded(self, value: Any, where: str) -> Any:
        """Return the tree of a value; ``where`` is its place, for messages."""
        if self.depth == DEEPEST:
            raise ParameterError(f"{where} is nested more than {DEEPEST} times, which cannot be saved.")
        self.depth += 1
        tree = self._tree(value, where)
        self.depth -= 1
        return tree

    def _tree(self, value: Any, where: str) -> Any:
        if value is None or isinstance(value, bool | str):
            return value
        if isinstance(value, np.bool_):
            return {"$bool": bool(value)}
        if isinstance(value, int | float | np.integer | np.floating):
            return self._number(value)
        if isinstance(value, np.ndarray):
            return self._array(value, where)
        if isinstance(value, list):
            return [self.encoded(part, where) for part in value]
        if isinstance(value, tuple):
            return {"$tuple": [self.encoded(part, where) for part in value]}
        if isinstance(value, slice):
            return {"$slice": [self.encoded(part, where) for part in (value.start, value.stop, value.step)]}
        if isinstance(value, Mapping):
            pairs = [[self.encoded(key, where), self.encoded(part, where)] for key, part in value.items()]
            return {"$dict": pairs}
        return self._object(value, where)

    def _number(self, value: Any) -> Any:
        scalar = isinstance(value, np.generic)
        plain = value.item() if scalar else value
        if isinstance(plain, float) and not math.isfinite(plain):
            plain = {"$float": repr(plain)}
        return {"$scalar": [value.dtype.str, plain]} if scalar else plain

    def _array(self, value: np.ndarray, where: str) -> Any:
        if value.dtype.kind == "O":
            if not all(isinstance(part, str) for part in value.ravel()):
                raise ParameterError(f"{where} holds an array of Python objects, which cannot be saved.")
            return {"$texts": value.tolist()}
        if value.dtype.kind not in KINDS or value.dtype.itemsize == 0:
            raise ParameterError(f"{where} holds an array of {value.dtype}, which cannot be saved.")
        self.arrays.append(np.asarray(value))
        return {"$array": len(self.arrays) - 1}

    def _object(self, value: Any, where: str) -> Any:
        if sp.issparse(value):
            csr = sp.csr_array(value)
            parts = [self._array(part, where) for part in (csr.data, csr.indices, csr.indptr)]
            return {"$sparse": [*parts, list(csr.shape)]}
        if isinstance(value, np.random.RandomState):
            kind, keys, position, has_gauss, gauss = value.get_state(legacy=True)
            if kind != "MT19937":
                raise ParameterError(f"{where} holds a RandomState of {kind}, which cannot be saved. Pass an integer.")
            return {"$random": [self._array(np.asarray(keys), where), position, has_gauss, gauss]}
        if isinstance(value, NearestNeighbors):
            settings = {"n_neighbors": value.n_neighbors, "metric": value.metric}
            return {"$neighbors": [self.encoded(settings, where), self.encoded(value._fit_X, where)]}
        if isinstance(value, Pipeline):
            return {"$pipeline": [[name, self.encoded(step, f"{where}.{name}")] for name, step in value.steps]}
        if isinstance(value, FunctionType | BuiltinFunctionType) or ismethod(value):
            raise ParameterError(
                f"{where} is the Python function {getattr(value, '__name__', value)!r}, and functions are not saved: "
                "reading one back would run code from a file. Use a named kernel, a kernel object of scikit-learn, or "
                "kernel='precomputed'."
            )
        name = _names().get(type(value))
        if name is None:
            raise ParameterError(f"{where} holds a {type(value).__name__}, which cannot be saved.")
        fault = _fault(value)
        if fault is not None:
            raise ParameterError(f"{where} cannot be saved: {type(value).__name__} {fault}.")
        fields = {key: part for key, part in vars(value).items() if not key.startswith("_skl_")}
        own = {key: self.encoded(part, f"{where}.{key}") for key, part in fields.items()}
        return {"$object": [name, own]}


class _Reader:
    """Turns trees back into objects."""

    def __init__(self, path: Path, members: _Members) -> None:
        self.path, self.members = path, members
        self.depth = 0
        self.makers: dict[str, Callable[[Any], Any]] = {
            "$bool": self._bool,
            "$float": self._float,
            "$scalar": self._scalar,
            "$array": self._array,
            "$texts": self._texts,
            "$tuple": lambda parts: tuple(self.decoded(part) for part in parts),
            "$slice": lambda parts: slice(*(self.decoded(part) for part in parts)),
            "$dict": lambda pairs: {self.decoded(key): self.decoded(part) for key, part in pairs},
            "$sparse": self._sparse,
            "$random": self._random,
            "$neighbors": self._neighbors,
            "$pipeline": self._pipeline,
            "$object": self._object,
        }

    def model(self, tree: Any) -> Any:
        """Return the estimator or pipeline of a tree."""
        found = self.decoded(tree)
        last = found[-1] if isinstance(found, Pipeline) else found
        if type(last) not in set(_estimators().values()):
            raise self._damaged(f"it holds a {type(last).__name__}, no estimator")
        return found

    def decoded(self, tree: Any) -> Any:
        """Return the value of a tree."""
        if not isinstance(tree, list | dict):
            return tree
        if self.depth == DEEPEST:
            raise self._damaged("its description is nested too deeply")
        self.depth += 1
        value = [self.decoded(part) for part in tree] if isinstance(tree, list) else self._tagged(tree)
        self.depth -= 1
        return value

    def _tagged(self, tree: dict[str, Any]) -> Any:
        if len(tree) != 1 or next(iter(tree)) not in self.makers:
            raise self._damaged(f"it holds {sorted(tree)[:3]}")
        ((kind, content),) = tree.items()
        return self.makers[kind](content)

    def _damaged(self, how: str) -> DataError:
        return DataError(f"{self.path}: the saved model is damaged: {how}.")

    def _bool(self, value: Any) -> np.bool_:
        if not isinstance(value, bool):
            raise self._damaged(f"{value!r:.50} is no truth value")
        return np.bool_(value)

    def _float(self, text: str) -> float:
        if text not in ("inf", "-inf", "nan"):
            raise self._damaged(f"{text!r:.50} is no number")
        return float(text)

    def _scalar(self, parts: list[Any]) -> Any:
        kind, number = np.dtype(parts[0]), self.decoded(parts[1])
        if kind.kind not in "iuf" or not isinstance(number, int | float):
            raise self._damaged(f"{number!r:.50} is no number")
        return kind.type(number)

    def _array(self, number: int) -> np.ndarray:
        return self.members.array(f"arrays/{int(number)}.npy")

    def _texts(self, texts: Any) -> np.ndarray:
        found = np.array(texts, dtype=object)
        if not all(isinstance(part, str) for part in found.ravel()):
            raise self._damaged("texts are something else")
        return found

    def _sparse(self, parts: list[Any]) -> Any:
        data, indices, indptr, shape = parts
        csr = (self.decoded(data), self.decoded(indices), self.decoded(indptr))
        if not all(isinstance(part, np.ndarray) for part in csr) or csr[0].dtype.kind not in "biufc":
            raise self._damaged("a sparse matrix does not consist of arrays of numbers")
        found = sp.csr_array(csr, shape=tuple(shape))
        found.check_format(full_check=True)
        return found

    def _random(self, parts: list[Any]) -> np.random.RandomState:
        keys, position, has_gauss, gauss = parts
        found = np.random.RandomState()
        if not 0 <= position <= RANDOM_WORDS:  # NumPy would read beyond the end
            raise self._damaged("a random state has no valid position")
        found.set_state(("MT19937", self.decoded(keys), position, has_gauss, gauss))
        return found

    def _pipeline(self, steps: list[Any]) -> Pipeline:
        found = [(name, self.decoded(step)) for name, step in steps]
        for name, step in found:
            if not isinstance(name, str) or not (isinstance(step, BaseEstimator) or step in (None, "passthrough")):
                raise self._damaged(f"{name!r:.50} is no step of a pipeline")
        if len({name for name, _ in found}) < max(len(found), 1):
            raise self._damaged("the steps of a pipeline have no names of their own")
        return Pipeline(found)

    def _neighbors(self, parts: list[Any]) -> NearestNeighbors:
        settings, X = map(self.decoded, parts)
        return NearestNeighbors(n_neighbors=settings["n_neighbors"], metric=settings["metric"]).fit(X)

    def _object(self, parts: list[Any]) -> Any:
        name, fields = parts
        cls = _known().get(name)
        if cls is None:
            raise DataError(f"{self.path}: the saved model names {name!r}, no class of a model; it is refused.")
        found: Any = object.__new__(cls)
        for key, tree in fields.items():
            if not key.isidentifier() or key.startswith("__"):
                raise self._damaged(f"{key!r:.50} is no field of {name}")
            object.__setattr__(found, key, self.decoded(tree))
        fault = _fault(found)
        if fault is not None:
            raise self._damaged(f"{name} {fault}")
        return found
