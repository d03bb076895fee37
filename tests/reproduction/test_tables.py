"""The tables of the sources: which figure belongs to which, counts of verdicts, figures of other methods."""

import math
import re
from collections import Counter

import pytest

from reproduction import Cell, Experiment, Printed, Verdict, catalogue, run_experiment
from reproduction.tables import CLAIMS, OURS, Foreign, foreign, table_of, tally

# --- names of tables -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "table"),
    [
        ("MSc table 5.1, Kernel k-Means (100 runs), Average", "MSc table 5.1"),
        ("PhD table 2.13(a), Kernel k-means, e_sum", "PhD table 2.13"),
        ("PhD table 2.7(b), MinMax (beta = 0.1), e_sum", "PhD table 2.7"),
        ("PhD 3.4.2 and figure 3.2, text", "PhD figure 3.2"),
        ("PhD 4.3.2, text on figure 4.4: p = 1.5 or p = 2 is always the best choice", "PhD figure 4.4"),
        ("MVKSC table 4, reuters-1, KSC, best single view, BAF", "MVKSC table 4"),
        ("MVKSC 5, text on figure 4(c): ahead of all other methods", "MVKSC figure 4"),
        ("MSc 5.1, text on the 100 runs of Kernel k-Means", "MSc 5.1"),
        ("PhD 2.5.1, text", "PhD 2.5.1"),
        ("A claim, printed nowhere: learned weights lose less than equal ones, on average", OURS),
        ("", OURS),
    ],
)
def test_a_source_names_its_table_or_its_section(source, table):
    assert table_of(source) == table


def test_every_printed_figure_of_the_catalogue_has_a_table():
    tables = {
        table_of(printed.source or each.source)
        for each in catalogue().values()
        for cell in each.cells.values()
        for printed in cell.printed.values()
    }
    named = {f"{source} table {number}" for source, number in re.findall(r"(\S+) table (\S+)", " ; ".join(tables))}
    assert {"MSc table 5.1", "MSc table 5.3", "PhD table 4.1", "PhD table 5.4", "MVKSC table 2"} <= tables
    assert {f"PhD table 2.{i}" for i in (*range(5, 11), *range(12, 17))} <= tables
    assert {f"PhD table 3.{i}" for i in range(1, 5)} <= named
    assert all(table == OURS or re.fullmatch(r"(MSc|PhD|MVKSC)( table| figure)? [\d.]+", table) for table in tables)


def test_figures_that_only_we_print_are_claims_of_ours():
    ours = [
        printed
        for each in catalogue().values()
        for cell in each.cells.values()
        for printed in cell.printed.values()
        if table_of(printed.source or each.source) == OURS
    ]
    assert {printed.statistic for printed in ours} <= {"claim"}


# --- counts ----------------------------------------------------------------------------------------------------------


def fixed(figures):
    return lambda restarts, seed: figures


def result(cells, source="PhD table 2.5"):
    return run_experiment(Experiment(id="toy", title="", source=source, cells=cells))


def test_verdicts_are_counted_by_table_claims_apart():
    printed = {
        "a": Printed(1.0),
        "b": Printed(1.0, fitted=True),
        "c": Printed(2.0, fitted=True),
        "d": Printed(0.5, rule="at least", source="PhD table 2.10, row d"),
        "e": Printed(1.0, statistic="claim"),
        "f": Printed(1.0, statistic="claim", source="MSc 5.4, text on figure 5.9: it holds"),
    }
    one = result({"row": Cell("Row", fixed(dict.fromkeys("abcdexyz", 1.0) | {"f": 0.0}), printed=printed)})
    two = result({"row": Cell("Row", fixed({"a": 1.0}), printed={"a": Printed(1.0)})}, source="ours")
    counts = tally([one, two, one])
    assert counts == {
        "MSc figure 5.9" + CLAIMS: Counter({Verdict.DIFFERS: 2}),
        "PhD table 2.5": Counter({Verdict.AGREES: 2, Verdict.FITTED: 2, Verdict.DIFFERS: 2}),
        "PhD table 2.10": Counter({Verdict.BETTER: 2}),
        "PhD table 2.5" + CLAIMS: Counter({Verdict.AGREES: 2}),
        OURS: Counter({Verdict.AGREES: 1}),
    }
    assert list(counts) == [
        "MSc figure 5.9" + CLAIMS, "PhD table 2.5", "PhD table 2.10", "PhD table 2.5" + CLAIMS, OURS,
    ]  # fmt: skip


# --- figures of other methods ----------------------------------------------------------------------------------------


def means(*values, spread=10.0, runs=100, column=""):
    """A table with one method in a row, all of the same spread."""
    return {
        f"{column or 'row'}-{i}": Cell(
            "Row",
            fixed({"error_mean": value, "error_std": spread}),
            printed={"error_mean": Printed(value, statistic="mean", spread=spread, runs=runs)},
            restarts=100,
            column=column,
        )
        for i, value in enumerate(values)
    }


def test_a_figure_of_another_method_passes_within_the_tolerance_only():
    # Standard errors of the printed means: 1, of a difference 1.414. Two differ beyond 1.414 + 0.01, and one passes for
    # another up to 2.576 * 1.414 + 0.005 = 3.648.
    counts = foreign([result(means(100.0, 101.0, 103.5, 120.0))])
    # 100-101 are the same; 100-103.5 and 101-103.5 pass, both ways; the three pairs with 120 do not.
    assert counts == {"PhD table 2.5": Foreign(pairs=10, accepted=4)}
    assert counts["PhD table 2.5"].share == 0.4
    assert math.isnan(Foreign(0, 0).share)


def test_methods_are_compared_on_the_same_data_in_the_same_table_and_column():
    apart = {**means(100.0, 103.5, column="x"), **means(101.0, column="y")}
    assert foreign([result(apart)]) == {"PhD table 2.5": Foreign(2, 2)}
    assert foreign([result(means(100.0)), result(means(104.0))]) == {}


def test_exact_figures_pass_for_none_that_differs_by_more_than_rounding_and_claims_do_not_count():
    cells = {
        f"row-{value}": Cell(
            "Row",
            fixed({"nmi": value / 100, "holds": 1.0}),
            printed={"nmi": Printed(value / 100), "holds": Printed(float(value == 70), statistic="claim")},
        )
        for value in (70, 71, 75)
    }
    # 0.70 and 0.71 are a unit of the last digit apart, which rounding may explain, give or take the last bit.
    (counts,) = foreign([result(cells)]).values()
    assert counts.accepted == 0
    assert counts.pairs in (4, 6)


def test_what_is_better_by_a_rule_is_not_accepted_as_the_same():
    cells = {
        f"row-{i}": Cell("Row", fixed({"nmi": value}), printed={"nmi": Printed(value, rule="at least", fitted=True)})
        for i, value in enumerate((0.5, 0.7))
    }
    assert foreign([result(cells)]) == {"PhD table 2.5": Foreign(2, 0)}


def test_the_best_and_the_average_kernel_stand_beside_other_accuracies():
    def row(name, value):
        return Cell("Row", fixed({name: value}), printed={name: Printed(value)})

    cells = {"a": row("best_mean", 90.0), "b": row("average_mean", 80.0), "c": row("accuracy", 70.0)}
    cells["d"] = row("nmi", 60.0)
    assert foreign([result(cells)]) == {"PhD table 2.5": Foreign(6, 0)}
