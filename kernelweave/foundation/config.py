"""Settings that hold inside a ``with`` block: where fits run."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True)
class Config:
    """The settings in force."""

    client: Any = None  # distributed.Client


_config: ContextVar[Config | None] = ContextVar("kernelweave_config", default=None)


def get_config() -> Config:
    """Return the settings in force here.

    Returns
    -------
    config : Config
        ``client`` is the Dask client that fits run on, None for this process.
    """
    return _config.get() or Config()


@contextmanager
def config_context(**settings: Any) -> Iterator[None]:
    """Change settings inside a ``with`` block; they hold for this thread and end with the block.

    Parameters
    ----------
    client : distributed.Client, default=None
        Fits inside the block run on the workers of this Dask cluster, also those of arrays in memory.

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
    token = _config.set(replace(get_config(), **settings))
    try:
        yield
    finally:
        _config.reset(token)
