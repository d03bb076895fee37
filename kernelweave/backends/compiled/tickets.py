"""Pieces of work that threads take from within compiled loops, without the interpreter.

Tickets are two counts: of pieces that were begun and of pieces that are done. Python's threads take turns at the
interpreter when they begin and when they return; with tickets the first of them works until the others arrive, and goes
on as soon as the last piece is done, whoever still has to return.
"""

from typing import Any

from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from kernelweave.foundation.array_types import Array

# Looks at the pieces that others have begun before their end is waited for asleep: about 100 microseconds.
LOOKS = 120_000

_codegen: Any = cgutils  # its functions carry no types
_intrinsic: Any = intrinsic  # takes one argument less than what it decorates


@njit(nogil=True, cache=True)
def next_piece(tickets: Array) -> int:
    """Return the number of a piece that nobody has begun."""
    return int(counted_up(tickets, 0, 1))


@njit(nogil=True, cache=True)
def piece_is_done(tickets: Array) -> None:
    """Count a piece as done; what it has written can be seen by whoever sees the count."""
    counted_up(tickets, 1, 1)


@njit(nogil=True, cache=True)
def all_done(tickets: Array, count: int) -> bool:
    """Look for a short while until so many pieces are done; returns whether they are."""
    return bool(reached(tickets, 1, count, LOOKS))


@njit(nogil=True, cache=True)
def reached(tickets: Array, place: int, count: int, most: int) -> bool:
    """Look until a count is as large, ``most`` times at most; returns whether it is."""
    looks = 0
    while count_at(tickets, place) < count:
        looks += 1
        if looks >= most:
            return False
    return True


@_intrinsic
def counted_up(context: Any, tickets: Any, place: Any, by: Any) -> Any:
    """Add to a count at once for all threads; returns what it was."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.atomic_rmw("add", _cell(context, builder, signature, args), args[2], "seq_cst")

    return types.int64(tickets, types.intp, types.int64), generate


@_intrinsic
def count_at(context: Any, tickets: Any, place: Any) -> Any:
    """Return a count as it is now; unlike adding nothing to it, this holds up nobody who counts."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load_atomic(_cell(context, builder, signature, args), "acquire", 8)

    return types.int64(tickets, types.intp), generate


@_intrinsic
def set_count(context: Any, tickets: Any, place: Any, value: Any) -> Any:
    """Replace a count; whoever sees it sees what was written before. Returns what it was."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.atomic_rmw("xchg", _cell(context, builder, signature, args), args[2], "seq_cst")

    return types.int64(tickets, types.intp, types.int64), generate


def _cell(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """Return where the count at a place lies."""
    array = _codegen.create_struct_proxy(signature.args[0])(context, builder, args[0])
    return builder.gep(array.data, [args[1]])
