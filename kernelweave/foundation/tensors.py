"""Torch tensors as input: read as NumPy, and the GPU that they lie on is where a fit runs."""

import sys
from collections.abc import Mapping
from typing import Any


def without_tensors(X: Any) -> tuple[Any, str | None]:
    """Return input with NumPy arrays in place of tensors, and the GPU that the tensors are on, if any.

    Torch is not imported: without it there are no tensors.
    """
    torch = sys.modules.get("torch")
    if torch is None:
        return X, None
    if isinstance(X, torch.Tensor):
        device = str(X.device) if X.is_cuda else None
        return X.detach().cpu().numpy(), device
    if isinstance(X, Mapping):
        pairs = {name: without_tensors(view) for name, view in X.items()}
        replaced: Any = {name: view for name, (view, _) in pairs.items()}
        return (replaced, _first(pairs.values())) if _has_tensors(torch, X.values()) else (X, None)
    if isinstance(X, list | tuple) and _has_tensors(torch, X):
        parts = [without_tensors(view) for view in X]
        return [view for view, _ in parts], _first(parts)
    return X, None


def _has_tensors(torch: Any, views: Any) -> bool:
    return any(isinstance(view, torch.Tensor) for view in views)


def _first(parts: Any) -> str | None:
    return next((device for _, device in parts if device is not None), None)


def is_out_of_memory(error: Exception) -> bool:
    """Whether an error says that a device has no memory left."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(error, torch.OutOfMemoryError)


def error_line(error: Exception) -> str:
    """Return the first sentence of an error."""
    return str(error).split(". ")[0]
