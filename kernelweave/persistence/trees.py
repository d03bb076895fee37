"""Objects as trees that JSON can hold, with arrays beside them, and back."""

import math
from collections import Counter
from collections.abc import Callable, Mapping
from inspect import ismethod
from pathlib import Path
from types import BuiltinFunctionType, FunctionType
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.neighbors import NearestNeighbors
from sklearn.pipeline import Pipeline

from kernelweave.foundation.errors import DataError, ParameterError
from kernelweave.persistence.fields import KINDS, assembled, fault_of, fields_in, one_line
from kernelweave.persistence.names import CLASSES, ESTIMATORS, name_of, names_since
from kernelweave.persistence.upgrades import upgraded

# Lists and objects inside one another.
DEEPEST = 100
# Times that one array may occur, so that a small file cannot make much of it.
MOST_SHARED = 3
# Types of Python that select columns of a data frame.
PLAIN_TYPES = (bool, int, float, str, object)
# What categories of a column may be, besides None.
CATEGORIES = (str, bool, int, float, np.generic)
# Numbers in a state of the Mersenne Twister.
RANDOM_WORDS = 624


class Members(Protocol):
    """Where the arrays of a tree are."""

    def array(self, name: str) -> np.ndarray:
        """Return an array by its name."""


class Writer:
    """Turns objects into what JSON holds; arrays go into a list beside it."""

    def __init__(self, arrays: list[np.ndarray]) -> None:
        self.arrays = arrays
        self.numbers: dict[int, int] = {}  # of arrays by identity: what estimator and model share is written once
        self.uses: Counter[int] = Counter()
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
            return [self.encoded(item, where) for item in value]
        if isinstance(value, tuple):
            return {"$tuple": [self.encoded(item, where) for item in value]}
        if isinstance(value, slice):
            return {"$slice": [self.encoded(end, where) for end in (value.start, value.stop, value.step)]}
        if isinstance(value, np.dtype) or (isinstance(value, type) and issubclass(value, np.generic)):
            return self._kind(value, where)
        if isinstance(value, Mapping):
            pairs = [[self.encoded(key, where), self.encoded(item, where)] for key, item in value.items()]
            return {"$dict": pairs}
        return self._object(value, where)

    def _number(self, value: Any) -> Any:
        scalar = isinstance(value, np.generic)
        plain = value.item() if scalar else value
        if isinstance(plain, float) and not math.isfinite(plain):
            plain = {"$float": repr(plain)}
        return {"$scalar": [value.dtype.str, plain]} if scalar else plain

    def _kind(self, value: Any, where: str) -> Any:
        """Return the tree of a kind of numbers, as an object of NumPy's or as a class."""
        kind = np.dtype(value)
        if kind.kind not in KINDS + "O" or kind.names is not None:
            raise ParameterError(f"{where} holds the kind of numbers {kind}, which cannot be saved.")
        return {"$kind": [kind.str, isinstance(value, type)]}

    def _ufunc(self, value: np.ufunc, where: str) -> Any:
        """Return the tree of a function on single numbers, which NumPy must have under its name."""
        name = str(value.__name__)
        if getattr(np, name, None) is not value:
            raise ParameterError(
                f"{where} holds the function {name!r}, which is not a NumPy function and cannot be saved."
            )
        return {"$ufunc": name}

    def _array(self, value: np.ndarray, where: str) -> Any:
        if value.dtype.kind == "O":
            if all(isinstance(item, str) for item in value.ravel()):
                return {"$texts": value.tolist()}
            if value.ndim == 1 and all(isinstance(item, np.ndarray) for item in value):
                return {"$arrays": [self._array(item, where) for item in value]}
            if value.ndim != 1 or not all(item is None or isinstance(item, CATEGORIES) for item in value):
                raise ParameterError(f"{where} holds an array of Python objects, which cannot be saved.")
            return {"$categories": [self.encoded(item, where) for item in value]}
        if value.dtype.kind not in KINDS or value.dtype.itemsize == 0:
            raise ParameterError(f"{where} holds an array of {value.dtype}, which cannot be saved.")
        number = self.numbers.get(id(value))
        if number is not None and self.uses[number] < MOST_SHARED:
            self.uses[number] += 1
            return {"$shared": number}
        number = len(self.arrays)
        self.arrays.append(value)  # which keeps it alive, so that no other array gets its identity
        self.numbers[id(value)] = number
        self.uses[number] = 1
        return {"$array": number}

    def _object(self, value: Any, where: str) -> Any:
        if sp.issparse(value):
            csr = sp.csr_array(value)
            arrays = [self._array(array, where) for array in (csr.data, csr.indices, csr.indptr)]
            return {"$sparse": [*arrays, list(csr.shape)]}
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
        if isinstance(value, np.ufunc):
            return self._ufunc(value, where)
        if isinstance(value, type) and value in PLAIN_TYPES:
            return {"$type": value.__name__}
        if isinstance(value, FunctionType | BuiltinFunctionType) or ismethod(value):
            raise ParameterError(
                f"{where} is the Python function {getattr(value, '__name__', value)!r}, and functions cannot be saved: "
                "reading one back would run code from a file. Use a named kernel, a kernel object of scikit-learn, or "
                "kernel='precomputed'."
            )
        name = name_of(type(value))
        if name is None:
            reason = getattr(value, "why_not_saved", None)
            told = f"holds a {type(value).__name__}, which cannot be saved."
            raise ParameterError(f"{where} {told if reason is None else f'cannot be saved. {reason}'}")
        # Objects in its fields come first: what is said about this one relies on them.
        trees = {key: self.encoded(field, f"{where}.{key}") for key, field in fields_in(value).items()}
        fault = fault_of(value)
        if fault is not None:
            raise ParameterError(f"{where} cannot be saved: {type(value).__name__} {fault}.")
        return {"$object": [name, trees]}


