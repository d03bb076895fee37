"""Data with a known number of clusters, and data without any, for rules that choose the number without labels.

A recipe makes one case from a seed. Its name, size and truth are fixed; the seed changes the draw. The distance between
the closest centres is stated in standard deviations of the noise. It grows with the fourth root of the number of
columns, as the spread of distances within a cluster does. No case was chosen or changed for what a rule made of it.
"""

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from scipy import sparse

#: What can truly be said of a view, as ``Remark.kind``.
NO_GROUPS = "shows no groups"
OWN_GROUPS = "has groups of its own"
ONE_VIEW = "has the clusters alone"
NOT_TOGETHER = "has groups, but not together"

Recipe = Callable[[int], "Case"]


@dataclass(frozen=True)
class Remark:
    """A warning that would be true: its kind and the view it is about, counted from one."""

    kind: str
    view: int


@dataclass(frozen=True, eq=False)
class Case:
    """Views or one graph, with what there is to be found in them.

    ``n_clusters`` is 1 where there are no clusters and None where the number is open. ``expected_warnings`` lists every
    true remark, the most important first. ``informative`` holds, per view, the columns that tell the clusters apart.
    """

    name: str
    group: str
    n_clusters: int | None
    labels: np.ndarray | None
    views: list = field(default_factory=list)
    graph: sparse.csr_array | None = None
    expected_warnings: tuple[Remark, ...] = ()
    informative: tuple[np.ndarray, ...] = ()

    @property
    def n_samples(self) -> int:
        return (self.views[0] if self.graph is None else self.graph).shape[0]


@dataclass(frozen=True)
class Table:
    """One view: columns that show the clusters (or some of them, or none), and columns of noise beside them."""

    informative: int = 0
    noise: int = 0
    separation: float = 5.0  # between the closest centres, in standard deviations of the noise
    tails: str = "normal"  # of the noise in the informative columns
    beside: str = "normal"  # of the columns of noise
    markers: float = 1.0  # share of the informative columns in which a cluster differs from the rest
    groups: tuple[int, ...] | None = None  # group of every cluster in this view; None where all are apart
    own: int = 0  # number of groups that have nothing to do with the clusters
    scale: float = 1.0
    units: bool = False  # every column in a unit of its own


def _rng(seed: int, name: str) -> np.random.Generator:
    return np.random.default_rng([seed, zlib.crc32(name.encode())])


# --- Clusters ---------------------------------------------------------------------------------------------------------


def draw_labels(rng, n, k, ratio=1.0):
    """Return shuffled labels whose largest cluster holds about ``ratio`` times as many samples as the smallest."""
    shares = ratio ** np.linspace(0.0, 1.0, k)
    bounds = np.rint(n * np.cumsum(shares) / shares.sum()).astype(int)
    return rng.permutation(np.searchsorted(bounds, np.arange(n), side="right"))


def pairwise(points):
    """Return the distances between different points."""
    rows, columns = np.triu_indices(len(points), 1)
    return np.linalg.norm(points[rows] - points[columns], axis=1)


def draw_centres(rng, k, d, distance, markers=1.0, draws=50):
    """Return k centres, the closest two at ``distance``: the most even of several draws, so that none lies far out."""

    def draw():
        return rng.normal(size=(k, d)) * (rng.random((k, d)) < markers)

    def evenness(points):
        apart = pairwise(points)
        return apart.min() / apart.mean()

    best = max((draw() for _ in range(draws)), key=evenness)
    return best * (distance / pairwise(best).min())


def draw_noise(rng, n, d, kind="normal"):
    """Return noise of standard deviation one in every column."""
    if kind == "normal":
        return rng.normal(size=(n, d))
    if kind == "heavy":  # every value by itself
        return rng.standard_t(3, size=(n, d)) / np.sqrt(3.0)
    if kind == "heavy rows":  # whole samples lie far out
        return rng.normal(size=(n, d)) * np.sqrt(5.0 / rng.chisquare(5, size=(n, 1))) / np.sqrt(5.0 / 3.0)
    if kind == "correlated":  # three factors carry six tenths of the variance
        loadings = rng.normal(size=(3, d))
        loadings *= np.sqrt(0.6) / np.linalg.norm(loadings, axis=0)
        return rng.normal(size=(n, 3)) @ loadings + np.sqrt(0.4) * rng.normal(size=(n, d))
    raise ValueError(f"There is no noise named {kind!r}.")


