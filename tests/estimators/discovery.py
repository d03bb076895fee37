"""Every public estimator and what it can do, read off the class itself: a new class joins the tests by being exported.

``all_estimators()`` gives one ``Case`` per class. Nothing here names an estimator; what a test needs to know (does it
take several views, a kernel, weights, starting labels) follows from signatures, tags and docstrings.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from inspect import isclass, signature
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.utils import get_tags

import kernelweave

#: Arguments that keep a fit short and repeatable; each is passed to the classes that have the parameter.
SMALL = {"n_clusters": 3, "n_init": 3, "n_moves": 5, "n_pairs": 4, "random_state": 0}


@dataclass(frozen=True)
class Case:
    """One estimator class and its abilities."""

    cls: type

    def __repr__(self) -> str:
        return self.cls.__name__

    def make(self, **changes: Any) -> Any:
        """Return an instance with small default arguments, changed as asked."""
        small = {name: value for name, value in SMALL.items() if name in self.parameters}
        return self.cls(**(small | changes))

    @property
    def parameters(self) -> list[str]:
        """Names of the constructor parameters, in order."""
        return list(_parameters(self.cls))

    def has(self, *parameters: str) -> bool:
        """Whether the constructor takes all of these."""
        return set(parameters) <= set(self.parameters)

    def changes(self, switch: dict[str, Any]) -> bool:
        """Whether the constructor takes these arguments, and they are not its defaults."""
        return self.has(*switch) and any(getattr(self.make(), name) != value for name, value in switch.items())

    @property
    def multi_view(self) -> bool:
        """Whether X may hold several views."""
        return self.has("views")

    @property
    def takes_kernel(self) -> bool:
        """Whether a kernel is chosen by the parameter ``kernel``."""
        return self.has("kernel")

    @property
    def refined(self) -> dict[str, Any]:
        """Arguments under which the kernel is used and new rows of a kernel matrix can be placed."""
        if self.has("divergence"):
            return {"divergence": "kernel"} | ({"weighted": False} if self.has("weighted") else {})
        return {"refine": True} if self.has("refine") else {}

    @property
    def precomputed(self) -> dict[str, Any]:
        """Arguments for a kernel matrix instead of features."""
        return {"kernel": "precomputed", **self.refined}

    @property
    def needs_feature_space(self) -> bool:
        """Whether kernels that are not positive semidefinite are refused."""
        return "that is not positive semidefinite is an error" in (self.cls.__doc__ or "")

    @property
    def needs_affinities(self) -> bool:
        """Whether row sums of the kernel must not be negative, as the docstring says."""
        return "its row sums must not be negative" in (self.cls.__doc__ or "")

    @property
    def needs_patterns(self) -> bool:
        """Whether fewer sign patterns than clusters are an error."""
        return "codebook_ :" in (self.cls.__doc__ or "")

    @property
    def least_samples(self) -> int:
        """The smallest number of samples that can be divided into two clusters, as the docstring says."""
        words = ("Needs at least four samples", "as two always are, form one cluster")
        return 4 if any(text in (self.cls.__doc__ or "") for text in words) else 2

    @property
    def takes_weights(self) -> bool:
        """Whether ``fit`` takes sample weights."""
        return "sample_weight" in signature(self.cls.fit).parameters

    @property
    def takes_start_labels(self) -> bool:
        """Whether ``init`` may be an array of labels, as the docstring says (centres have another shape)."""
        entry = re.search(r"^\s*init : (.*)$", self.cls.__doc__ or "", flags=re.MULTILINE)
        return self.has("init") and entry is not None and "(n_samples,)" in entry.group(1)

    @property
    def has_predict(self) -> bool:
        """Whether new samples can be assigned."""
        return hasattr(self.make(), "predict")

    @property
    def has_transform(self) -> bool:
        """Whether there are distances or scores of samples."""
        return hasattr(self.make(), "transform")

    @property
    def pairwise(self) -> bool:
        """Whether X is a square matrix of similarities by default."""
        return bool(get_tags(self.make()).input_tags.pairwise)

    @property
    def sparse(self) -> bool:
        """Whether sparse X is taken."""
        return bool(get_tags(self.make()).input_tags.sparse)

    @property
    def positive(self) -> bool:
        """Whether values must not be negative."""
        return bool(get_tags(self.make()).input_tags.positive_only)

    def scaler(self) -> Any:
        """Return a scaler of scikit-learn after which the default instance can stand."""
        return MinMaxScaler() if self.positive else StandardScaler()

    def form(self, X: Any) -> Any:
        """Return features as the default instance wants them: as they are, not negative, or as similarities."""
        if self.positive:
            X = X - X.min()
        return rbf_kernel(X) if self.pairwise else X


@cache
def _parameters(cls: type) -> tuple[str, ...]:
    """Return the names of the constructor parameters: to read a signature takes as long as a quick fit."""
    return tuple(signature(cls).parameters)


@cache
def all_estimators() -> tuple[Case, ...]:
    """Return the public estimators."""
    exported = [getattr(kernelweave, name) for name in sorted(kernelweave.__all__)]
    return tuple(Case(item) for item in exported if isclass(item) and issubclass(item, BaseEstimator))


def for_estimators(condition: Callable[[Case], bool] = lambda case: True) -> Any:
    """Return the mark that runs a test for every estimator of which ``condition`` holds."""
    return pytest.mark.parametrize("case", [case for case in all_estimators() if condition(case)], ids=repr)


def blobs(n_per_cluster: int = 20, *, seed: int = 0, spread: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Return three groups of samples in four dimensions, shuffled, and their true labels.

    The first two columns separate the groups, and so do the last two: they can serve as views. With ``spread`` 1
    the groups lie more than ten standard deviations apart.
    """
    rng = np.random.default_rng(seed)
    centres = np.array([[0.0, 0.0, 5.0, 15.0], [12.0, 0.0, 20.0, 1.0], [0.0, 12.0, 1.0, -4.0]])
    labels = rng.permutation(np.repeat(np.arange(3), n_per_cluster))
    return centres[labels] + spread * rng.standard_normal((len(labels), 4)), labels


def same(one: Any, other: Any) -> bool:
    """Return whether two arguments hold the same values in the same form; NaN equals NaN."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, pd.DataFrame):
        return one.equals(other)
    if sp.issparse(one):
        return same(one.toarray(), other.toarray())
    if isinstance(one, np.ndarray):
        numbers = one.dtype.kind in "fc"
        return one.dtype == other.dtype and np.array_equal(one, other, equal_nan=numbers)
    return bool(one == other)
