"""How far a matrix is from its transpose, near the speed of reading it.

Entries are compared as integers, tile by tile with their mirror images: equal bits are equal numbers, and bits of a
positive number grow with it. Compilers turn a loop that reads rows on one side and columns on the other into single
reads, at half the speed, and processors fetch short pieces of rows late. So small blocks are transposed in registers,
and tiles are fetched one ahead of the comparison; both are written as instructions of LLVM, which run on any processor.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from kernelweave.backends import numpy_loops
from kernelweave.backends.compiled.tickets import all_done, next_piece, piece_is_done
from kernelweave.backends.preparing import read_only
from kernelweave.foundation.array_types import Array, Floats, Ints

# Rows and columns of a tile: it, its mirror image and the next ones fit into the second-level cache.
TILE = 64
# Bytes of a row of a block, which is square: a register that most processors have.
BLOCK_BYTES = 32
# Bytes that a processor fetches at once.
LINE_BYTES = 64

_codegen: Any = cgutils  # its functions carry no types
_intrinsic: Any = intrinsic  # takes one argument less than what it decorates
_BYTE = ir.IntType(8)
_INT = ir.IntType(32)
_LONG = ir.IntType(64)


def worst_asymmetry(K: Array, lo: int, hi: int) -> tuple[float, float, int, int]:
    """Return max |K_ij - K_ji| and max |K_ij| over rows lo:hi from the diagonal on, and their mirror images.

    Tiles with different bits are looked at once more. See the twin, which does it where these loops cannot.
    """
    if not _has_whole_rows(K):
        return numpy_loops.worst_asymmetry(K, lo, hi)
    given = read_only(K)
    return _worst_asymmetry(given, _bits(given), lo, hi)


def asymmetry_pieces(K: Array, found: Floats, tickets: Ints, width: int, waits: bool) -> bool:
    """Take pieces of ``worst_asymmetry``, each some rows, as long as there are any; see the twin."""
    if not _has_whole_rows(K):
        return numpy_loops.asymmetry_pieces(K, found, tickets, width, waits)
    given = read_only(K)
    return bool(_asymmetry_pieces(given, _bits(given), found, tickets, width, waits))


def _has_whole_rows(K: Array) -> bool:
    """Whether the entries of a row lie side by side, as blocks are read; columns may, or every other entry."""
    return K.strides[1] == K.itemsize


def _bits(K: Array) -> Array:
    """Return the entries as integers."""
    return K.view(np.int64 if K.itemsize == 8 else np.int32)


@njit(nogil=True, cache=True)
def _asymmetry_pieces(K: Array, bits: Array, found: Floats, tickets: Ints, width: int, waits: bool) -> bool:
    count = found.shape[0]
    piece = next_piece(tickets)
    while piece < count:
        lo = piece * width
        gap, largest, row, col = _worst_asymmetry(K, bits, lo, min(lo + width, K.shape[0]))
        found[piece, 0] = gap
        found[piece, 1] = largest
        found[piece, 2] = row
        found[piece, 3] = col
        piece_is_done(tickets)
        piece = next_piece(tickets)
    return waits and all_done(tickets, count)


@njit(nogil=True, cache=True)
def _worst_asymmetry(K: Array, bits: Array, lo: int, hi: int) -> tuple[float, float, int, int]:
    n = K.shape[0]
    largest = np.zeros(1, bits.dtype)
    gap = -1.0
    row = lo
    col = lo
    for top in range(lo, hi, TILE):
        bottom = min(top + TILE, hi)
        for left in range(top, n, TILE):
            right = min(left + TILE, n)
            _fetch(bits, top, bottom, right, min(right + TILE, n))
            for i in range(top, bottom):
                _raise_to_largest(bits[i, left:right], largest)
            finite = largest.view(K.dtype)[0] < np.inf
            if finite and gap >= 0.0 and _mirrored(bits, top, bottom, left, right):
                continue
            for j in range(left, right):
                _raise_to_largest(bits[j, top:bottom], largest)
            for i in range(top, bottom):
                for j in range(max(i, left), right):
                    here = float(K[i, j])
                    there = float(K[j, i])
                    if not abs(here) < np.inf:
                        return np.inf, np.inf, i, j
                    if not abs(there) < np.inf:
                        return np.inf, np.inf, j, i
                    if abs(here - there) > gap:
                        gap = abs(here - there)
                        row = i
                        col = j
    return gap, float(largest.view(K.dtype)[0]), row, col


@njit(nogil=True, cache=True)
def _raise_to_largest(bits: Array, largest: Array) -> None:
    """Raise ``largest`` to the bits of the largest absolute value."""
    mask = np.iinfo(bits.dtype).max
    most = largest[0]
    for t in range(bits.size):
        size = bits[t] & mask
        most = size if size > most else most
    largest[0] = most


@njit(nogil=True, cache=True)
def _fetch(bits: Array, top: int, bottom: int, left: int, right: int) -> None:
    """Have a tile and its mirror image fetched from memory, without waiting for them."""
    per_line = LINE_BYTES // bits.itemsize
    for i in range(top, bottom):
        for j in range(left, right, per_line):
            _prefetch(bits, i, j)
    for j in range(left, right):
        for i in range(top, bottom, per_line):
            _prefetch(bits, j, i)


@njit(nogil=True, cache=True)
def _mirrored(bits: Array, top: int, bottom: int, left: int, right: int) -> bool:
    """Whether a tile equals its mirror image bit by bit."""
    size = BLOCK_BYTES // bits.itemsize
    last_row = top + (bottom - top) // size * size
    last_col = left + (right - left) // size * size
    different = np.zeros(size, bits.dtype)
    for i in range(top, last_row, size):
        for j in range(left, last_col, size):
            _compare_block(bits, i, j, different)
    rest = bits[top, left] ^ bits[left, top]
    for i in range(top, last_row):
        for j in range(last_col, right):
            rest |= bits[i, j] ^ bits[j, i]
    for i in range(last_row, bottom):
        for j in range(left, right):
            rest |= bits[i, j] ^ bits[j, i]
    for t in range(size):
        rest |= different[t]
    return rest == 0


@_intrinsic
def _compare_block(context: Any, bits: Any, i: Any, j: Any, different: Any) -> Any:
    """Set the bits of ``different`` where the square block at (i, j) is not the transpose of that at (j, i)."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array_type = signature.args[0]
        count = 8 * BLOCK_BYTES // array_type.dtype.bitwidth
        vector = ir.VectorType(ir.IntType(array_type.dtype.bitwidth), count)
        item_bytes = array_type.dtype.bitwidth // 8

        def rows(row: Any, col: Any) -> list[Any]:
            places = [
                _address(context, builder, signature, args, builder.add(row, _LONG(t)), col) for t in range(count)
            ]
            return [builder.load(builder.inttoptr(each, vector.as_pointer()), align=item_bytes) for each in places]

        here = rows(args[1], args[2])
        mirrored = _transposed(builder, rows(args[2], args[1]))
        found = _codegen.create_struct_proxy(signature.args[3])(context, builder, args[3])
        place = builder.inttoptr(builder.ptrtoint(found.data, _LONG), vector.as_pointer())
        total = builder.load(place, align=item_bytes)
        for each, other in zip(here, mirrored, strict=True):
            total = builder.or_(total, builder.xor(each, other))
        builder.store(total, place, align=item_bytes)
        return context.get_dummy_value()

    return types.void(bits, types.intp, types.intp, different), generate