def draw_table(rng, table, labels):
    """Return one view and the columns of it that tell the clusters apart."""
    n = len(labels)
    d = table.informative + table.noise
    X = np.hstack(
        [draw_noise(rng, n, table.informative, table.tails), draw_noise(rng, n, table.noise, table.beside)],
    )
    if table.informative:
        groups = labels if table.groups is None else np.array(table.groups)[labels]
        if table.own:
            groups = draw_labels(rng, n, table.own)
        distance = table.separation * max(1.0, d / 5.0) ** 0.25
        centres = draw_centres(rng, groups.max() + 1, table.informative, distance, table.markers)
        X[:, : table.informative] += centres[groups]
    columns = rng.permutation(d)
    X = X[:, columns]
    if table.units:
        X = (X + rng.uniform(0, 20, size=d)) * 10.0 ** rng.uniform(-2, 3, size=d)
    shown = np.flatnonzero(columns < table.informative)
    return X * table.scale, shown[:0] if table.own else shown


def true_remarks(tables):
    """Return what can truly be said of the views, a remark on the clusters as a whole first."""
    with_clusters = [v for v, table in enumerate(tables, 1) if table.informative and not table.own]
    independent = [v for v, table in enumerate(tables, 1) if table.own]
    empty = [v for v, table in enumerate(tables, 1) if not table.informative]
    remarks = [] if with_clusters else [Remark(NOT_TOGETHER, v) for v in independent]
    remarks += [Remark(OWN_GROUPS, v) for v in independent]
    if len(with_clusters) == 1 and len(empty) == len(tables) - 1 > 0:
        remarks.append(Remark(ONE_VIEW, with_clusters[0]))
    return (*remarks, *(Remark(NO_GROUPS, v) for v in empty))


def _tables(seed, name, group, k, n, tables, ratio=1.0):
    rng = _rng(seed, name)
    labels = draw_labels(rng, n, 1 if k is None else k, ratio)
    drawn = [draw_table(rng, table, labels) for table in tables]
    return Case(
        name,
        group,
        k,
        None if k is None else labels,
        views=[X for X, _ in drawn],
        expected_warnings=true_remarks(tables),
        informative=tuple(shown for _, shown in drawn),
    )


# --- Counts -----------------------------------------------------------------------------------------------------------


def draw_lengths(rng, n, typical):
    return np.maximum(20, rng.lognormal(np.log(typical), 0.4, size=n)).astype(int)


def zipf(rng, n_words):
    frequencies = 1.0 / (np.arange(n_words) + 5.0)
    return rng.permutation(frequencies / frequencies.sum())


def draw_documents(rng, labels, n_words, length, boost=8.0, share=0.1):
    """Return word counts; a topic uses its own tenth of the words ``boost`` times as often."""
    favoured = rng.random((labels.max() + 1, n_words)) < share
    topics = zipf(rng, n_words) * np.where(favoured, boost, 1.0)
    topics /= topics.sum(axis=1, keepdims=True)
    counts = rng.multinomial(draw_lengths(rng, len(labels), length), topics[labels])
    return sparse.csr_array(counts.astype(float))


def draw_counts(rng, labels, d, boost=4.0, share=0.2):
    """Return Poisson counts of samples measured to different depths, as counts of molecules are."""
    rates = rng.gamma(1.0, 3.0, size=d)
    favoured = rng.random((labels.max() + 1, d)) < share
    depths = rng.lognormal(0.0, 0.3, size=(len(labels), 1))
    return rng.poisson(depths * (rates * np.where(favoured, boost, 1.0))[labels]).astype(float)


def _texts(seed, name, k, n, widths, length, ratio=1.0):
    rng = _rng(seed, name)
    labels = draw_labels(rng, n, k, ratio)
    views = [draw_documents(rng, labels, width, length) for width in widths]
    return _plain(name, k, labels, views)


def _counts(seed, name, k, n, widths, ratio=1.0):
    rng = _rng(seed, name)
    labels = draw_labels(rng, n, k, ratio)
    return _plain(name, k, labels, [draw_counts(rng, labels, width) for width in widths])


def _plain(name, k, labels, views):
    columns = tuple(np.arange(X.shape[1]) for X in views)
    return Case(name, "synthetic", k, labels, views=views, informative=columns)


# --- Shapes -----------------------------------------------------------------------------------------------------------


def rotation(rng, d):
    Q, R = np.linalg.qr(rng.normal(size=(d, d)))
    return Q * np.sign(np.diag(R))


