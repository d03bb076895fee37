"""Find phrases that read like a translation, and say what to write instead.

``python scripts/vocabulary.py [FILE ...]`` looks at the Markdown pages of the project and at the docstrings, comments
and string literals of its Python files, prints one line per phrase and exits with 1 where there are any. ``--count``
prints the number per file instead. A line that holds ``vocabulary: keep`` is left alone; it should say why.
"""

import argparse
import ast
import re
import sys
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = (
    "kernelweave",
    "reproduction",
    "docs",
    "examples",
    "benchmarks",
    "scripts",
    "tests",
    "changelog.d",
    "mutants",
)
GENERATED = {"_build", "gallery", "__pycache__"}
# These two files quote the phrases.
QUOTING = {"scripts/vocabulary.py", "tests/test_vocabulary.py"}
KEEP = "vocabulary: keep"


class Phrase(NamedTuple):
    """A pattern over text whose lines are joined by single spaces, what to write instead, and one example of it."""

    pattern: str
    instead: str
    example: str


class Block(NamedTuple):
    """Text without line breaks, and where its lines begin in it."""

    text: str
    starts: list[int]
    lines: list[int]

    def line(self, position: int) -> int:
        return self.lines[bisect_right(self.starts, position) - 1]


class Finding(NamedTuple):
    """A phrase, and where it is."""

    path: str
    line: int
    found: str
    instead: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.found!r}: write {self.instead}"


SEPARATED = (
    "them|it|both|two|these|those|(?:the |all )?(?:two |ten )?(?:clusters|samples|rings|groups|classes|views|data)"
)
COMPARATIVES = (
    "longer|more|less|fewer|better|worse|larger|smaller|greater|higher|lower|farther|further|closer|nearer|wider|"
    "narrower|faster|slower|clearer|easier|simpler|cheaper|shorter|earlier|later|different|stronger|weaker"
)
# What may stand before "a step": a cost in O notation, its letters, or a number with or without a unit.
AMOUNT = (
    r"(?:\{\}|\bO\(\S[^.;]{0,40}\)|\b[nmdkV](?:[²³]|\^\d)?\$?|\d(?:[\d,.]*\d)?|\b(?:bytes|[kMG]i?B|ms|seconds|minutes|"
    r"numbers|words|edges|steps|(?:one|n|a) runs?|regressions?|k-means|products|passes|vectors|columns|machines|"
    r"once|twice|times|one|two|three|ten|hundred|thousand|million))"
)
UNIT = (
    "(?:second|minute|hour|day|line|(?:outer )?step|round|pass|sweep|start|fit|view|sample|worker|iteration|run|stage|"
    "node|edge|core|thread|chunk|kernel)"
)
# What may follow. A verb may not: "the steps a run takes" is English.
AFTER_UNIT = (
    r"(?=$|[.,;:)/!?*`]|\s?\||\s(?:and|or|for|with|from|instead|then|which|where|while|but|after|at|to|in|on|of)\b|"
    r"\sthat are\b)"
)

PHRASES = (
    Phrase(
        rf"\bparts (?:{SEPARATED})\b|\b(?:to|can|cannot|not|will|would|could) part (?:{SEPARATED})\b|\bparted\b",
        "'separates'",
        "no straight line parts them",
    ),
    Phrase(
        rf"(?<!\bthere )\b(?:is|are|was|were) no (?!(?:{COMPARATIVES})\b)\S+",
        "'is not', or 'is not a'",
        "which is no finite number",
    ),
    Phrase(rf"{AMOUNT} (?-i:an?) {UNIT}{AFTER_UNIT}", "'per'", "two a second"),
    Phrase(r"\bbe had\b", "'not available', 'available'", "the data are not to be had"),
    Phrase(r"\bto compare with\b", "'baseline', 'for comparison'", "methods to compare with"),
    Phrase(r"\balike\b", "'with equal weights', 'the same', 'similar'", "views are counted alike"),
    Phrase(
        r"\bwithout a start\b", "'without initialisation', 'needs no starting partition'", "exemplars without a start"
    ),
    Phrase(
        r"\bend(?:s|ed)? by itself\b", "'converged', 'converged after 9 iterations'", "whether the run ended by itself"
    ),
    Phrase(r"\bsome tens\b|\btens of (?!thousands|millions)", "'a few dozen'", "some tens of products"),
    Phrase(r"\b(?:has|have) no way to\b", "'cannot'", "NEMO has no way to run on device='cuda'"),
    Phrase(
        r"(?:^|[.!?:] |[-*|] )\[(?!`|The |This |These |Our |Its |Decision |Section |Table |Figure )[^\]]+\]\([^)]+\) "
        r"(?:has|have|goes|go|explains?|shows?|tells?|says?|lists?|leads?|helps?|compares?|holds?|gives?|describes?|measures?|begins?)\b",
        "a subject of its own: 'The guide to ... explains', '... is explained in [title]'",
        "[Choosing a method](choosing.md) has a chart",
    ),
    Phrase(
        r"\bFive minutes (?:go|goes|shows?|leads?|begins?)\b",
        "a subject of its own: 'The tour takes five minutes'",
        "Five minutes go from data to a report",
    ),
)
# A string literal or a comment of Python source, whichever begins first: a sign of one is plain text in the other.
LITERAL_OR_COMMENT = re.compile(
    r"""(\"{3}|'{3})(?:\\.|(?!\1).)*\1|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|(?P<comment>\#[^\n]*)""", re.DOTALL
)
COMPILED = tuple((re.compile(phrase.pattern, re.IGNORECASE), phrase.instead) for phrase in PHRASES)


