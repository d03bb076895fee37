"""Names for the arrays that travel between layers."""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
# Samples or a kernel: a dense array or a CSR matrix.
Matrix: TypeAlias = Any
Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.intp]
Bools: TypeAlias = NDArray[np.bool_]
# An index of rows or columns: integers or a slice.
Index: TypeAlias = NDArray[np.intp] | slice
