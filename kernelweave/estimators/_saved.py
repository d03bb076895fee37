"""Fitted models in a file: a zip of a JSON description and plain arrays. Loading runs no code that the file brings.

model.json  format, versions, and the tree of the model: numbers, text, lists, dicts, and objects as class and fields
arrays/     every array as .npy, without pickles

Classes are looked up by name in a list made of our own modules and scikit-learn's kernels; a name that is not in it is
refused. Objects are made without their constructor and given their fields.
"""

import io
import json
import math
import os
import zipfile
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import version
from inspect import getmembers, isclass, ismethod
from pathlib import Path
from types import BuiltinFunctionType, FunctionType
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.neighbors import NearestNeighbors
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, Normalizer, StandardScaler
from sklearn.utils.validation import check_is_fitted

from kernelweave.foundation._errors import DataError, ParameterError

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
# Arrays of a model may not unpack to more than this many times the size of the file.
LARGEST_GROWTH = 10_000


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
    arrays: list[np.ndarray] = []
    tree = {
        "format": FORMAT,
        "version": VERSION,
        "kernelweave": version("kernelweave"),
        "estimator": type(last).__name__,
        "notes": dict(notes or {}),
        "model": _Writer(arrays).encoded(model, type(model).__name__),
    }
    path = Path(path)
    partial = path.with_name(f"{path.name}.partial")
    try:
        with zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("model.json", json.dumps(tree, allow_nan=False))
            for i, array in enumerate(arrays):
                with archive.open(f"arrays/{i}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, np.ascontiguousarray(array), allow_pickle=False)
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)
    return path


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
    try:
        with zipfile.ZipFile(path) as archive:
            tree = _described(path, archive)
            notes = tree.get("notes", {})
            return _Reader(path, archive).decoded(tree["model"]), notes if isinstance(notes, dict) else {}
    except zipfile.BadZipFile as error:
        raise DataError(f"{path}: this is no saved model, or it is cut short ({error}).") from error
    except (KeyError, IndexError, TypeError, AttributeError, EOFError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{path}: the saved model is damaged ({error}).") from error


def _described(path: Path, archive: zipfile.ZipFile) -> dict[str, Any]:
    if "model.json" not in archive.namelist():
        raise DataError(f"{path}: this zip archive holds no model.json, so it is no saved model.")
    size = sum(entry.file_size for entry in archive.infolist())
    if size > LARGEST_GROWTH * max(path.stat().st_size, 1):
        raise DataError(f"{path}: the archive would unpack to {size} bytes, far more than its size; it is refused.")
    tree = json.loads(archive.read("model.json"))
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


# Trees


class _Writer:
    """Turns objects into what JSON holds; arrays go into a list beside it."""

    def __init__(self, arrays: list[np.ndarray]) -> None:
        self.arrays = arrays

    def encoded(self, value: Any, where: str) -> Any:
        """Return the tree of a value; ``where`` is its place, for messages."""
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
        fields = {key: part for key, part in vars(value).items() if not key.startswith("_skl_")}
        own = {key: self.encoded(part, f"{where}.{key}") for key, part in fields.items()}
        return {"$object": [name, own]}


class _Reader:
    """Turns trees back into objects."""

    def __init__(self, path: Path, archive: zipfile.ZipFile) -> None:
        self.path, self.archive = path, archive
        self.makers: dict[str, Callable[[Any], Any]] = {
            "$bool": np.bool_,
            "$float": self._float,
            "$scalar": lambda parts: np.dtype(parts[0]).type(self.decoded(parts[1])),
            "$array": self._array,
            "$texts": lambda texts: np.array(texts, dtype=object),
            "$tuple": lambda parts: tuple(self.decoded(part) for part in parts),
            "$slice": lambda parts: slice(*(self.decoded(part) for part in parts)),
            "$dict": lambda pairs: {self.decoded(key): self.decoded(part) for key, part in pairs},
            "$sparse": self._sparse,
            "$random": self._random,
            "$neighbors": self._neighbors,
            "$pipeline": lambda steps: Pipeline([(str(name), self.decoded(step)) for name, step in steps]),
            "$object": self._object,
        }

    def decoded(self, tree: Any) -> Any:
        """Return the value of a tree."""
        if isinstance(tree, list):
            return [self.decoded(part) for part in tree]
        if not isinstance(tree, dict):
            return tree
        if len(tree) != 1 or next(iter(tree)) not in self.makers:
            raise DataError(f"{self.path}: the saved model is damaged: it holds {sorted(tree)[:3]}.")
        ((kind, content),) = tree.items()
        return self.makers[kind](content)

    def _float(self, text: str) -> float:
        if text not in ("inf", "-inf", "nan"):
            raise DataError(f"{self.path}: the saved model is damaged: {text!r} is no number.")
        return float(text)

    def _array(self, number: int) -> np.ndarray:
        with self.archive.open(f"arrays/{int(number)}.npy") as member:
            return np.asarray(np.lib.format.read_array(io.BytesIO(member.read()), allow_pickle=False))

    def _sparse(self, parts: list[Any]) -> Any:
        data, indices, indptr, shape = parts
        csr = (self.decoded(data), self.decoded(indices), self.decoded(indptr))
        found = sp.csr_array(csr, shape=tuple(shape))
        found.check_format(full_check=True)
        return found

    def _random(self, parts: list[Any]) -> np.random.RandomState:
        keys, position, has_gauss, gauss = parts
        found = np.random.RandomState()
        found.set_state(("MT19937", self.decoded(keys), position, has_gauss, gauss))
        return found

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
                raise DataError(f"{self.path}: the saved model is damaged: {key!r} is no field of {name}.")
            object.__setattr__(found, key, self.decoded(tree))
        if isinstance(found, BaseEstimator):
            missing = sorted(set(type(found)._get_param_names()) - set(vars(found)))
            if missing:
                raise DataError(f"{self.path}: the saved model is damaged: {name} has no {missing[0]!r}.")
        return found
