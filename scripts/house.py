"""Counts about the source of the package that show whether its structure gets better or worse.

``python scripts/house.py [CHECKOUT ...]`` prints a Markdown table with one column per checkout; without arguments it
counts the checkout that holds this script. ``--verbose`` lists the places behind the counts, and ``--wheel`` builds the
wheels and gives their sizes.
"""

import argparse
import ast
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from package_source import FUNCTIONS, PACKAGE, Module, Source, docstring_lines, identifiers, is_private, last_names

OPERATOR = "KernelOperator"
REGISTRIES = ("registry", "_registry")
LONG_FUNCTION = 60
WORDS = ["found", "given", "own", "settle", "dear", "turned", "lean", "reach"]
WORDS += ["pull", "stairs", "heads", "told", "said", "seen", "look", "part"]
INTERMEDIATE = "intermediate estimator classes"


class Count(NamedTuple):
    """One cell of the table and the places behind it."""

    value: str
    places: list[str]


def counted(places: list[str]) -> Count:
    return Count(str(len(places)), places)


def type_tests(source: Source) -> dict[str, Count]:
    """Count the places that ask which kernel operator they hold, by isinstance or by a case of match."""
    homes = {module.layer for module in source if OPERATOR in module.classes}
    operators = source.subclasses(OPERATOR)
    solvers = []
    outside = []
    for module in source:
        for node in module.nodes:
            names = {module.bindings[name].name if name in module.bindings else name for name in tested_classes(node)}
            if names & operators:
                place = module.place(node.lineno)
                solvers += [place] if module.layer == "solvers" else []
                outside += [place] if module.layer not in homes else []
    unknown = Count(f"no class {OPERATOR}", [])
    return {
        "isinstance on kernel operators in solvers": counted(solvers) if homes else unknown,
        f"isinstance on kernel operators outside the folder of {OPERATOR}": counted(outside) if homes else unknown,
    }


def tested_classes(node: ast.AST) -> set[str]:
    """Return the names of the classes that a call of isinstance or a case of match tests for."""
    if isinstance(node, ast.MatchClass):
        return last_names(node.cls)
    if isinstance(node, ast.Call) and last_names(node.func) == {"isinstance"} and len(node.args) == 2:
        return last_names(node.args[1])
    return set()


def dynamic_imports(source: Source) -> dict[str, Count]:
    """Count calls of import_module outside registries and the package's own lazy imports."""
    places = []
    for module in source:
        if module.name == PACKAGE or module.name.rsplit(".", 1)[-1] in REGISTRIES:
            continue
        aliases = [alias for node in module.nodes if isinstance(node, ast.ImportFrom) for alias in node.names]
        names = {"import_module"} | {alias.asname for alias in aliases if alias.name == "import_module"}
        calls = [node for node in module.nodes if isinstance(node, ast.Call) and last_names(node.func) & names]
        places += [module.place(node.lineno) for node in calls]
    return {"import_module outside registries": counted(places)}


def inheritance(source: Source) -> dict[str, Count]:
    """Count the classes that public estimators inherit from, and the files that one method spans."""
    public = source.public_estimators()
    intermediate = set()
    spans = {}
    for name, definition in sorted(public.items()):
        classes = source.ancestors(definition)
        inner = [item for item in classes if source.modules[item.module].layer == "estimators"]
        intermediate |= {item.name for item in inner} - set(public)
        spans[name] = sorted({item.module for item in classes} | solver_modules(source, definition.module))
    numbers = [len(files) for files in spans.values()] or [0]
    return {
        "public estimators": counted(sorted(public)),
        INTERMEDIATE: counted(sorted(intermediate)),
        "files a method spans, median / most": Count(
            f"{statistics.median(numbers):g} / {max(numbers)}",
            [f"{name}: {len(files)} ({', '.join(files)})" for name, files in spans.items()],
        ),
    }


def solver_modules(source: Source, module: str) -> set[str]:
    """Return the modules below ``solvers`` that define what a module imports from there."""
    modules = set()
    for item in source.modules[module].imports:
        if f"{item.module}.".startswith(f"{PACKAGE}.solvers."):
            origin = source.find(item.module, item.name) if item.name else None
            modules.add(origin.module if origin else item.module)
    return modules


def assignments(source: Source) -> dict[str, Count]:
    """Count assignments that do several things in one statement."""
    total = 0
    packed = []
    unpacked = 0
    for module in source:
        for node in module.nodes:
            if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign) and node.value is not None:
                total += 1
            if isinstance(node, ast.Assign):
                lengths = {len(target.elts) for target in node.targets if isinstance(target, ast.Tuple | ast.List)}
                n_values = len(node.value.elts) if isinstance(node.value, ast.Tuple | ast.List) else None
                if len(node.targets) > 1 or n_values in lengths:
                    packed.append(module.place(node.lineno))
                elif lengths and n_values is None:
                    unpacked += 1
    share = f"{100 * len(packed) / max(total, 1):.1f} % ({len(packed)} of {total})"
    return {
        "packed assignments (`a, b = x, y`, `a = b = x`)": Count(share, packed),
        "unpacking (`a, b = f()`), for information": Count(str(unpacked), []),
    }


