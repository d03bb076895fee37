"""How kernels that are computed tile by tile stay within a limit of memory."""

from dataclasses import dataclass

from kernelweave.foundation.memory import batches_within

# Rows of a tile, and its columns where nothing limits them: 2048 x 256 float64 numbers take 4 MiB. Tiles are high and
# narrow: threads own columns, so that narrow ones keep many threads busy to the end, and a tile takes a millisecond or
# more, beside which the interpreter, which all threads share, hardly counts.
ROWS = 2048
MOST_COLUMNS = 256
LEAST_COLUMNS = 16
# Most columns of a tile of few rows.
WIDEST = 2048
# Ranges of rows that keep the cores of a workstation busy.
PIECES = 16
# Values of a stored kernel that are read while one is computed, at least: of a Gaussian of ten features four to seven.
READ_MEANWHILE = 4
# Features up to which sums in one go are quicker than tiles: with more, products take most of the time, and BLAS is
# quicker at large ones. Both were level at 60 to 100 features where they were timed.
FEW_FEATURES = 64
# A formula may hold two tiles until it has computed one.
TILES_HELD = 2


@dataclass(frozen=True)
class Tiling:
    """Columns of a tile, and how many tiles are computed at a time."""

    columns: int
    most_at_once: int


def tiling_within(limit: float, taken: float = 0.0) -> Tiling:
    """Return tiles of which so many are computed at a time as fit into ``limit`` MiB; always one.

    ``taken`` is what samples that are copied to compute a tile take, in MiB.
    """
    batches = batches_within(limit, ROWS * 8 * TILES_HELD, MOST_COLUMNS, LEAST_COLUMNS)
    each = batches.size * ROWS * 8 * TILES_HELD / 2**20 + taken
    return Tiling(batches.size, max(1, min(batches.at_once, int(min(limit / each, 2**31)))))
