"""What a run depends on, so that a checkpoint is never continued by another run."""

from collections.abc import Mapping
from hashlib import blake2b
from importlib.metadata import version
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp

from kernelweave.foundation.array_types import Floats, Matrix
from kernelweave.foundation.checkpoints import NOTHING, Keeper, open_checkpoint
from kernelweave.foundation.errors import Argument, ParameterError
from kernelweave.inputs import Views
from kernelweave.kernels.chunked import contents_digest, in_blocks

#: Parameters that leave labels as they are; what is stored, and where, may be other after a stop for want of memory.
WITHOUT_EFFECT = ("checkpoint", "verbose", "storage", "memory_limit")


def keep_run(estimator: Any, samples: Matrix | Views, weights: Floats | None = None) -> Keeper:
    """Return the keeper of a fit, and let the estimator have it until the fit ends.

    ``fit_context`` takes it away again, and removes the file of a fit that ended well.
    """
    if estimator.checkpoint is None:
        return NOTHING
    if estimator._draws and not isinstance(estimator.random_state, Integral):
        raise ParameterError(
            Argument("checkpoint", str(estimator.checkpoint)),
            f" needs an integer random_state, not {estimator.random_state!r}: "
            "a resumed run must draw the same numbers as "
            "before. Set random_state=0, or any other integer.",
        )
    keeper = open_checkpoint(estimator.checkpoint, _identity(estimator, samples, weights))
    estimator._keeper = keeper
    return keeper


def _identity(estimator: Any, samples: Matrix | Views, weights: Floats | None) -> dict[str, str]:
    """Return what a fit depends on, in words."""
    parameters = {
        name: _in_words(value)
        for name, value in estimator.get_params(deep=False).items()
        if name not in WITHOUT_EFFECT and (name != "random_state" or estimator._draws)
    }
    views = zip(samples.names, samples.blocks, strict=True) if isinstance(samples, Views) else [("X", samples)]
    data = {f"view {name!r}" if isinstance(samples, Views) else name: _in_words(block) for name, block in views}
    return {
        "the estimator": type(estimator).__name__,
        "the version of kernelweave": version("kernelweave"),
        **parameters,
        **data,
        "sample_weight": "absent" if weights is None else _in_words(weights),
    }


def _in_words(value: Any) -> str:
    """Return text that is the same for equal values, and short: of arrays shape, type and a digest."""
    if isinstance(value, np.generic):
        return repr(value.item())
    if sp.issparse(value):
        arrays = (value.data, value.indices, value.indptr) if hasattr(value, "indptr") else (value.toarray(),)
        return f"a sparse matrix of shape {value.shape} ({_digest(*arrays)})"
    if in_blocks(value):
        return f"a table in blocks of shape {value.shape} ({contents_digest(value)})"
    if hasattr(value, "__array__"):
        array = np.asarray(value)
        array = array.astype(str) if array.dtype.kind == "O" else array
        return f"an array of {array.dtype} and shape {array.shape} ({_digest(array)})"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{name!r}: {_in_words(each)}' for name, each in value.items())}}}"
    if isinstance(value, list | tuple) and len(value) > 8:
        return f"a sequence of {len(value)} ({_digest(np.frombuffer(repr(value).encode(), np.uint8))})"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_in_words, value))}]"
    code = getattr(value, "__code__", None)
    if code is not None:  # the same name may stand for another function
        return f"{value.__module__}.{value.__qualname__} ({_digest(np.frombuffer(code.co_code, np.uint8))})"
    return repr(value)


def _digest(*arrays: Any) -> str:
    digest = blake2b(digest_size=8)
    for array in arrays:
        digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()