def private_imports(source: Source) -> dict[str, Count]:
    """Count imports of other folders' underscored modules and of other modules' underscored names."""
    modules = set()
    names = set()
    for module in source:
        for item in module.imports:
            full = f"{item.module}.{item.name}"
            target = full if full in source.modules else item.module
            if crosses_folders(target, module):
                modules.add(module.place(item.line, target))
            if target == item.module != module.name and item.name and is_private(item.name):
                names.add(module.place(item.line, full))
    return {
        "underscored modules imported from other folders": counted(sorted(modules)),
        "underscored names imported from other modules": counted(sorted(names)),
    }


def crosses_folders(target: str, importer: Module) -> bool:
    """Return whether a module path has an underscored part that lies in another folder than the importing module."""
    parts = target.split(".")
    for depth, part in enumerate(parts):
        within = f"{importer.folder}.".startswith(".".join(parts[: depth + 1]) + ".")
        if is_private(part) and not within and importer.folder != ".".join(parts[:depth]):
            return True
    return False


def sizes(source: Source) -> dict[str, Count]:
    """Measure functions without their docstrings, files and lines."""
    lengths = []
    long = []
    for module in source:
        for node in (node for node in module.nodes if isinstance(node, FUNCTIONS)):
            length = node.end_lineno - node.lineno + 1 - len(docstring_lines(node))
            lengths.append(length)
            if length > LONG_FUNCTION:
                long.append(module.place(node.lineno, f"{node.name}: {length} lines"))
    lengths = sorted(lengths) or [0]
    percentile = lengths[-(-95 * len(lengths) // 100) - 1]
    largest = max(source, key=lambda module: len(module.lines))
    spread = f"{statistics.median(lengths):g} / {percentile} / {lengths[-1]}"
    return {
        "functions": Count(str(len(lengths)), []),
        "lines of a function, median / 95th percentile / most": Count(spread, []),
        f"functions over {LONG_FUNCTION} lines": counted(long),
        "files": Count(str(len(source.modules)), []),
        "largest file": Count(f"{len(largest.lines)} lines ({largest.path})", []),
        "lines": Count(str(sum(len(module.lines) for module in source)), []),
        "lines of code": Count(str(sum(module.code_lines() for module in source)), []),
    }


def words(source: Source) -> dict[str, Count]:
    """Count words in identifiers: whole ones, and the parts between underscores."""
    parts = Counter(part for module in source for name in identifiers(module.nodes) for part in name.lower().split("_"))
    return {f"word: {word}": Count(str(parts[word]), []) for word in WORDS}


def wheel_size(checkout: Path) -> Count:
    """Build the wheel, without an isolated environment where none can be made, and return its size."""
    for options in ([], ["--no-isolation"]):
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-m", "build", "--wheel", *options, "--outdir", folder, str(checkout)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            for wheel in Path(folder).glob("*.whl"):
                return Count(f"{wheel.stat().st_size} bytes", [])
    raise SystemExit(f"The wheel of {checkout} could not be built:\n{done.stdout}{done.stderr}")


STRUCTURE = (type_tests, dynamic_imports, inheritance, assignments, private_imports)
EVERYTHING = (*STRUCTURE, sizes, words)


def survey(checkout: Path, measures: tuple[Callable[[Source], dict[str, Count]], ...] = EVERYTHING) -> dict[str, Count]:
    """Return the counts about one checkout, by the names of their rows."""
    source = Source(checkout)
    counts = {}
    for measure in measures:
        counts |= measure(source)
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkouts", nargs="*", type=Path, default=[Path(__file__).resolve().parents[1]])
    parser.add_argument("--verbose", action="store_true", help="list the places behind the counts")
    parser.add_argument("--wheel", action="store_true", help="build the wheel of each checkout and give its size")
    options = parser.parse_args()
    columns = {}
    for checkout in options.checkouts:
        counts = survey(checkout.resolve())
        if options.wheel:
            counts["wheel"] = wheel_size(checkout)
        columns[str(checkout)] = counts
    print("| |", " | ".join(columns), "|")
    print("|---|" + "---:|" * len(columns))
    for row in next(iter(columns.values())):
        print(f"| {row} |", " | ".join(counts[row].value for counts in columns.values()), "|")
    for checkout, counts in columns.items():
        for row, count in counts.items():
            if count.places and (options.verbose or row == INTERMEDIATE):
                print(f"\n{checkout}: {row}\n")
                print("\n".join(f"- {place}" for place in count.places))


if __name__ == "__main__":
    main()