def moons(rng, labels, noise):
    """Return pairs of half circles, each hooked into the other; a new pair lies beside the last."""
    angle = rng.uniform(0, np.pi, size=len(labels))
    upper = labels % 2 == 0
    x = np.where(upper, np.cos(angle), 1 - np.cos(angle)) + 4.5 * (labels // 2)
    y = np.where(upper, np.sin(angle), 0.5 - np.sin(angle))
    return np.column_stack([x, y]) + noise * rng.normal(size=(len(labels), 2))


def rings(rng, labels, noise):
    """Return circles about one centre, of radius 1, 2, ..."""
    angle = rng.uniform(0, 2 * np.pi, size=len(labels))
    radius = 1.0 + labels
    circle = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
    return circle + noise * rng.normal(size=(len(labels), 2))


def core_and_ring(rng, labels, noise):
    """Return a round cluster (label 0) with a circle of radius 2 about it."""
    angle = rng.uniform(0, 2 * np.pi, size=len(labels))
    circle = np.where(labels > 0, 2.0, 0.0)[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    spread = np.where(labels > 0, noise, 0.3)[:, None]
    return circle + spread * rng.normal(size=(len(labels), 2))


def _shapes(seed, name, shape, k, n, noise, columns=(2,), ratio=1.0):
    """Draw the shape anew for every view and turn it into that many columns, with a little noise in each."""
    rng = _rng(seed, name)
    labels = draw_labels(rng, n, k, ratio)
    views = []
    for d in columns:
        X = shape(rng, labels, noise)
        views.append(X if d == 2 else X @ rotation(rng, d)[:2] + 0.5 * noise * rng.normal(size=(n, d)))
    return _plain(name, k, labels, views)


def _elongated(seed, name, k, n, d, length, separation, parallel, ratio=1.0):
    """Draw clusters that are ``length`` times as long in one direction as in the others."""
    rng = _rng(seed, name)
    labels = draw_labels(rng, n, k, ratio)
    long_axes = np.tile(np.eye(d)[0], (k, 1)) if parallel else rng.normal(size=(k, d))
    long_axes /= np.linalg.norm(long_axes, axis=1, keepdims=True)
    centres = draw_centres(rng, k, d, separation)
    if parallel:  # side by side, like sticks
        centres = separation * np.outer(np.arange(k), np.eye(d)[1])
    along = rng.normal(size=(n, 1)) * np.sqrt(length**2 - 1.0)
    X = centres[labels] + along * long_axes[labels] + rng.normal(size=(n, d))
    return _plain(name, k, labels, [X @ rotation(rng, d)])


# --- Synthetic cases --------------------------------------------------------------------------------------------------


def _describe(family, k, n, size, ratio=1.0):
    unequal = "" if ratio == 1.0 else f", sizes 1:{ratio:g}"
    clusters = "k open" if k is None else f"k={k}"
    return f"{family}, {clusters}, n={n}, {size}{unequal}"


def _columns(widths):
    return f"d={'+'.join(map(str, widths))}"


def _add(recipes, family, make, k, n, widths, ratio=1.0, /, **options):
    name = _describe(family, k, n, _columns(widths), ratio)
    if name in recipes:
        raise ValueError(f"Two cases are named {name!r}.")
    recipes[name] = partial(make, name=name, k=k, n=n, ratio=ratio, **options)


def _synthetic_recipes() -> dict[str, Recipe]:
    recipes: dict[str, Recipe] = {}

    def tables(family, k, n, *views, ratio=1.0):
        widths = [view.informative + view.noise for view in views]
        _add(recipes, family, _tables, k, n, widths, ratio, tables=views, group="synthetic")

    tables("blobs", 2, 150, Table(2))
    tables("blobs", 3, 300, Table(2), ratio=3)
    tables("blobs", 4, 400, Table(3))
    tables("blobs", 5, 500, Table(5), ratio=5)
    tables("blobs", 6, 600, Table(2, separation=6))
    tables("blobs", 7, 700, Table(10))
    tables("blobs", 8, 800, Table(6), ratio=3)
    tables("blobs", 9, 450, Table(12))
    tables("blobs", 10, 1000, Table(20))
    tables("blobs", 11, 1100, Table(8), ratio=2)
    tables("blobs", 12, 1500, Table(15))

    tables("wide", 2, 150, Table(500))
    tables("wide", 3, 200, Table(2000))
    tables("wide", 4, 200, Table(1000, markers=0.1), ratio=3)
    tables("wide", 6, 300, Table(1500, markers=0.05))
    tables("wide", 8, 400, Table(800))
    tables("wide", 5, 250, Table(300, 1200))

    tables("noise columns", 2, 300, Table(3, 7))
    tables("noise columns", 4, 400, Table(10, 30))
    tables("noise columns", 5, 600, Table(20, 100), ratio=4)
    tables("noise columns", 7, 500, Table(15, 35))
    tables("noise columns", 3, 180, Table(50, 450))

    tables("correlated noise columns", 3, 300, Table(10, 10, beside="correlated"))
    tables("correlated noise columns", 6, 600, Table(20, 20, beside="correlated"), ratio=3)
    tables("correlated noise in the clusters", 4, 400, Table(40, tails="correlated"))
    tables("correlated noise in the clusters", 9, 900, Table(100, tails="correlated"))

    tables("heavy tails", 2, 250, Table(2, tails="heavy", separation=6))
    tables("heavy tails", 4, 400, Table(10, tails="heavy"))
    tables("heavy tails", 7, 700, Table(30, 10, tails="heavy", beside="heavy"), ratio=3)
    tables("heavy rows", 3, 300, Table(20, tails="heavy rows"))
    tables("heavy rows", 5, 350, Table(200, tails="heavy rows"))

    tables("agreeing views", 2, 200, Table(5), Table(8))
    tables("agreeing views", 3, 300, Table(10), Table(10), Table(10), ratio=5)
    tables("agreeing views", 5, 400, Table(20, separation=4), Table(30, separation=4))
    tables("agreeing views", 8, 640, Table(10), Table(20), Table(30), Table(40))
    tables("agreeing views", 10, 800, Table(15), Table(25), ratio=3)
    tables("agreeing views", 12, 960, Table(20), Table(20), Table(20))

    tables("clinical and expression", 3, 200, Table(10, units=True), Table(1500, markers=0.1))
    tables("clinical and expression", 4, 250, Table(10, units=True, tails="heavy"), Table(300, 1200), ratio=3)
    tables("widths and scales", 5, 500, Table(4, scale=1e4), Table(200, scale=1e-3))
    tables("widths and scales", 6, 420, Table(6, scale=1e-4), Table(50), Table(1000, scale=100.0))
    tables("widths and scales", 2, 160, Table(2, scale=1e6), Table(800, markers=0.2))

    tables("one view of noise", 2, 300, Table(6), Table(12), Table(0, 20))
    tables("one view of noise", 4, 400, Table(20), Table(0, 50), Table(30), ratio=3)
    tables("one view of noise", 6, 600, Table(0, 10, beside="correlated"), Table(10), Table(10))
    tables("one view of noise", 5, 300, Table(300), Table(100), Table(0, 1000))
    tables("one view of noise", 9, 720, Table(25), Table(25), Table(0, 25, beside="heavy"))

    _add(recipes, "texts", _texts, 3, 300, (2000,), length=60, widths=(2000,))
    _add(recipes, "texts", _texts, 6, 600, (1500,), 3, length=100, widths=(1500,))
    _add(recipes, "texts", _texts, 10, 1000, (1200,), length=120, widths=(1200,))
    _add(recipes, "texts", _texts, 5, 350, (900, 1800), length=50, widths=(900, 1800))
    _add(recipes, "counts", _counts, 4, 400, (60,), widths=(60,))
    _add(recipes, "counts", _counts, 8, 640, (300,), 4, widths=(300,))

    _add(recipes, "moons", _shapes, 2, 300, (2,), shape=moons, noise=0.08)
    _add(recipes, "moons", _shapes, 4, 600, (2, 2), shape=moons, noise=0.08, columns=(2, 2))
    _add(recipes, "moons", _shapes, 2, 400, (20,), 2, shape=moons, noise=0.06, columns=(20,))
    _add(recipes, "rings", _shapes, 3, 900, (2,), 3, shape=rings, noise=0.08)
    _add(recipes, "core and ring", _shapes, 2, 400, (2,), 3, shape=core_and_ring, noise=0.12)

    _add(recipes, "sticks", _elongated, 2, 300, (2,), d=2, length=6.0, separation=7.0, parallel=True)
    _add(recipes, "sticks", _elongated, 3, 600, (3,), 2, d=3, length=5.0, separation=8.0, parallel=True)
    _add(recipes, "elongated", _elongated, 5, 500, (10,), d=10, length=5.0, separation=12.0, parallel=False)
    _add(recipes, "elongated", _elongated, 8, 960, (6,), d=6, length=4.0, separation=12.0, parallel=False)

    tables(
        "no view has all", 3, 300, Table(6, separation=6, groups=(0, 1, 1)), Table(8, separation=6, groups=(0, 0, 1))
    )
    tables("no view has all", 4, 400, Table(10, groups=(0, 1, 2, 2)), Table(20, groups=(0, 0, 1, 2)), ratio=2)
    halves = ((0, 0, 1, 1), (0, 1, 0, 1))
    tables("no view has all", 4, 320, *(Table(5, separation=6, groups=groups) for groups in halves))
    split = ((0, 0, 1, 2, 3), (0, 1, 1, 2, 3), (0, 1, 2, 2, 3))
    tables("no view has all", 5, 500, *(Table(15, groups=groups) for groups in split))
    split = ((0, 0, 1, 1, 2, 3), (0, 1, 1, 2, 3, 3), (0, 1, 2, 3, 3, 2))
    tables("no view has all", 6, 480, *(Table(10, groups=groups) for groups in split))
    return recipes


# --- No clusters ------------------------------------------------------------------------------------------------------


def gaussian(rng, n, d):
    return rng.normal(size=(n, d))


def few_factors(rng, n, d, factors=2):
    """Return a Gaussian that lies close to a plane of few dimensions."""
    return rng.normal(size=(n, factors)) @ rng.normal(size=(factors, d)) + 0.4 * rng.normal(size=(n, d))


def cube(rng, n, d):
    return rng.random((n, d))


def sphere(rng, n, d):
    X = rng.normal(size=(n, d))
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def heavy_tails(rng, n, d):
    return rng.standard_t(3, size=(n, d))


def skewed(rng, n, d):
    return rng.lognormal(0.0, 1.0, size=(n, d))


def grades(rng, n, d):
    """Return whole numbers from 0 to 4, as answers to questions on one matter are."""
    return np.clip(np.rint(2.0 + 0.5 * rng.normal(size=(n, 1)) + rng.normal(size=(n, d))), 0, 4)


def yes_or_no(rng, n, d):
    return (rng.random((n, d)) < rng.uniform(0.2, 0.8, size=d)).astype(float)


def words(rng, n, d):
    """Return word counts of documents that all speak of the same."""
    counts = rng.multinomial(draw_lengths(rng, n, 100), zipf(rng, d), size=n)
    return sparse.csr_array(counts.astype(float))


def curve(rng, n, d):
    """Return points along three quarters of a circle, turned into d columns."""
    angle = rng.uniform(0, 1.5 * np.pi, size=n)
    circle = np.column_stack([np.cos(angle), np.sin(angle)])
    return circle @ rotation(rng, d)[:2] + 0.08 * rng.normal(size=(n, d))


def gradient(rng, n, d):
    """Return columns that rise and fall, early or late, with the place of a sample on one line."""
    place = rng.uniform(-1, 1, size=(n, 1))
    turn = rng.uniform(-1.5, 1.5, size=d)
    return rng.normal(size=d) * np.tanh(place - turn) + 0.3 * rng.normal(size=(n, d))


def one_view(shape):
    return lambda rng, n, widths: [shape(rng, n, width) for width in widths]


def independent_views(*shapes):
    return lambda rng, n, widths: [shape(rng, n, d) for shape, d in zip(shapes, widths, strict=True)]


def correlated_views(rng, n, widths):
    """Return views of one Gaussian that share half their variance."""
    shared = rng.normal(size=(n, 8))
    return [shared @ rng.normal(size=(8, d)) / np.sqrt(8.0) + rng.normal(size=(n, d)) for d in widths]


def _null(seed, name, group, draw, n, widths):
    views = draw(_rng(seed, name), n, widths)
    remarks = tuple(Remark(NO_GROUPS, v) for v in range(1, len(views) + 1)) if len(views) > 1 else ()
    return Case(name, group, 1, np.zeros(n, dtype=int), views=views, expected_warnings=remarks)


def _null_recipes() -> dict[str, Recipe]:
    settings = [
        ("gaussian", one_view(gaussian), 100, (2,)),
        ("gaussian", one_view(gaussian), 500, (10,)),
        ("gaussian", one_view(gaussian), 1500, (50,)),
        ("gaussian", one_view(gaussian), 200, (1000,)),
        ("few factors", one_view(few_factors), 400, (30,)),
        ("few factors", one_view(partial(few_factors, factors=3)), 300, (500,)),
        ("few factors", one_view(partial(few_factors, factors=1)), 800, (12,)),
        ("cube", one_view(cube), 300, (2,)),
        ("cube", one_view(cube), 1000, (5,)),
        ("sphere", one_view(sphere), 600, (3,)),
        ("sphere", one_view(sphere), 300, (10,)),
        ("heavy tails", one_view(heavy_tails), 400, (5,)),
        ("heavy tails", one_view(heavy_tails), 250, (60,)),
        ("skewed", one_view(skewed), 500, (8,)),
        ("skewed", one_view(skewed), 200, (200,)),
        ("grades", one_view(grades), 400, (12,)),
        ("yes or no", one_view(yes_or_no), 500, (20,)),
        ("words", one_view(words), 300, (800,)),
        ("words", one_view(words), 900, (1000,)),
        ("curve", one_view(curve), 500, (2,)),
        ("gradient", one_view(gradient), 300, (200,)),
        ("independent gaussians", one_view(gaussian), 400, (10, 50, 200)),
        ("independent views", independent_views(skewed, yes_or_no, cube), 350, (20, 30, 4)),
        ("correlated views", correlated_views, 600, (30, 60)),
    ]
    recipes: dict[str, Recipe] = {}
    for family, draw, n, widths in settings:
        name = _describe(family, 1, n, _columns(widths))
        recipes[name] = partial(_null, name=name, group="null", draw=draw, n=n, widths=widths)
    return recipes


#: Shapes that :func:`noise` takes in turns, with widths to choose from.
NOISE = (
    ("gaussian", one_view(gaussian), ((2,), (20,), (300,))),
    ("few factors", one_view(few_factors), ((10,), (40,), (200,))),
    ("cube", one_view(cube), ((2,), (4,), (15,))),
    ("sphere", one_view(sphere), ((3,), (6,), (20,))),
    ("heavy tails", one_view(heavy_tails), ((3,), (10,), (50,))),
    ("skewed", one_view(skewed), ((4,), (12,), (80,))),
    ("grades", one_view(grades), ((8,), (15,), (40,))),
    ("yes or no", one_view(yes_or_no), ((15,), (30,), (60,))),
    ("words", one_view(words), ((500,), (800,), (1500,))),
    ("curve", one_view(curve), ((2,), (3,), (8,))),
    ("gradient", one_view(gradient), ((20,), (60,), (200,))),
    ("independent gaussians", one_view(gaussian), ((5, 10), (20, 20, 20), (8, 200))),
    ("independent views", independent_views(heavy_tails, cube), ((5, 3), (10, 10), (60, 5))),
    ("correlated views", correlated_views, ((10, 10), (30, 60), (20, 20, 20))),
)


def noise(seed: int) -> Case:
    """Return one draw without clusters, of 100 to 400 samples; following seeds have different shapes."""
    family, draw, choices = NOISE[seed % len(NOISE)]
    rng = _rng(seed, "noise")
    n = int(rng.integers(100, 401))
    widths = choices[rng.integers(len(choices))]
    name = f"draw {seed}: {_describe(family, 1, n, _columns(widths))}"
    return _null(seed, name, "noise", draw, n, widths)


# --- Graphs -----------------------------------------------------------------------------------------------------------


def power_law(rng, n, least, most, exponent=2.5):
    """Return expected degrees that fall off as a power between two bounds."""
    low = least ** (1.0 - exponent)
    high = most ** (1.0 - exponent)
    return (low + rng.random(n) * (high - low)) ** (1.0 / (1.0 - exponent))


def draw_graph(rng, chances):
    """Return a graph with each link drawn by its own chance, and the nodes that have a link at all."""
    linked = np.triu(rng.random(chances.shape) < chances, 1)
    A = linked | linked.T
    kept = np.flatnonzero(A.any(axis=1))
    return sparse.csr_array(A[np.ix_(kept, kept)].astype(float)), kept


def _block_model(seed, name, k, n, degree, strength, ratio=1.0, heterogeneous=False):
    """Draw a block model in which a share ``strength`` of the links is bound to the block, the rest goes anywhere.

    That share is the second eigenvalue of the expected random walk: blocks of nodes of equal degree can be detected
    where degree times strength squared is above one.
    """
    rng = _rng(seed, name)
    labels = draw_labels(rng, n, k, ratio)
    degrees = power_law(rng, n, 0.5 * degree, 6.0 * degree) if heterogeneous else np.ones(n)
    degrees *= degree / degrees.mean()
    of_block = np.bincount(labels, weights=degrees)
    same = labels[:, None] == labels
    chances = np.outer(degrees, degrees) * ((1 - strength) / degrees.sum() + strength * same / of_block[labels])
    graph, kept = draw_graph(rng, np.minimum(chances, 1.0))
    return Case(name, "graph", k, labels[kept], graph=graph)


def _random_graph(seed, name, n, degree):
    rng = _rng(seed, name)
    graph, kept = draw_graph(rng, np.full((n, n), degree / (n - 1)))
    return Case(name, "graph", 1, np.zeros(len(kept), dtype=int), graph=graph)


def _configuration_model(seed, name, n, least, most):
    """Deal the ends of links at random to nodes of power-law degree; loops and repeats are dropped."""
    rng = _rng(seed, name)
    degrees = np.rint(power_law(rng, n, least, most)).astype(int)
    ends = rng.permutation(np.repeat(np.arange(n), degrees))
    ends = ends[: len(ends) // 2 * 2].reshape(2, -1)
    ends = ends[:, ends[0] != ends[1]]
    A = sparse.csr_array((np.ones(ends.shape[1]), tuple(ends)), shape=(n, n))
    A = A + A.T
    A.data[:] = 1.0
    kept = np.flatnonzero(A.sum(axis=1))
    return Case(name, "graph", 1, np.zeros(len(kept), dtype=int), graph=A[kept][:, kept])


def _graph_recipes() -> dict[str, Recipe]:
    blocks = [  # k, n, mean degree, strength, ratio of the sizes, heterogeneous degrees
        (2, 200, 10, 0.8, 1, False),
        (2, 600, 12, 0.7, 3, True),
        (3, 300, 12, 0.75, 1, False),
        (3, 450, 15, 0.7, 4, False),
        (4, 400, 12, 0.75, 1, True),
        (4, 1000, 16, 0.65, 1, False),
        (5, 500, 14, 0.75, 2, False),
        (5, 800, 20, 0.7, 3, True),
        (6, 600, 15, 0.75, 1, False),
        (7, 700, 16, 0.75, 3, False),
        (8, 800, 18, 0.75, 1, True),
        (8, 1200, 24, 0.65, 1, False),
        (9, 900, 20, 0.75, 2, False),
        (10, 1000, 20, 0.8, 1, False),
    ]
    recipes: dict[str, Recipe] = {}
    for k, n, degree, strength, ratio, heterogeneous in blocks:
        family = "blocks of uneven degrees" if heterogeneous else "blocks"
        name = _describe(family, k, n, f"degree={degree}", ratio)
        options = {"degree": degree, "strength": strength, "ratio": ratio, "heterogeneous": heterogeneous}
        recipes[name] = partial(_block_model, name=name, k=k, n=n, **options)
    for n, degree in ((500, 8), (1000, 20)):
        name = _describe("random graph", 1, n, f"degree={degree}")
        recipes[name] = partial(_random_graph, name=name, n=n, degree=degree)
    for n, least, most in ((400, 5, 50), (900, 3, 90)):
        name = _describe("configuration model", 1, n, f"degrees {least} to {most}")
        recipes[name] = partial(_configuration_model, name=name, n=n, least=least, most=most)
    return recipes


# --- Views that deserve a warning -------------------------------------------------------------------------------------


def _warning_recipes() -> dict[str, Recipe]:
    recipes: dict[str, Recipe] = {}

    def tables(family, k, n, *views, ratio=1.0):
        widths = [view.informative + view.noise for view in views]
        _add(recipes, family, _tables, k, n, widths, ratio, tables=views, group="warnings")

    tables("a view without groups", 2, 200, Table(4), Table(6), Table(0, 10))
    tables("a view without groups", 3, 300, Table(20), Table(0, 40, beside="correlated"), Table(20))
    tables("a view without groups", 4, 400, Table(0, 200), Table(30), Table(50), ratio=3)
    tables("a view without groups", 5, 350, Table(10), Table(10), Table(10), Table(0, 30, beside="heavy"))
    tables("a view without groups", 6, 480, Table(300, markers=0.1), Table(15), Table(0, 8))
    tables("a view without groups", 8, 640, Table(20), Table(0, 100), Table(40))

    tables("a view with other groups", 2, 300, Table(8), Table(10), Table(6, own=3))
    tables("a view with other groups", 3, 360, Table(10), Table(10, own=4), Table(10))
    tables("a view with other groups", 4, 400, Table(20), Table(30), Table(20, own=4))
    tables("a view with other groups", 5, 500, Table(10), Table(15), Table(20), Table(15, own=3))
    tables("a view with other groups", 4, 300, Table(8, own=6), Table(100), Table(60))
    tables("a view with other groups", 6, 420, Table(20), Table(20), Table(20), Table(20, own=5), ratio=2)

    tables("clusters of one view", 2, 200, Table(4), Table(0, 10))
    tables("clusters of one view", 3, 300, Table(10), Table(0, 10), Table(0, 10))
    tables("clusters of one view", 4, 400, Table(30), Table(0, 30), Table(0, 60, beside="correlated"))
    tables("clusters of one view", 5, 350, Table(200), Table(0, 20))
    tables("clusters of one view", 6, 480, Table(15), Table(0, 15, beside="heavy"), ratio=2)
    tables("clusters of one view", 3, 240, Table(12), Table(0, 8), Table(0, 300))

    # So many independent groups that about three samples share all of them: nothing is left to cluster jointly.
    tables("groups that do not combine", None, 240, Table(10, own=9), Table(10, own=9))
    tables("groups that do not combine", None, 200, Table(20, own=8), Table(30, own=9))
    tables("groups that do not combine", None, 330, Table(15, own=10), Table(15, own=12))
    tables("groups that do not combine", None, 300, Table(8, own=5), Table(12, own=5), Table(10, own=5))
    tables("groups that do not combine", None, 360, Table(20, own=4), Table(20, own=5), Table(20, own=6))
    tables("groups that do not combine", None, 300, *(Table(10, own=4) for _ in range(4)))
    return recipes


# --- Three tables of patients -----------------------------------------------------------------------------------------


def clinical(rng, n):
    """Return ten columns in the units of a clinic, with long tails; nothing in them goes with any cluster."""
    height = rng.normal(170, 9, size=n)
    weight = 0.9 * (height - 100) * rng.lognormal(0.1, 0.18, size=n)
    return np.column_stack(
        [
            np.clip(np.rint(rng.normal(61, 12, size=n)), 20, 95),  # age in years
            height,
            weight,
            rng.normal(132, 17, size=n),  # systolic pressure, mmHg
            rng.lognormal(1.5, 1.1, size=n),  # C-reactive protein, mg/l
            rng.lognormal(-0.1, 0.35, size=n),  # creatinine, mg/dl
            rng.lognormal(3.3, 0.6, size=n),  # alanine transaminase, U/l
            1e3 * np.abs(250 + 45 * rng.standard_t(3, size=n)),  # platelets per microlitre
            210 + 40 * np.abs(rng.standard_t(3, size=n)),  # lactate dehydrogenase, U/l
            rng.normal(13.6, 1.5, size=n),  # haemoglobin, g/dl
        ],
    )


def omics(seed: int) -> Case:
    """Return three tables of 200 to 300 patients: expression and methylation show four groups, the clinic none."""
    rng = _rng(seed, "omics")
    n = int(rng.integers(200, 301))
    labels = draw_labels(rng, n, 4, ratio=2.0)
    markers = rng.random((4, 1500)) < 0.08
    shifts = markers * rng.choice([-1, 1], size=(4, 1500)) * rng.uniform(1.0, 2.5, size=(4, 1500))
    spread = rng.uniform(0.5, 1.5, size=1500)
    expression = rng.normal(7, 2, size=1500) + spread * (shifts[labels] + draw_noise(rng, n, 1500))
    expression += rng.normal(size=(n, 3)) @ rng.normal(0, 0.2, size=(3, 1500))  # depth, purity, batch
    sites = rng.random((4, 400)) < 0.15
    moved = sites * rng.choice([-1, 1], size=(4, 400)) * rng.uniform(1.0, 2.5, size=(4, 400))
    logits = rng.normal(0, 1.8, size=400) + moved[labels] + 0.8 * draw_noise(rng, n, 400)
    methylation = 1.0 / (1.0 + np.exp(-logits))
    return Case(
        f"draw {seed}: omics, k=4, n={n}, d=1500+400+10",
        "omics",
        4,
        labels,
        views=[np.maximum(expression, 0.0), methylation, clinical(rng, n)],
        expected_warnings=(Remark(NO_GROUPS, 3),),
        informative=(np.flatnonzero(markers.any(axis=0)), np.flatnonzero(sites.any(axis=0)), np.arange(0)),
    )


# --- Real data --------------------------------------------------------------------------------------------------------

MOST_SAMPLES = 5_000
#: Views made with the help of the labels, or so it seems from their number of columns: they hold the answer.
MADE_FROM_LABELS = {"coil20_3view": ("view0", "view1", "view2"), "mnist4": ("lda9",)}


def real_case(name: str) -> Case | None:
    """Return a benchmark set with its number of classes; None where it has no table, no labels or too many samples."""
    from kernelweave.datasets import load_benchmark

    data = load_benchmark(name)
    tables = data.get("views") or ({"data": data.data} if "data" in data else {})
    views = [X for view, X in tables.items() if view not in MADE_FROM_LABELS.get(name, ())]
    if not views or "target" not in data or len(data.target) > MOST_SAMPLES:
        return None
    complete = np.all([_is_complete(X) for X in views], axis=0)
    labels = data.target[complete]
    return Case(name, "real", len(np.unique(labels)), labels, views=[X[complete] for X in views])


def _is_complete(X):
    """Say which rows have no missing value."""
    if sparse.issparse(X):
        return np.ones(X.shape[0], dtype=bool)
    return ~np.isnan(X).any(axis=1)


def real_cases() -> Iterator[Case]:
    """Read the labelled tables of at most 5,000 samples below the folder ``KERNELWEAVE_DATA``."""
    from kernelweave.datasets import list_benchmarks

    cases = (real_case(name) for name in list_benchmarks())
    return (case for case in cases if case is not None)


# --- All of them ------------------------------------------------------------------------------------------------------

#: Recipes by group and name: ``RECIPES["synthetic"][name](seed)`` makes one case.
RECIPES: dict[str, dict[str, Recipe]] = {
    "synthetic": _synthetic_recipes(),
    "null": _null_recipes(),
    "graph": _graph_recipes(),
    "warnings": _warning_recipes(),
}


def cases(group: str, seed: int) -> Iterator[Case]:
    """Make the cases of a group one after the other."""
    return (recipe(seed) for recipe in RECIPES[group].values())


synthetic_cases = partial(cases, "synthetic")
null_cases = partial(cases, "null")
graph_cases = partial(cases, "graph")
warning_cases = partial(cases, "warnings")
