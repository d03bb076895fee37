"""Backends by name, made on first use, so that importing the library stays quick."""

from functools import cache
from typing import Any

from kernelweave.backends.host import HostBackend
from kernelweave.backends.protocol import Backend
from kernelweave.foundation.errors import ParameterError

#: Backends of the library: compiled loops, the default, and their plain twins.
BACKENDS = ("numba", "numpy")


def get_backend(name: str = "numba") -> Backend:
    """Return the backend called ``name``, always the same object."""
    return _made(name)


@cache
def _made(name: str) -> Backend:
    return HostBackend(name)


@cache
def get_device_backend(device: str) -> Any:
    """Return the backend of a torch device, always the same object; torch is imported here and not before."""
    try:
        import torch
    except ImportError as error:
        raise ParameterError(
            f"device={device!r} needs torch, which is not installed. Run pip install 'kernelweave[gpu]', or leave the "
            "device out."
        ) from error
    try:
        kind = torch.device(device).type
    except RuntimeError as error:
        raise ParameterError(f"device={device!r} is not a torch device; use 'cuda', 'cuda:1' or 'cpu'.") from error
    if kind == "cuda" and not torch.cuda.is_available():
        raise ParameterError(
            f"device={device!r}: torch {torch.__version__} sees no GPU here. Do not set a device, or install a build "
            "of torch for your driver."
        )
    from kernelweave.backends.torch import TorchBackend

    return TorchBackend(device)
