"""Numbers along an axis. This module needs matplotlib and is loaded when a picture is drawn."""

import re
from typing import Any

from matplotlib.ticker import ScalarFormatter

# Numbers of more digits than this get a power of ten above the axis instead.
MOST_DIGITS = 9


class Separated(ScalarFormatter):
    """Numbers as matplotlib writes them, with separators between thousands."""

    def __init__(self) -> None:
        super().__init__(useMathText=False)
        self.set_powerlimits((-4, MOST_DIGITS))

    def __call__(self, x: float, pos: Any = None) -> str:
        """Return the text of a tick."""
        whole, dot, rest = super().__call__(x, pos).partition(".")
        return re.sub(r"(?<=\d)(?=(\d{3})+$)", ",", whole) + dot + rest