class Reader:
    """Turns trees of a version of the format into objects of today."""

    def __init__(self, path: Path, members: Members, version: int) -> None:
        self.path = path
        self.members = members
        self.version = version
        self.arrays: dict[int, np.ndarray] = {}
        self.uses: Counter[int] = Counter()
        self.depth = 0
        self.makers: dict[str, Callable[[Any], Any]] = {
            "$bool": self._bool,
            "$float": self._float,
            "$scalar": self._scalar,
            "$array": self._array,
            "$shared": self._shared,
            "$texts": self._texts,
            "$categories": self._categories,
            "$arrays": self._arrays,
            "$kind": self._kind,
            "$type": self._type,
            "$ufunc": self._ufunc,
            "$tuple": lambda items: tuple(self.decoded(item) for item in items),
            "$slice": lambda ends: slice(*(self.decoded(end) for end in ends)),
            "$dict": lambda pairs: {self.decoded(key): self.decoded(item) for key, item in pairs},
            "$sparse": self._sparse,
            "$random": self._random,
            "$neighbors": self._neighbors,
            "$pipeline": self._pipeline,
            "$object": self._object,
        }

    def model(self, tree: Any) -> Any:
        """Return the estimator or pipeline of a tree."""
        model = self.decoded(tree)
        last = model[-1] if isinstance(model, Pipeline) else model
        if type(last) not in ESTIMATORS:
            raise self._damaged(f"it holds a {type(last).__name__}, not an estimator")
        return model

    def decoded(self, tree: Any) -> Any:
        """Return the value of a tree."""
        if not isinstance(tree, list | dict):
            return tree
        if self.depth == DEEPEST:
            raise self._damaged("its description is nested too deeply")
        self.depth += 1
        value = [self.decoded(item) for item in tree] if isinstance(tree, list) else self._tagged(tree)
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
            raise self._damaged(f"{value!r:.50} is not a truth value")
        return np.bool_(value)

    def _float(self, text: str) -> float:
        if text not in ("inf", "-inf", "nan"):
            raise self._damaged(f"{text!r:.50} is not a number")
        return float(text)

    def _scalar(self, parts: list[Any]) -> Any:
        kind = np.dtype(parts[0])
        number = self.decoded(parts[1])
        if kind.kind not in "iuf" or not isinstance(number, int | float):
            raise self._damaged(f"{number!r:.50} is not a number")
        return kind.type(number)

    def _array(self, number: int) -> np.ndarray:
        number = int(number)
        self.arrays[number] = self.members.array(f"arrays/{number}.npy")
        self.uses[number] = 1
        return self.arrays[number]

    def _shared(self, number: int) -> np.ndarray:
        """Return an array that occurred before."""
        if number not in self.arrays or self.uses[number] == MOST_SHARED:
            raise self._damaged(f"array {number!r:.50} occurs later, or too often")
        self.uses[number] += 1
        return self.arrays[number]

    def _texts(self, texts: Any) -> np.ndarray:
        array = np.array(texts, dtype=object)
        if not all(isinstance(item, str) for item in array.ravel()):
            raise self._damaged("texts are something else")
        return array

    def _categories(self, items: Any) -> np.ndarray:
        values = [self.decoded(item) for item in items]
        if not all(value is None or isinstance(value, CATEGORIES) for value in values):
            raise self._damaged("categories are something else")
        array = np.empty(len(values), dtype=object)
        array[:] = values
        return array

    def _arrays(self, items: Any) -> np.ndarray:
        values = [self.decoded(item) for item in items]
        if not all(isinstance(value, np.ndarray) for value in values):
            raise self._damaged("a list of arrays holds something else")
        array = np.empty(len(values), dtype=object)
        array[:] = values
        return array

    def _type(self, name: Any) -> type:
        known = {plain.__name__: plain for plain in PLAIN_TYPES}
        if name not in known:
            raise self._damaged(f"{name!r:.50} is not a plain type")
        return known[name]

    def _ufunc(self, name: Any) -> np.ufunc:
        function = getattr(np, name, None) if isinstance(name, str) else None
        if not isinstance(function, np.ufunc):
            raise self._damaged(f"{name!r:.50} is not a NumPy function on single numbers")
        return function

    def _kind(self, parts: list[Any]) -> Any:
        text, as_class = parts
        kind = np.dtype(text) if isinstance(text, str) else None
        if kind is None or kind.kind not in KINDS + "O" or kind.names is not None:
            raise self._damaged(f"{text!r:.50} is not a kind of number")
        return kind.type if as_class else kind

    def _sparse(self, parts: list[Any]) -> Any:
        data, indices, indptr, shape = parts
        csr = (self.decoded(data), self.decoded(indices), self.decoded(indptr))
        if not all(isinstance(array, np.ndarray) for array in csr) or csr[0].dtype.kind not in "biufc":
            raise self._damaged("a sparse matrix does not consist of arrays of numbers")
        matrix = sp.csr_array(csr, shape=tuple(shape))
        matrix.check_format(full_check=True)
        return matrix

    def _random(self, parts: list[Any]) -> np.random.RandomState:
        keys, position, has_gauss, gauss = parts
        state = np.random.RandomState()
        if not 0 <= position <= RANDOM_WORDS:  # NumPy would read beyond the end
            raise self._damaged("a random state has no valid position")
        state.set_state(("MT19937", self.decoded(keys), position, has_gauss, gauss))
        return state

    def _pipeline(self, steps: list[Any]) -> Pipeline:
        named = [(name, self.decoded(step)) for name, step in steps]
        for name, step in named:
            if not isinstance(name, str) or not (isinstance(step, BaseEstimator) or step in (None, "passthrough")):
                raise self._damaged(f"{name!r:.50} is not a step of a pipeline")
        if len({name for name, _ in named}) < max(len(named), 1):
            raise self._damaged("the steps of a pipeline do not have unique names")
        return Pipeline(named)

    def _neighbors(self, parts: list[Any]) -> NearestNeighbors:
        settings, X = map(self.decoded, parts)
        return NearestNeighbors(n_neighbors=settings["n_neighbors"], metric=settings["metric"]).fit(X)

    def _object(self, parts: list[Any]) -> Any:
        written, trees = parts
        name = names_since(written, self.version)[-1]
        if name not in CLASSES:
            raise DataError(f"{self.path}: the saved model names {written!r}, which is not a model class.")
        for key in trees:
            if not key.isidentifier() or key.startswith("__"):
                raise self._damaged(f"{key!r:.50} is not a field of {name}")
        fields = {key: self.decoded(tree) for key, tree in trees.items()}
        try:
            return assembled(name, upgraded(written, fields, self.version))
        except ValueError as error:
            raise self._damaged(one_line(error)) from error
