"""The few functions and classes of scikit-learn that are not public API, gathered here and nowhere else."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from inspect import signature
from typing import Any, ParamSpec

from sklearn.base import _fit_context as checked_fit
from sklearn.utils import _safe_indexing as safe_indexing
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _get_feature_names as get_feature_names

from kernelweave.foundation.checkpoints import NOTHING
from kernelweave.foundation.config import config_context, get_config
from kernelweave.foundation.errors import ParameterError
from kernelweave.foundation.logged_warnings import logged_warnings, warn
from kernelweave.foundation.registry import provided
from kernelweave.foundation.tensors import error_line, is_out_of_memory, without_tensors

P = ParamSpec("P")

try:  # scikit-learn 1.9 and later
    from sklearn.callback import CallbackSupportMixin as _Callbacks
except ImportError:  # pragma: no cover - older scikit-learn

    class _Callbacks:  # type: ignore[no-redef]
        """Stand-in where scikit-learn has no callbacks yet."""


class CallbackSupportMixin(_Callbacks):
    """What every estimator shares with scikit-learn's tools: callbacks of fits, and how notebooks show a model."""

    def _html_repr(self) -> str:
        """Return a summary of the model with scikit-learn's diagram folded into it; what draws them is loaded here."""
        from sklearn.utils import estimator_html_repr

        summary: str = provided("summary of a model as HTML")(self, folded=estimator_html_repr(self))
        return summary


def renamed_parameters(**names: str) -> Callable[[Callable[P, None]], Callable[P, None]]:
    """Explain in one sentence what became of parameters of earlier versions, given as ``old="remedy"``.

    scikit-learn reads parameters from the signature, which stays that of the decorated ``__init__``.
    """

    def decorate(init: Callable[P, None]) -> Callable[P, None]:
        @wraps(init)
        def explaining(*args: P.args, **kwargs: P.kwargs) -> None:
            for old, remedy in names.items():
                if old in kwargs:
                    raise TypeError(f"{type(args[0]).__name__} has no parameter {old!r} any more: {remedy}.")
            init(*args, **kwargs)

        return explaining

    return decorate


def fit_context(*, prefer_skip_nested_validation: bool) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Check parameters before ``fit``, as scikit-learn does, and keep the warnings of the fit in ``warnings_``.

    A client of the settings is an error for clusterers that need all samples in this process. The checkpoint of a fit
    that ends without an error is removed.
    """

    def decorate(fit: Callable[..., Any]) -> Callable[..., Any]:
        checked = checked_fit(prefer_skip_nested_validation=prefer_skip_nested_validation)(fit)
        weighted = "sample_weight" in signature(fit).parameters

        @wraps(fit)
        def fit_and_log(estimator: Any, *args: Any, **kwargs: Any) -> Any:
            if not weighted and "sample_weight" in kwargs:
                raise TypeError(
                    f"{type(estimator).__name__} does not support sample_weight: its method gives all samples "
                    "equal weight. Leave it out, or use an estimator whose fit takes weights, such as KernelKMeans."
                )
            if get_config().client is not None and not getattr(estimator, "_takes_blocks", True):
                raise ParameterError(
                    f"{type(estimator).__name__} runs in one process and not on the workers of a client. Leave "
                    "config_context for this fit, or use KernelKMeans, MinMaxKMeans, MinMaxKernelKMeans, "
                    "MultiViewKernelKMeans, GraphFusionClustering or kernel spectral clustering."
                )
            try:
                with logged_warnings() as messages:
                    if "X" in kwargs:
                        args = (kwargs.pop("X"), *args)
                    with _device_of(estimator, args) as read:
                        fitted = checked(estimator, *read, **kwargs)
                    vars(estimator).get("_keeper", NOTHING).remove()
            finally:
                vars(estimator).pop("_keeper", NOTHING).release()  # of this fit alone
            estimator.warnings_ = tuple(messages)
            return fitted

        return fit_and_log

    return decorate


@contextmanager
def _device_of(estimator: Any, args: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """Run a fit where its tensors are, or on this machine's cores if the estimator supports no device."""
    X, found = without_tensors(args[0]) if args else (None, None)
    device = get_config().device if found is None else found
    if device is not None and not getattr(estimator, "_takes_device", False):
        warn(
            f"{type(estimator).__name__} cannot run on device={str(device)!r}; it runs on the processor.",
            UserWarning,
        )
        device = None
    try:
        with config_context(device=device):
            yield (X, *args[1:]) if args else args
    except RuntimeError as error:
        if not is_out_of_memory(error):
            raise
        raise MemoryError(
            f"device={str(device)!r} ran out of memory in the fit of {type(estimator).__name__} ({error_line(error)}). "
            "Use storage='blockwise', which stores no kernel matrix, or fewer samples, or another device."
        ) from error


def openmp_threads() -> int:
    """Return the number of threads scikit-learn's own loops would use now."""
    try:
        from sklearn.utils._openmp_helpers import _openmp_effective_n_threads
    except ImportError:  # pragma: no cover - moved in some future version
        return int(os.environ.get("OMP_NUM_THREADS", "0")) or os.cpu_count() or 1
    return int(_openmp_effective_n_threads())


__all__ = [
    "CallbackSupportMixin",
    "Interval",
    "StrOptions",
    "checked_fit",
    "fit_context",
    "get_feature_names",
    "openmp_threads",
    "renamed_parameters",
    "safe_indexing",
]
