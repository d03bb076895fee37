"""Rows of a block that are loaded only if they are read, and no longer kept than the program that reads them."""

from collections.abc import Callable
from typing import Any

import numpy as np

from kernelweave.foundation.array_types import Array


class Opened:
    """Some rows that a function loads. Choosing none of them loads nothing."""

    def __init__(self, load: Callable[[], Array], rows: int, width: int) -> None:
        self.shape = (rows, width)
        self._load = load
        self._rows: Array | None = None

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: Any) -> Array:
        if isinstance(index, np.ndarray) and index.size == 0:
            return np.empty((0, self.shape[1]))
        return np.asarray(self._loaded()[index])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.array(self._loaded(), dtype=dtype, copy=copy)

    def _loaded(self) -> Array:
        if self._rows is None:
            self._rows = self._load()
        return self._rows