def joined(lines: Iterable[tuple[int, str]]) -> Block:
    """Return numbered lines as one block."""
    pieces: list[str] = []
    starts: list[int] = []
    numbers: list[int] = []
    length = 0
    for number, line in lines:
        piece = " ".join(line.split())
        pieces.append(piece)
        starts.append(length)
        numbers.append(number)
        length += len(piece) + 1
    return Block(" ".join(pieces), starts, numbers)


def paragraphs(text: str, first: int = 1) -> Iterator[Block]:
    """Yield the blocks of a text that blank lines divide; its lines are numbered from ``first``."""
    lines: list[tuple[int, str]] = []
    for number, line in enumerate(text.splitlines(), first):
        if line.strip():
            lines.append((number, line.removeprefix("> ")))
        elif lines:
            yield joined(lines)
            lines = []
    if lines:
        yield joined(lines)


def comments(source: str) -> Iterator[Block]:
    """Yield the comments of Python source; those on lines of their own that follow each other are one block.

    The module ``tokenize`` would find the same ones, and takes half of the time of the whole check before Python 3.12.
    """
    lines: list[tuple[int, str]] = []
    number = 1
    counted = 0
    for match in LITERAL_OR_COMMENT.finditer(source):
        if not match["comment"]:
            continue
        number += source.count("\n", counted, match.start())
        counted = match.start()
        alone = not source[source.rfind("\n", 0, counted) + 1 : counted].strip()
        if lines and not (alone and lines[-1][0] == number - 1):
            yield joined(lines)
            lines = []
        lines.append((number, match["comment"].lstrip("#: ")))
        if not alone:
            yield joined(lines)
            lines = []
    if lines:
        yield joined(lines)


def literals(source: str) -> Iterator[Block]:
    """Yield the docstrings and other string literals of Python source; values in f-strings stand as {}."""
    inside: set[ast.AST] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.JoinedStr):
            pieces = [piece.value if isinstance(piece, ast.Constant) else "{}" for piece in node.values]
            inside.update(node.values)
            yield from paragraphs("".join(str(piece) for piece in pieces), node.lineno)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in inside:
            yield from paragraphs(node.value, node.lineno)


def blocks(path: Path) -> Iterator[Block]:
    """Yield the prose of a file."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        yield from comments(text)
        yield from literals(text)
    else:
        yield from paragraphs(text)


def findings(path: Path, root: Path = ROOT) -> list[Finding]:
    """Return the phrases in a file, in the order of its lines."""
    lines = path.read_text(encoding="utf-8").splitlines()
    name = path.relative_to(root).as_posix() if path.is_relative_to(root) else path.as_posix()
    found = []
    for block in blocks(path):
        for pattern, instead in COMPILED:
            for match in pattern.finditer(block.text):
                line = block.line(match.start())
                if KEEP not in lines[min(line, len(lines)) - 1]:
                    found.append(Finding(name, line, match.group().strip(), instead))
    return sorted(found, key=lambda each: each.line)


def pages(root: Path = ROOT) -> list[Path]:
    """Return the files of the project that hold prose."""
    paths = [*root.glob("*.md"), *root.glob(".github/**/*.md"), *root.glob("*.py")]
    for folder in FOLDERS:
        paths += [path for path in (root / folder).rglob("*") if path.suffix in (".md", ".py")]
    kept = (path for path in paths if not GENERATED & set(path.relative_to(root).parts))
    return sorted(path for path in kept if path.relative_to(root).as_posix() not in QUOTING)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE")
    parser.add_argument("--count", action="store_true", help="print the number of phrases per file")
    options = parser.parse_args(arguments)
    found = [each for path in options.files or pages() for each in findings(path.resolve())]
    if options.count:
        shown = [f"{count:4d}  {path}" for path, count in sorted(Counter(each.path for each in found).items())]
    else:
        shown = [str(each) for each in found]
    print(*shown, f"vocabulary: {len(found) or 'no'} phrases to replace", sep="\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
