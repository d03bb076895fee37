"""What decides whether a file holds the right data: digests of values, whatever types and files hold them.

Number      float64, little-endian, row by row; one zero and one NaN, whatever their bits
Text        UTF-8, as a JSON list
Digest      of an array: SHA-256 of its kind, shape and values; of a set: SHA-256 of names and digests of its arrays,
            sorted by name
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from kernelweave.foundation.errors import DataError


def array_digest(array: Any) -> str:
    """Return the SHA-256 of an array of numbers or texts, in hexadecimal digits."""
    values = np.asarray(array)
    if values.dtype.kind == "U":
        kind = "text"
        payload = json.dumps(values.tolist(), ensure_ascii=False).encode()
    elif values.dtype.kind in "biuf":
        kind = "number"
        payload = _canonical(values).tobytes()
    else:
        raise DataError(f"An array of type {values.dtype} has no digest: store numbers or texts.")
    digest = hashlib.sha256(f"{kind} {list(values.shape)}\n".encode())
    digest.update(payload)
    return digest.hexdigest()


def content_digest(arrays: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a set: of the names of its arrays and their digests."""
    lines = (f"{name} {array_digest(arrays[name])}\n" for name in sorted(arrays))
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def _canonical(values: np.ndarray) -> np.ndarray:
    numbers = values.astype("<f8", order="C")
    numbers += 0.0  # -0.0 becomes 0.0
    numbers[np.isnan(numbers)] = np.nan
    return numbers
