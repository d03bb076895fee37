"""Convex mixtures of one view and several: PhD tables 3.1-3.4 and figure 3.2; table 3.5 on texts that are available.

The thesis has one sample of its synthetic views and does not print the classes' means and covariances. Its figures
are compared with means over samples of our generator, with the spread among our samples as the yardstick; claims of
its text are counted, sample by sample. Tables 3.7-3.9 are left out, as their data (Internet advertisements) are not
available. The module ``rows.convex_mixture`` computes the rows.
"""

from functools import partial

import numpy as np

from reproduction.experiment import Cell, Experiment, Printed
from reproduction.rows.convex_mixture import (
    CONVERGED,
    EARLY,
    MIXED,
    NOISE,
    NUMBERS,
    SETTLED,
    Runs,
    claims,
    claims_row,
    csc_row,
    csc_text_row,
    entropy_row,
    noise_claims_row,
    noise_row,
    text_claims_row,
    text_row,
    weight_row,
)

SAMPLES = 20
TRIALS = 10
_ENDS = {"": EARLY, "-settled": SETTLED, "-converged": CONVERGED}
_ENDED = {
    "": "stopped early, as in the thesis",
    "-settled": "stopped once noisy views have no weight",
    "-converged": "run on, weights drifting apart",
}
_LABELS = {
    "worst-single": "Worst single view",
    "best-single": "Best single view",
    "concatenated": "Concatenated views",
    "multi-view": "Multi-view",
    "weighted": "Weighted multi-view",
}

# Entropies for 2, 3, 4 and 5 views, each without and with kernel k-means.
_NOISE_FREE = """
worst-single  0.300 0.300  0.572 0.300  0.572 0.303  0.572 0.303
best-single   0.299 0.299  0.299 0.299  0.299 0.299  0.299 0.299
concatenated  0.322 0.320  0.265 0.262  0.147 0.191  0.130 0.124
multi-view    0.289 0.320  0.133 0.262  0.097 0.195  0.081 0.124
weighted      0.289 0.326  0.176 0.266  0.086 0.191  0.060 0.124
"""
_NOISY = """
worst-single  0.935 0.943  0.935 0.943  0.935 0.943  0.935 0.943
best-single   0.299 0.299  0.299 0.299  0.299 0.299  0.299 0.299
concatenated  0.960 0.748  0.477 0.631  0.472 0.496  0.377 0.402
multi-view    0.385 0.751  0.655 0.631  0.147 0.478  0.576 0.601
weighted      0.256 0.281  0.220 0.242  0.127 0.206  0.116 0.157
"""
# Entropies of correlational spectral clustering for 2, 3, 4 and 5 views.
_CSC_NOISE_FREE = """
csc-worst     0.745 0.766 0.766 0.766
csc-best      0.743 0.741 0.739 0.735
"""
_CSC_NOISY = """
csc-worst     1.001 1.078 1.078 1.078
csc-best      0.833 0.814 0.800 0.745
"""
# Weights of the good views, the noisy ones after the bar; tables 3.2 and 3.4 print one sample each.
_EQUAL_WEIGHTS = """
0.502 0.498
0.336 0.333 0.331
0.251 0.249 0.248 0.252
0.201 0.199 0.198 0.201 0.201
"""
_UNEQUAL_WEIGHTS = """
0.442 0.435 | 0.064 0.059
0.304 0.300 0.299 | 0.051 0.046
0.224 0.223 0.222 0.226 | 0.054 0.051
0.182 0.181 0.180 0.184 0.183 | 0.046 0.044
"""


# --- printed figures -------------------------------------------------------------------------------------------------


def printed_rows(text: str) -> dict[str, list[float]]:
    """Return the printed entropies by row."""
    rows = (line.split() for line in filter(None, map(str.strip, text.splitlines())))
    return {name: [float(number) for number in numbers] for name, *numbers in rows}


def printed_runs(text: str) -> dict[str, Runs]:
    """Return the printed entropies as those of one sample."""
    return {
        name: Runs(np.array([values[::2]]), np.array([values[1::2]])) for name, values in printed_rows(text).items()
    }


def printed_weights(text: str) -> list[tuple[list[float], list[float]]]:
    """Return the weights of good and of noisy views, a pair per number of views."""
    sets = []
    for line in filter(None, map(str.strip, text.splitlines())):
        good, _, noisy = line.partition("|")
        sets.append(([float(number) for number in good.split()], [float(number) for number in noisy.split()]))
    return sets