@_intrinsic
def _prefetch(context: Any, bits: Any, i: Any, j: Any) -> Any:
    """Have the line of memory fetched that holds an entry."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = builder.inttoptr(_address(context, builder, signature, args, args[1], args[2]), _BYTE.as_pointer())
        kind = ir.FunctionType(ir.VoidType(), [_BYTE.as_pointer(), _INT, _INT, _INT])
        fetch = _codegen.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        builder.call(fetch, [place, _INT(0), _INT(2), _INT(1)])  # to be read, into the second-level cache, data
        return context.get_dummy_value()

    return types.void(bits, types.intp, types.intp), generate


def _address(context: Any, builder: Any, signature: Any, args: Any, row: Any, col: Any) -> Any:
    """Return where an entry of the first argument lies; entries of a row lie side by side."""
    array = _codegen.create_struct_proxy(signature.args[0])(context, builder, args[0])
    stride = _codegen.unpack_tuple(builder, array.strides)[0]
    begin = builder.add(builder.ptrtoint(array.data, _LONG), builder.mul(row, stride))
    return builder.add(begin, builder.mul(col, _LONG(signature.args[0].dtype.bitwidth // 8)))


def _transposed(builder: Any, rows: list[Any]) -> list[Any]:
    """Return the columns of a square of vectors: halves of it are interleaved as often as its size can be halved."""
    count = len(rows)
    half = count // 2
    order = [t // 2 + t % 2 * count for t in range(count)]
    low = ir.Constant(ir.VectorType(_INT, count), order)
    high = ir.Constant(ir.VectorType(_INT, count), [half + place for place in order])
    for _ in range(count.bit_length() - 1):
        pairs = [(rows[t], rows[t + half]) for t in range(half)]
        rows = [builder.shuffle_vector(*pair, picked) for pair in pairs for picked in (low, high)]
    return rows
