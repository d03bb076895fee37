"""The documentation is true: its code runs and prints what the page says, its links lead somewhere.

A page's ``python`` blocks run in order in one namespace. A ``text`` block right after one is what it prints. ``bash``
blocks run too, in the same folder, if a ``text`` block follows. A block that needs data files or a long time is passed
over by ``<!-- not run: reason -->`` on the line before it.
"""

import io
import os
import re
import runpy
import subprocess
from contextlib import redirect_stdout
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

import pytest

from kernelweave import plots
from tests.command_server import programs

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [*sorted(ROOT.glob("*.md")), *(page for page in sorted(DOCS.rglob("*.md")) if "_build" not in page.parts)]

FENCE = re.compile(r"^```(?P<kind>\S*)[^\n]*\n(?P<body>.*?)^```$", flags=re.MULTILINE | re.DOTALL)
NOT_RUN = re.compile(r"<!-- not run:(?P<reason>[^\n]*)-->\n\Z")
# Seconds on the screen: as "0.31 s", or the last column of a table.
SECONDS = re.compile(r" *\d+\.\d\d(?= s\b|$)", flags=re.MULTILINE)
LINK = re.compile(r"\]\((?P<target>[^)\s]+)\)")
SOMEWHERE_ELSE = ("http://", "https://", "mailto:", "#")

pytestmark = pytest.mark.skipif(not DOCS.is_dir(), reason="the documentation is not part of this copy")


def name(page):
    return page.relative_to(ROOT).as_posix()


@dataclass(frozen=True)
class Block:
    """A block of a page that is run: ``python``, or ``bash`` with what it prints."""

    kind: str
    code: str
    line: int  # of its first line of code, from 1
    prints: str | None  # what the page says it prints
    skipped: str | None  # the reason given


def blocks(text):
    found = list(FENCE.finditer(text))
    for here, after in zip_longest(found, found[1:]):
        follows = after is not None and after["kind"] == "text" and not text[here.end() : after.start()].strip()
        if here["kind"] != "python" and not (here["kind"] == "bash" and follows):
            continue
        mark = NOT_RUN.search(text[: here.start()])
        yield Block(
            kind=here["kind"],
            code=here["body"],
            line=text.count("\n", 0, here.start("body")) + 1,
            prints=after["body"] if follows else None,
            skipped=mark["reason"].strip() if mark else None,
        )


def printed_by_commands(code):
    """Return what commands print, without times and spaces at the ends of lines."""
    own = {"PATH": f"{programs()}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "100", "PYTHONIOENCODING": "utf-8"}
    command = ["bash", "-c", code]
    found = subprocess.run(command, env=os.environ | own, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return timeless(found.stdout.decode())


def timeless(text):
    return SECONDS.sub(" #", re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE))


def with_code():
    return [page for page in PAGES if any(blocks(page.read_text(encoding="utf-8")))]


@pytest.mark.parametrize("page", with_code(), ids=name)
def test_the_code_of_a_page_runs_and_prints_what_the_page_says(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "__main__"}
    for block in blocks(page.read_text(encoding="utf-8")):
        if block.skipped is not None:
            assert block.skipped, f"{name(page)}:{block.line}: say why the block is not run"
            continue
        if block.kind == "bash":
            assert printed_by_commands(block.code) == timeless(block.prints), f"{name(page)}:{block.line}"
            continue
        # Empty lines in front make a traceback point at the line of the page.
        code = compile("\n" * (block.line - 1) + block.code, str(page), "exec")
        with redirect_stdout(io.StringIO()) as printed:
            exec(code, namespace)
        if block.prints is not None:
            assert printed.getvalue() == block.prints, f"{name(page)}:{block.line}"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_relative_links_of_a_page_point_at_files(page):
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    targets = [found["target"] for found in LINK.finditer(text)]
    files = [target.partition("#")[0] for target in targets if not target.startswith(SOMEWHERE_ELSE)]
    assert [target for target in files if not (page.parent / target).exists()] == []


def test_the_page_of_pictures_has_every_display_with_its_call_and_a_small_file():
    page = (DOCS / "guide" / "pictures.md").read_text(encoding="utf-8")
    for display in plots.__all__:
        assert page.count(f"**`{display}`**") == 1
        assert f"`{display}.from_" in page
    drawn = runpy.run_path(str(DOCS / "_pictures.py"))["DISPLAYS"]
    assert len(drawn) >= len(plots.__all__)
    for file in drawn:
        assert f"(../_static/{file})" in page
        assert (DOCS / "_static" / file).stat().st_size < 200_000


def test_blocks_are_found_with_what_they_print_and_why_they_are_not_run():
    page = "Text.\n\n```python\nprint(1)\n```\n\n```text\n1\n```\n\n<!-- not run: too long -->\n```python\nx\n```\n"
    page += "\n```bash\necho 1\n```\n\n```text\n1\n```\n\n```bash\nmake demo\n```\n"
    first, second, third = blocks(page)
    assert first == Block("python", "print(1)\n", 4, "1\n", None)
    assert second == Block("python", "x\n", 13, None, "too long")
    assert third == Block("bash", "echo 1\n", 17, "1\n", None)


def test_times_on_the_screen_are_left_out_of_comparisons():
    assert timeless("time  0.31 s, converged  \n") == "time # s, converged\n"
    assert timeless("kernel-kmeans  0.235  1.20\n0.31 seconds") == "kernel-kmeans  0.235 #\n0.31 seconds"


#: What makes the slow examples quick.
QUICK = {
    "plot_ten_rings.py": {"points": 100},
    "plot_multi_view_digits.py": {"n_classes": 3},
    "plot_incomplete_omics.py": {"n_draws": 1},
    "view_weights_under_noise.py": {"n_draws": 1},
}
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


@pytest.mark.filterwarnings("ignore:FigureCanvasAgg is non-interactive:UserWarning")
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_draws_one_picture_that_is_not_empty(example, tmp_path, monkeypatch):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("Agg")
    monkeypatch.chdir(tmp_path)
    if example.name in QUICK:
        runpy.run_path(str(example))["draw"](**QUICK[example.name])
    else:
        runpy.run_path(str(example), run_name="__main__")
    try:
        (number,) = pyplot.get_fignums()
        assert pyplot.figure(number).axes
        pyplot.savefig(tmp_path / "picture.png", dpi=40)
    finally:
        pyplot.close("all")
    assert [path.name for path in tmp_path.iterdir()] == ["picture.png"], "the example leaves files behind"


def test_every_example_of_the_gallery_has_a_title_and_the_thumbnail_of_a_panel_belongs_to_one():
    panels = runpy.run_path(str(DOCS / "_pictures.py"))["PANELS"]
    gallery = {path.stem for path in EXAMPLES if path.stem.startswith("plot_")}
    assert len(gallery) >= 16
    assert set(panels) <= gallery
    for left, top, right, bottom in panels.values():
        assert 0 <= left < right <= 1
        assert 0 <= top < bottom <= 1
    for path in EXAMPLES:
        if path.stem in gallery:
            title, rule = path.read_text(encoding="utf-8").splitlines()[1:3]
            assert rule == "=" * len(title)