def _entropy_figures(table: str, text: str, method: str) -> dict[str, Printed]:
    figures = {}
    for column, value in enumerate(printed_rows(text)[method]):
        n_views = NUMBERS[column // 2]
        refined = column % 2
        source = f"PhD table {table}, {_LABELS[method]} CMM, {n_views} views, {'Yes' if refined else 'No'}"
        figures[f"{'refined_' if refined else ''}h_{n_views}_mean"] = Printed(
            value, statistic="mean", runs=1, decimals=3, source=source
        )
    return figures


def _csc_figures(table: str, text: str, method: str) -> dict[str, Printed]:
    figures = {}
    for n_views, value in zip(NUMBERS, printed_rows(text)[method], strict=True):
        source = f"PhD table {table}, CSC - {method.removeprefix('csc-')} view, {n_views} views"
        figures[f"h_{n_views}_mean"] = Printed(value, statistic="mean", runs=1, decimals=3, source=source)
    return figures


def _weight_figures(table: str, text: str) -> dict[str, Printed]:
    """Return the noisy views' mean weight and the distance between good views; which view is which means nothing."""
    figures = {}
    for good, noisy in printed_weights(text):
        source = f"PhD table {table}, {len(good)} views"
        n_views = len(good)
        expected = {"spread": float(np.ptp(good))}
        if noisy:
            expected["noisy_weight"] = float(np.mean(noisy))
        for name, value in expected.items():
            figures[f"{name}_{n_views}_mean"] = Printed(
                value, statistic="mean", runs=1, fitted=True, decimals=4, source=f"{source}, {name.replace('_', ' ')}"
            )
    return figures


def _claim_figures(table: str, text: str) -> dict[str, Printed]:
    """Return what holds without exception in print."""
    return {
        name: Printed(1.0, statistic="claim", source=f"PhD table {table}, rows compared")
        for name, share in claims(printed_runs(text)).items()
        if share == 1.0
    }


# --- declarations ----------------------------------------------------------------------------------------------------


def _entropy_cells(table: str, text: str, *, noisy: bool) -> dict[str, Cell]:
    cells = {
        method: _cell(label, partial(entropy_row, method=method, noisy=noisy), _entropy_figures(table, text, method))
        for method, label in _LABELS.items()
        if method != "weighted"
    }
    for end, tol in _ENDS.items():
        run = partial(entropy_row, method="weighted", noisy=noisy, tol=tol)
        cells[f"weighted{end}"] = _cell(
            f"{_LABELS['weighted']}, {_ENDED[end]}", run, _entropy_figures(table, text, "weighted")
        )
    for end in ("", "-settled"):
        run = partial(claims_row, noisy=noisy, tol=_ENDS[end])
        cells[f"claims{end}"] = _cell(f"Claims, weighted model {_ENDED[end]}: shares", run, _claim_figures(table, text))
    return cells


def _csc_cells(table: str, text: str, *, noisy: bool) -> dict[str, Cell]:
    return {
        method: _cell(
            f"Correlational spectral clustering, {method.removeprefix('csc-')} view",
            partial(csc_row, worst=method == "csc-worst", noisy=noisy),
            _csc_figures(table, text, method),
        )
        for method in printed_rows(text)
    }


def _weight_cells(table: str, text: str, *, noisy: bool) -> dict[str, Cell]:
    """Declare the weights; only those stopped as in the thesis are compared with it."""
    return {
        f"weighted{end}": _cell(
            f"{_LABELS['weighted']}, {_ENDED[end]}",
            partial(weight_row, noisy=noisy, tol=tol),
            {} if end else _weight_figures(table, text),
        )
        for end, tol in _ENDS.items()
    }


def _cell(label: str, run: partial[dict[str, float]], printed: dict[str, Printed]) -> Cell:
    return Cell(label, run, printed=printed, restarts=SAMPLES)


_SAMPLES = (
    "Three Gaussian classes, 700 points; each of five views misplaces 50 of them{}. Means and covariances are ours, as "
    "the thesis prints none."
)
_STOPPING = (
    f"EM of the weighted model ends when the mean log-likelihood rises by less than {EARLY} (fitted to tables 3.2 and "
    f"3.4, as the thesis gives none), {SETTLED:g} (settled) or {CONVERGED:g} (converged)."
)
_CORRELATED = (
    "Correlational spectral clustering: linear kernels, as many axes as clusters, one kappa from 0.0001 to 1 without "
    "the classes, k-means with 30 starts on the projections of each view."
)
_PROTOCOL = f"3 clusters, beta_0; means over {SAMPLES} samples where the thesis has one. {_STOPPING}"


def _synthetic(number: int, title: str, cells: dict[str, Cell], *, noisy: bool) -> Experiment:
    kind = "noisy" if noisy else "noise-free"
    return Experiment(
        id=f"phd-3.{number}-{'view-weights' if number % 2 == 0 else 'convex-mixture'}",
        title=f"{title} on {kind} views",
        source=f"PhD table 3.{number}",
        preprocessing=_SAMPLES.format(", two more are noise of standard deviation 2.5" if noisy else ""),
        protocol=f"{_PROTOCOL} {_CORRELATED}" if number % 2 else _PROTOCOL,
        cells=cells,
    )


def _noise_cells() -> dict[str, Cell]:
    noisy = float(np.mean(printed_weights(_UNEQUAL_WEIGHTS)[0][1]))
    printed = Printed(
        noisy, statistic="mean", runs=1, fitted=True, decimals=4, source="PhD table 3.4, 2 views + noisy views"
    )
    cells = {
        f"noise-{level:g}": Cell(
            f"Two views with noise of standard deviation {level:g}",
            partial(noise_row, levels=(level,)),
            printed={"weight_noise_2.5_mean": printed} if level == 2.5 else {},
            restarts=TRIALS,
        )
        for level in NOISE
    }
    for low, high in MIXED:
        cells[f"mixed-{low:g}-{high:g}"] = Cell(
            f"Two views with noise {low:g} and two with {high:g}",
            partial(noise_row, levels=(low, high)),
            restarts=TRIALS,
        )
    claim = Printed(1.0, statistic="claim", source="PhD 3.4.2 and figure 3.2, text")
    names = ("noisy_below_clean", "falls_up_to_1", "falls_always", *(f"mixed_{a:g}_{b:g}_in_order" for a, b in MIXED))
    cells["claims"] = Cell(
        "Claims: shares of trials", noise_claims_row, printed=dict.fromkeys(names, claim), restarts=TRIALS
    )
    return cells


def _text(name: str, data: str, title: str, views: tuple[str, ...], about: str) -> Experiment:
    methods = (*views, "concatenated", "multi-view", "weighted")
    cells = {
        method.replace("_", "-"): Cell(
            _LABELS.get(method, f"Single view, {method}"), partial(text_row, data=data, method=method)
        )
        for method in methods
    }
    settled = f"{_LABELS['weighted']}, {_ENDED['-settled']}"
    cells["weighted-settled"] = Cell(settled, partial(text_row, data=data, method="weighted", tol=SETTLED))
    cells["claims"] = Cell("Claims: how many of the four columns", partial(text_claims_row, data=data))
    cells["claims-settled"] = Cell(
        "Claims, weighted model settled: how many of the four columns", partial(text_claims_row, data=data, tol=SETTLED)
    )
    cells["csc"] = Cell("Correlational spectral clustering, view by view", partial(csc_text_row, data=data))
    return Experiment(
        id=f"phd-3.5-{name}",
        title=f"Convex mixtures on {title}",
        source="In the manner of PhD tables 3.5 and 3.6, on other data",
        data=(data,),
        preprocessing=f"{about} The 2,076 pages in six classes of the thesis are not available.",
        protocol=(
            "As many clusters as classes; entropy at beta_0 and at the best of eleven multiples of it, from 0.5 to 4, "
            f"without and with kernel k-means. {_STOPPING} {_CORRELATED}"
        ),
        cells=cells,
    )


_TFIDF = "Documents with a word in every view, as the thesis keeps them; tf-idf, rows of length 1."

EXPERIMENTS = (
    _synthetic(
        1,
        "Convex mixtures",
        _entropy_cells("3.1", _NOISE_FREE, noisy=False) | _csc_cells("3.1", _CSC_NOISE_FREE, noisy=False),
        noisy=False,
    ),
    _synthetic(2, "View weights", _weight_cells("3.2", _EQUAL_WEIGHTS, noisy=False), noisy=False),
    _synthetic(
        3,
        "Convex mixtures",
        _entropy_cells("3.3", _NOISY, noisy=True) | _csc_cells("3.3", _CSC_NOISY, noisy=True),
        noisy=True,
    ),
    _synthetic(4, "View weights", _weight_cells("3.4", _UNEQUAL_WEIGHTS, noisy=True), noisy=True),
    Experiment(
        id="phd-figure-3.2-view-weights",
        title="View weights as the noise grows",
        source="PhD figure 3.2 and the text of 3.4.2",
        preprocessing="Two views that misplace 50 points each, and the original with Gaussian noise, two per level.",
        protocol=f"beta_0; means over {TRIALS} draws of the noise. Levels between 0.3 and 2.5 are ours. {_STOPPING}",
        cells=_noise_cells(),
    ),
    _text("webkb-course", "webkb_course_binary", "WebKB course pages", ("page", "link"), _TFIDF),
    _text(
        "webkb-course-tfidf",
        "webkb_course_tfidf",
        "WebKB course pages, another extract",
        ("view0_1840", "view1_3000"),
        "Documents with a word in every view; tf-idf rows of length 1 as supplied (view 0 is the anchor text).",
    ),
    _text("webkb-cornell", "webkb_cornell_195", "WebKB pages of Cornell", ("content", "cites"), _TFIDF),
    _text("3sources", "3sources", "3-Sources news", ("bbc", "guardian", "reuters"), _TFIDF),
)
