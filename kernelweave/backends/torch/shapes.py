"""Shapes of the tiles that programs of a GPU work on, as measured on an H200 (``python -m benchmarks.gpu``)."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Shape:
    """Rows and columns of a tile, features multiplied together, threads in units of 32, and tiles loaded ahead."""

    rows: int
    columns: int
    piece: int
    warps: int
    stages: int


#: Sums of all rows over some columns, in single precision.
TILE = Shape(128, 64, 128, 4, 3)
#: Sums of all pairs, each computed once: tiles are square.
ROUND_TILE = Shape(128, 128, 64, 4, 2)
#: The same three in double precision: all rows, few rows, and the pairs inside clusters.
WIDE_TILE = Shape(64, 64, 32, 4, 2)
FEW_ROWS_TILE = Shape(64, 64, 64, 4, 2)
WITHIN_TILE = Shape(64, 64, 64, 4, 2)
#: Rows of a stored kernel.
STORED_TILE = Shape(64, 128, 64, 4, 3)
#: Rows of features beside the means of clusters.
MEANS_TILE = Shape(64, 16, 32, 4, 3)
#: Programs that share the columns of few rows: some for every processor of the card.
PROGRAMS = 1024
