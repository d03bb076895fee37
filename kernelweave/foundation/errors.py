"""Every error and warning of the library, so that callers can catch them by name.

All errors about input derive from ``ValueError`` because scikit-learn's tools expect that of bad input. Where a message
tells the reader to change an argument, the argument is an object among the pieces of the message: Python users read it
as Python, and another interface, such as the command line, can write it in its own words.
"""

from dataclasses import dataclass
from typing import Any

from sklearn.exceptions import ConvergenceWarning


@dataclass(frozen=True)
class Argument:
    """An argument that a message names, with the value to pass or the one that was passed."""

    name: str
    value: Any

    def __str__(self) -> str:
        return f"{self.name}={self.value!r}"


@dataclass(frozen=True)
class Remedy:
    """What to do about a fault, in words for Python users; ``fault`` names it for other interfaces."""

    fault: str
    text: str

    def __str__(self) -> str:
        return self.text


class _PiecewiseError(ValueError):
    """An error whose arguments are the pieces of its message: text, arguments and remedies."""

    def __str__(self) -> str:
        return "".join(map(str, self.args))


class ParameterError(_PiecewiseError):
    """A constructor or call argument that cannot be used as it is."""


class ViewError(ValueError):
    """Views that do not match or do not hold numbers."""


class KernelError(ValueError):
    """A kernel, similarity or affinity matrix that cannot be used as it is."""


class DataError(_PiecewiseError):
    """A data set that is missing or cannot be read."""


class WorkersLostError(RuntimeError):
    """All workers of a cluster were lost, and none came back."""


class MissingPackageError(ImportError):
    """A package that an option needs and that is not installed; the message names the extra that installs it."""


class NotPSDWarning(UserWarning):
    """A kernel with negative eigenvalues, which no feature space has."""


class ViewWarning(UserWarning):
    """A view, or samples in it, that carry no information about the clusters or contradict them."""


__all__ = [
    "Argument",
    "ConvergenceWarning",
    "DataError",
    "KernelError",
    "NotPSDWarning",
    "ParameterError",
    "Remedy",
    "ViewError",
    "ViewWarning",
]
