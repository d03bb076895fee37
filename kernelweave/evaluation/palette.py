"""Colours and shapes of clusters, the same in the report and in the pictures.

A cluster has a colour and a shape: colour c modulo 20, shape c modulo 7. The two numbers have no common divisor, so
that a pair comes back after 140 clusters only.

The first six colours are those of Okabe and Ito. Twenty colours cannot all differ for people who do not see all of
them; those that look the same to them have different shapes. Distances between colours (Euclidean in Oklab, where 0.02
is about the least that an eye sees) are at least 0.08 for any two, and at least 0.09 for any two of one shape also as
seen without red, green or blue receptors (Machado, Oliveira and Fernandes 2009); ``tests/evaluation/test_palette.py``
measures both.
"""

#: Colours on white.
LIGHT = (
    "#0072b2",  # blue
    "#e69f00",  # orange
    "#009e73",  # green
    "#cc79a7",  # pink
    "#56b4e9",  # sky
    "#d55e00",  # vermilion
    "#6b6b6b",  # grey
    "#e3b08f",  # tan
    "#a592f2",  # lavender
    "#1f2f86",  # navy
    "#9aa800",  # lime
    "#d63fc0",  # magenta
    "#7a1f5c",  # plum
    "#2f9e1f",  # leaf
    "#857f52",  # khaki
    "#8a5a2b",  # brown
    "#3fbfae",  # turquoise
    "#0b5345",  # pine
    "#b3123f",  # crimson
    "#6a3fb5",  # violet
)

#: The same on a dark ground.
DARK = (
    "#3f93d2",
    "#eeb03a",
    "#2fb98f",
    "#dc95bc",
    "#93d3f7",
    "#f07f3c",
    "#a3a9b2",
    "#f0bfa4",
    "#bdb0fb",
    "#5a72ea",
    "#c3d13c",
    "#ee6bdc",
    "#b8569a",
    "#5cc84a",
    "#f4eec0",
    "#b5814e",
    "#5fe0cf",
    "#2f8f80",
    "#ee5377",
    "#9a78ea",
)

#: Shapes as markers of matplotlib.
MARKERS = ("o", "s", "^", "D", "v", "P", "X")

#: The same shapes as paths of SVG around the origin, about eight units wide.
PATHS = (
    "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0Z",  # circle
    "M-3.5-3.5h7v7h-7Z",  # square
    "M0-4.6L4.4 3.4H-4.4Z",  # triangle
    "M0-5L5 0L0 5L-5 0Z",  # diamond
    "M0 4.6L4.4-3.4H-4.4Z",  # triangle, tip down
    "M-1.6-4.6h3.2v3h3v3.2h-3v3h-3.2v-3h-3v-3.2h3Z",  # plus
    "M-4.4-2.4L-2.4-4.4L0-2L2.4-4.4L4.4-2.4L2 0L4.4 2.4L2.4 4.4L0 2L-2.4 4.4L-4.4 2.4L-2 0Z",  # cross
)

N_COLOURS = len(LIGHT)
N_SHAPES = len(PATHS)


def colour_index(c: int) -> int:
    """Return the place of a cluster's colour in ``LIGHT`` and ``DARK``."""
    return c % N_COLOURS


def shape_index(c: int) -> int:
    """Return the place of a cluster's shape in ``MARKERS`` and ``PATHS``."""
    return c % N_SHAPES
