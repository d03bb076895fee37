"""Every error and warning of the library, so that callers can catch them by name.

All errors derive from ``ValueError`` because scikit-learn's tools expect that of bad input.
"""

from sklearn.exceptions import ConvergenceWarning


class ParameterError(ValueError):
    """A constructor or call argument that cannot be used as given."""


class ViewError(ValueError):
    """Views that do not fit together or do not hold numbers."""


class KernelError(ValueError):
    """A kernel, similarity or affinity matrix that cannot be used as given."""


class DataError(ValueError):
    """A data set that is missing or cannot be read."""


class NotPSDWarning(UserWarning):
    """A kernel with negative eigenvalues: no feature space stands behind it."""


__all__ = ["ConvergenceWarning", "DataError", "KernelError", "NotPSDWarning", "ParameterError", "ViewError"]
