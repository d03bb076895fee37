"""Arrays whose rows are in blocks elsewhere: what the host holds is a name for them."""

import operator
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from kernelweave.backends.blocks.nodes import Block, Node
from kernelweave.backends.blocks.promised import Promised

if TYPE_CHECKING:
    from kernelweave.backends.blocks.backend import BlocksBackend


def columns_of(block: Block, values: Any, columns: slice) -> Any:
    """Return some columns of an array, or of features that are computed when they are read."""
    return values.rows(slice(None))[:, columns] if isinstance(values, Promised) else values[:, columns]


def applied(block: Block, function: Callable[..., Any], *args: Any) -> Any:
    """Return a function of what lies in a block."""
    return function(*args)


class Hold:
    """Keeps the value of a node where it lies; once it is gone, the value may go."""

    def __init__(self, node: Node, let_go: Callable[[int], object]) -> None:
        self.node = node
        weakref.finalize(self, let_go, node.number).atexit = False


class BlockArray:
    """One entry or row for every sample, or (``axis`` 1) one column; arithmetic is written down and done later."""

    __array_ufunc__ = None  # NumPy leaves arithmetic with it to this class
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, backend: "BlocksBackend", node: Node, shape: tuple[int, ...], axis: int = 0) -> None:
        self.backend: Any = backend
        self.shape = shape
        self.axis = axis
        self.dtype: Any = np.dtype(np.float64)  # of what is stored; results of arithmetic do not tell
        self.cheap = False  # whether computing it costs less than reading it would
        self._hold = backend.held(node)

    @property
    def node(self) -> Node:
        """What the array is."""
        return self._hold.node

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError("The array is elsewhere; backend.host brings it here.")

    def __bool__(self) -> bool:
        raise TypeError("An array of all samples has no truth value.")

    def become(self, node: Node) -> None:
        """Stand for another value from now on: what a change in place comes to."""
        self._hold = self.backend.held(node)

    def of(self, function: Callable[..., Any], *args: Any, shape: tuple[int, ...], axis: int = 0) -> "BlockArray":
        """Return a function of it and further arguments, NumPy's or of the same kind."""
        return self.backend.made(applied, function, self, *args, shape=shape, axis=axis)

    def __getitem__(self, key: Any) -> "BlockArray":
        rows, columns = key
        if rows != slice(None) or self.axis != 0:
            raise TypeError("Samples are not chosen by indexing; backend.at brings some of them here.")
        if columns is None:
            shape: tuple[int, ...] = (self.shape[0], 1)
        elif isinstance(columns, slice):
            shape = (self.shape[0], len(range(*columns.indices(self.shape[1]))))
        else:
            shape = (self.shape[0],)
        if isinstance(columns, slice):
            return self.backend.made(columns_of, self, columns, shape=shape)
        return self.of(operator.getitem, key, shape=shape)

    def _binary(
        self, other: Any, function: Callable[..., Any], *, swapped: bool = False, kept: bool = True
    ) -> "BlockArray":
        theirs = other.shape if isinstance(other, BlockArray) else np.shape(other)
        shape = np.broadcast_shapes(self.shape, theirs)
        axis = max(self.axis, other.axis) if isinstance(other, BlockArray) else self.axis
        pair = (other, self) if swapped else (self, other)
        return self.backend.made(applied, function, *pair, shape=shape, axis=axis, kept=kept)

    def _in_place(self, other: Any, function: Callable[..., Any]) -> "BlockArray":
        self.become(self.backend.written(applied, function, self, other))
        return self

    def __iadd__(self, other: Any) -> "BlockArray":
        return self._in_place(other, operator.add)

    def __imul__(self, other: Any) -> "BlockArray":
        return self._in_place(other, operator.mul)

    def __abs__(self) -> "BlockArray":
        return self.of(operator.abs, shape=self.shape, axis=self.axis)

    def __neg__(self) -> "BlockArray":
        return self.of(operator.neg, shape=self.shape, axis=self.axis)


def _add_arithmetic() -> None:
    for name in ("add", "sub", "mul", "truediv", "pow", "gt", "ge", "lt", "le", "ne", "eq", "and_", "or_"):
        function = getattr(operator, name)

        def forward(self: BlockArray, other: Any, function: Any = function) -> BlockArray:
            return self._binary(other, function)

        def backward(self: BlockArray, other: Any, function: Any = function) -> BlockArray:
            return self._binary(other, function, swapped=True)

        plain = name.rstrip("_")
        setattr(BlockArray, f"__{plain}__", forward)
        if plain not in ("gt", "ge", "lt", "le", "ne", "eq"):
            setattr(BlockArray, f"__r{plain}__", backward)


_add_arithmetic()
