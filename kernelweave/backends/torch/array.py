"""Arrays on a torch device, with the arithmetic that the protocol asks of a backend array.

A thin shell around a tensor: tensors do not mix with NumPy arrays, and NumPy would load a tensor to the host without a
word. Here small NumPy arrays are brought to the device, and a way to the host is the backend's ``host`` alone.
"""

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

#: Types of torch by those of NumPy.
DTYPES: dict[Any, torch.dtype] = {
    np.dtype(np.float64): torch.float64,
    np.dtype(np.float32): torch.float32,
    np.dtype(np.intp): torch.int64,
    np.dtype(np.int32): torch.int32,
    np.dtype(np.uint16): torch.int32,  # torch computes little with unsigned numbers
    np.dtype(np.uint8): torch.uint8,
    np.dtype(np.bool_): torch.bool,
}
NAMES = {torch.float64: np.float64, torch.float32: np.float32, torch.int64: np.intp, torch.bool: np.bool_}


class TorchArray:
    """A tensor of one row or one column per sample."""

    __array_ufunc__ = None  # NumPy leaves arithmetic with it to this class
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor

    def __array__(self, *args: Any, **kwargs: Any) -> NDArray[Any]:
        raise TypeError("An array on a torch device reaches the host through backend.host() alone.")

    def __bool__(self) -> bool:
        raise TypeError("An array on a torch device has no truth value.")

    def __iter__(self) -> Any:
        raise TypeError("An array on a torch device is not walked over on the host.")

    def __len__(self) -> int:
        return int(self.tensor.shape[0])

    def __repr__(self) -> str:
        return f"TorchArray(shape={self.shape}, dtype={self.tensor.dtype}, device={self.tensor.device})"

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths of its sides."""
        return tuple(self.tensor.shape)

    @property
    def ndim(self) -> int:
        """The number of its sides."""
        return int(self.tensor.ndim)

    @property
    def dtype(self) -> Any:
        """The type of its numbers as NumPy calls it."""
        return np.dtype(NAMES[self.tensor.dtype])

    def __getitem__(self, key: Any) -> "TorchArray":
        """Return ``[:, None]``, a column or a slice of columns, or one array of a stack; without a copy."""
        return TorchArray(self.tensor[key])

    def __neg__(self) -> "TorchArray":
        return TorchArray(-self.tensor)

    def __abs__(self) -> "TorchArray":
        return TorchArray(self.tensor.abs())

    def __invert__(self) -> "TorchArray":
        return TorchArray(~self.tensor)

    def __iadd__(self, other: Any) -> "TorchArray":
        self.tensor += self._like(other)
        return self

    def __imul__(self, other: Any) -> "TorchArray":
        self.tensor *= self._like(other)
        return self

    def _like(self, other: Any) -> Any:
        """Return the other side of an operation as a tensor, or as the number it is."""
        if isinstance(other, TorchArray):
            return other.tensor
        if isinstance(other, np.ndarray):
            return as_tensor(other, self.tensor.device)
        return other.item() if isinstance(other, np.generic) else other


def as_tensor(values: Any, device: torch.device, dtype: torch.dtype | None = None) -> torch.Tensor:
    """Return values as a tensor of a device, without a copy where they are one."""
    if isinstance(values, TorchArray):
        values = values.tensor
    elif isinstance(values, np.ndarray) and (not values.flags.writeable or min(values.strides, default=0) < 0):
        values = values.copy()  # torch has no tensors that must not be written to, or that run backwards
    return torch.as_tensor(values, dtype=dtype, device=device)


def ranges(n: int, step: int) -> list[tuple[int, int]]:
    """Return the ends of ranges of up to ``step`` of n things."""
    return [(lo, min(lo + step, n)) for lo in range(0, n, step)]


def _add_operators() -> None:
    names = ("add", "sub", "mul", "truediv", "pow", "and_", "or_", "gt", "ge", "lt", "le", "ne", "eq")
    for name in names:
        function: Callable[[Any, Any], Any] = getattr(operator, name)
        plain = name.rstrip("_")

        def forward(self: TorchArray, other: Any, function: Callable[[Any, Any], Any] = function) -> TorchArray:
            return TorchArray(function(self.tensor, self._like(other)))

        def backward(self: TorchArray, other: Any, function: Callable[[Any, Any], Any] = function) -> TorchArray:
            return TorchArray(function(self._like(other), self.tensor))

        setattr(TorchArray, f"__{plain}__", forward)
        setattr(TorchArray, f"__r{plain}__", backward)


_add_operators()
