"""Digests of rows by BLAKE2b, as the standard library computes them: it hashes one row after another, in Python's time.

Source      M.-J. Saarinen and J.-P. Aumasson, The BLAKE2 cryptographic hash and message authentication code, RFC 7693
"""

from typing import Any

import numpy as np
from numba import njit

from kernelweave.backends.compiled.copies import copy_into
from kernelweave.foundation.array_types import Array, Ints

# Words of 64 bits in a block that is mixed into the state, and the bytes in a word.
BLOCK = 16
WORD = np.uint64(8)
ROUNDS = 12
START = np.array(
    [
        0x6A09E667F3BCC908,
        0xBB67AE8584CAA73B,
        0x3C6EF372FE94F82B,
        0xA54FF53A5F1D36F1,
        0x510E527FADE682D1,
        0x9B05688C2B3E6C1F,
        0x1F83D9ABFB41BD6B,
        0x5BE0CD19137E2179,
    ],
    dtype=np.uint64,
)
# One leaf, no key, and a digest of eight bytes.
PARAMETERS = np.uint64(0x01010008)
# Which word of a block is mixed in when: a line for each round, from the first again after the last.
ORDER = np.array(
    [
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
        [14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3],
        [11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4],
        [7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8],
        [9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13],
        [2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9],
        [12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11],
        [13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10],
        [6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5],
        [10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0],
    ],
    dtype=np.uint8,
)


@njit(nogil=True, cache=True)
def row_digests(rows: Array, bits: Array, widths: Ints, out: Ints) -> None:
    """Write the digest of every row: of each view the number of entries that are not zero, their places and bits.

    ``bits`` are the rows as whole numbers, ``widths`` the columns of the views that lie side by side in a row.
    """
    message = np.zeros(-(-(2 * rows.shape[1] + widths.size) // BLOCK) * BLOCK, np.uint64)
    hashed = np.empty(8, np.uint64)
    state = np.empty(2 * 8, np.uint64)
    for i in range(rows.shape[0]):
        size = _packed(rows[i], bits[i], widths, message)
        copy_into(hashed, START)
        hashed[0] ^= PARAMETERS
        for start in range(0, max(size, 1), BLOCK):
            stop = min(start + BLOCK, size)
            _mix(hashed, state, message[start : start + BLOCK], np.uint64(stop) * WORD, stop == size)
        out[i] = np.int64(hashed[0])


@njit(nogil=True, cache=True)
def _packed(row: Array, bits: Array, widths: Ints, message: Array) -> int:
    """Write what a row holds, zeros behind it up to a whole block, and return how many words it takes."""
    size = 0
    first = 0
    for width in widths:
        count = 0
        for j in range(width):
            count += row[first + j] != 0.0
        message[size] = np.uint64(count)
        place = size + 1
        for j in range(width):
            if row[first + j] != 0.0:
                message[place] = np.uint64(j)
                message[place + count] = bits[first + j]
                place += 1
        size += 1 + 2 * count
        first += width
    message[size : -(-size // BLOCK) * BLOCK] = np.uint64(0)
    return size


@njit(nogil=True, cache=True)
def _mix(hashed: Array, state: Array, block: Array, counted: Any, last: bool) -> None:
    """Mix a block into what was hashed so far; ``counted`` bytes end with it."""
    copy_into(state[:8], hashed)
    copy_into(state[8:], START)
    state[12] ^= counted
    if last:
        state[14] = ~state[14]
    for turn in range(ROUNDS):
        order = ORDER[turn % len(ORDER)]
        _stir(state, 0, 4, 8, 12, block[order[0]], block[order[1]])
        _stir(state, 1, 5, 9, 13, block[order[2]], block[order[3]])
        _stir(state, 2, 6, 10, 14, block[order[4]], block[order[5]])
        _stir(state, 3, 7, 11, 15, block[order[6]], block[order[7]])
        _stir(state, 0, 5, 10, 15, block[order[8]], block[order[9]])
        _stir(state, 1, 6, 11, 12, block[order[10]], block[order[11]])
        _stir(state, 2, 7, 8, 13, block[order[12]], block[order[13]])
        _stir(state, 3, 4, 9, 14, block[order[14]], block[order[15]])
    for place in range(8):
        hashed[place] ^= state[place] ^ state[place + 8]


@njit(nogil=True, cache=True)
def _stir(state: Array, a: int, b: int, c: int, d: int, one: Any, other: Any) -> None:
    """Mix two words into four places of the state: a column or a diagonal of it."""
    state[a] += state[b] + one
    state[d] = _turned(state[d] ^ state[a], np.uint64(32))
    state[c] += state[d]
    state[b] = _turned(state[b] ^ state[c], np.uint64(24))
    state[a] += state[b] + other
    state[d] = _turned(state[d] ^ state[a], np.uint64(16))
    state[c] += state[d]
    state[b] = _turned(state[b] ^ state[c], np.uint64(63))


@njit(nogil=True, cache=True)
def _turned(word: Any, count: Any) -> Any:
    """Return a word with its bits turned to the right."""
    return (word >> count) | (word << (np.uint64(64) - count))
