"""Settings that hold inside a ``with`` block: where fits run."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

#: How inner products are formed on a device.
PRECISIONS = ("tf32x3", "float64", "tf32")


@dataclass(frozen=True)
class Config:
    """The settings in force."""

    client: Any = None  # distributed.Client
    device: Any = None  # of torch; None for this process
    precision: str = "tf32x3"


_config: ContextVar[Config | None] = ContextVar("kernelweave_config", default=None)


def get_config() -> Config:
    """Return the settings in force here.

    Returns
    -------
    config : Config
        ``client`` is the Dask client that fits run on, None for this process; ``device`` the torch device, None for
        NumPy; ``precision`` how that forms inner products.
    """
    return _config.get() or Config()


@contextmanager
def config_context(**settings: Any) -> Iterator[None]:
    """Change settings inside a ``with`` block; they hold for this thread and end with the block.

    Parameters
    ----------
    client : distributed.Client, default=None
        Fits inside the block run on the workers of this Dask cluster, also those of arrays in memory.
    device : {"cuda", "cuda:0", ..., "cpu"} or torch.device, default=None
        Fits inside the block run with torch on this device if the estimator supports it; others warn and run on the
        processor. ``"cpu"`` is torch on the processor, for comparisons. None means compiled loops on all cores.
    precision : {"tf32x3", "float64", "tf32"}, default="tf32x3"
        How inner products are formed on a device in passes over kernels that are not stored. ``"tf32x3"`` has the
        accuracy of single precision on tensor cores; samples that this leaves undecided are settled in double
        precision, so that labels and objective are those of ``"float64"``. ``"tf32"`` is faster, with errors of up to
        a thousandth: labels may differ.

    Examples
    --------
    >>> from kernelweave import config_context
    >>> with config_context(client=None):
    ...     pass  # fits here run in this process
    """
    unknown = sorted(set(settings) - set(Config.__dataclass_fields__))
    if unknown:
        known = ", ".join(Config.__dataclass_fields__)
        raise TypeError(f"config_context() has no setting {', '.join(unknown)}; it takes {known}.")
    if settings.get("precision", PRECISIONS[0]) not in PRECISIONS:
        raise ValueError(f"precision={settings['precision']!r} must be one of {', '.join(map(repr, PRECISIONS))}.")
    token = _config.set(replace(get_config(), **settings))
    try:
        yield
    finally:
        _config.reset(token)
