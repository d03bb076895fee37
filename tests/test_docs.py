"""The documentation is true: its code runs and prints what the page says, its links lead somewhere.

A page's ``python`` blocks run in order in one namespace. A ``text`` block right after one is what it prints. ``bash``
blocks run too, in the same folder, if a ``text`` block follows. A block that needs data files or a long time is passed
over by ``<!-- not run: reason -->`` on the line before it.
"""

import importlib
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

from kernelweave import kernels, plots
from tests.command_server import programs
from tests.plan_rates import rough_rates

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


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("page", with_code(), ids=name)
def test_the_code_of_a_page_runs_and_prints_what_the_page_says(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "__main__"}
    with rough_rates():  # no page says how long a fit takes on the machine that runs it
        run_blocks(page, namespace)


def run_blocks(page, namespace):
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
    "plot_kernel_spectral.py": {"n_samples": 100},
    "plot_ratio_kernels.py": {"prices": (0.01, 1.0)},
    "view_weights_under_noise.py": {"n_draws": 1, "levels": (0.0, 0.5, 2.5)},
}
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


@pytest.mark.usefixtures("one_thread")
@pytest.mark.filterwarnings("ignore:FigureCanvasAgg is non-interactive:UserWarning")
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_draws_one_picture_that_is_not_empty(example, tmp_path, monkeypatch):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("Agg")
    pyplot.close("all")  # what another test has left open
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


def test_every_example_of_the_gallery_has_a_title_and_a_place_and_thumbnails_are_of_examples():
    script = runpy.run_path(str(DOCS / "_pictures.py"))
    panels = script["PANELS"]
    gallery = {path.stem for path in EXAMPLES if path.stem.startswith("plot_")}
    assert len(gallery) >= 16
    assert set(panels) <= gallery
    assert sorted(script["ORDER"]) == sorted(gallery)
    for left, top, right, bottom in panels.values():
        assert 0 <= left < right <= 1
        assert 0 <= top < bottom <= 1
    for path in EXAMPLES:
        if path.stem in gallery:
            title, rule = path.read_text(encoding="utf-8").splitlines()[1:3]
            assert rule == "=" * len(title)


def test_the_table_of_what_only_this_library_does_is_the_same_in_the_readme_and_on_the_front_page():
    table = (DOCS / "_only_here.md").read_text(encoding="utf-8").strip()
    assert table in (ROOT / "README.md").read_text(encoding="utf-8")
    assert "```{include} _only_here.md\n```" in (DOCS / "index.md").read_text(encoding="utf-8")
    shown = re.sub(r"<!--.*?-->", "", table, flags=re.DOTALL).splitlines()
    rows = [line for line in shown if line.startswith("| ")][1:]
    assert len(rows) >= 6
    for row in rows:
        _, figure, machine, command = (entry.strip() for entry in row.strip("|").split(" | "))
        assert re.search(r"\d", figure), row
        assert re.search(r"`[0-9a-f]{7}`", machine), row
        assert command.startswith("`"), row
        assert "..." not in row, "a figure is missing"


# --- anchors ----------------------------------------------------------------------------------------------------------


def anchors(page):
    """Return the anchors of the headings of a page, as the site and common viewers of Markdown make them."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    titles = re.findall(r"^#{1,4} (.+)$", text, flags=re.MULTILINE)
    plain = (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title).lower() for title in titles)
    return {re.sub(r"[^\w\- ]", "", title).strip().replace(" ", "-") for title in plain}


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_anchors_that_a_page_links_to_exist(page):
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    lost = []
    for found in LINK.finditer(text):
        file, _, anchor = found["target"].partition("#")
        target = page.parent / file if file else page
        if anchor and target.suffix == ".md" and not found["target"].startswith(SOMEWHERE_ELSE[:3]):
            lost += [found["target"]] if anchor not in anchors(target) else []
    assert lost == []


def test_the_chart_leads_to_pages_of_the_guide_and_the_list_below_it_to_the_same_ones():
    chart = (DOCS / "_static" / "choosing.svg").read_text(encoding="utf-8")
    page = (DOCS / "guide" / "choosing.md").read_text(encoding="utf-8")
    listed = page.partition("## The chart as a list")[2].partition("\n## ")[0]
    of_chart = re.findall(r'<a href="\.\./guide/([\w-]+)\.html(#[\w-]+)?">\n<rect class="(?:leaf|first)"', chart)
    of_list = re.findall(r"\(([\w-]+)\.md(#[\w-]+)?\)", listed)
    assert sorted(of_chart) == sorted(of_list)
    assert len(of_chart) == len(re.findall(r'class="name"', chart)) == 13
    for file, anchor in re.findall(r'<a href="\.\./guide/([\w-]+)\.html#?([\w-]*)"', chart):
        target = DOCS / "guide" / f"{file}.md"
        assert target.exists()
        assert not anchor or anchor in anchors(target)
    for method in re.findall(r'class="name"[^>]*>(\w+)<', chart):
        assert f"[`{method}`]" in listed


# --- the API ----------------------------------------------------------------------------------------------------------


def test_every_public_name_has_a_page_in_the_api_and_every_name_there_exists():
    script = runpy.run_path(str(DOCS / "_api.py"))
    listed = [entry for file in script["INDEXES"] for entry in script["listed"]((DOCS / file).read_text("utf-8"))]
    assert len(listed) == len(set(listed))
    for module, entry in listed:
        assert hasattr(importlib.import_module(module), entry), f"{module}.{entry}"
    rooms = ("explain", "report", "model_selection", "plots", "metrics", "datasets", "preprocessing")
    wanted = {(f"kernelweave.{room}", entry) for room in rooms for entry in public(f"kernelweave.{room}")}
    # scikit-learn's own class, which the page of errors names in a sentence
    wanted |= {("kernelweave", entry) for entry in public("kernelweave") if entry != "ConvergenceWarning"}
    assert wanted - set(listed) == set()


def public(module):
    """Return the classes and functions among the public names of a module."""
    found = importlib.import_module(module)
    return [entry for entry in found.__all__ if callable(getattr(found, entry))]


def test_the_page_of_a_class_has_its_methods_its_guide_and_its_examples():
    script = runpy.run_path(str(DOCS / "_api.py"))
    pages = {"first": "`GraphCut` and GraphCut", "second": "`GraphCut`", "third": "GraphCutter"}
    text = script["page_text"]("kernelweave", "GraphCut", pages)
    assert text.startswith("GraphCut\n========\n\n.. currentmodule:: kernelweave\n\n.. autoclass:: GraphCut\n")
    assert text.index("   .. automethod:: fit\n") < text.index("   .. automethod:: fit_predict\n")
    assert "__init__" not in text
    assert ":doc:`/guide/first`\n* :doc:`/guide/second`\n" in text
    assert "third" not in text
    assert ".. minigallery:: kernelweave.GraphCut\n" in text
    function = script["page_text"]("kernelweave.metrics", "normalized_cut", {})
    assert ".. autofunction:: normalized_cut\n" in function
    assert "In the guide" not in function
    # What an operator takes unchanged from its base class is on the page of that class.
    methods, _ = script["own_members"](kernels.BlockwiseKernel, frozenset({kernels.KernelOperator}))
    assert "dense" in methods
    assert "gram_factor" not in methods
    assert "gram_factor" in script["own_members"](kernels.BlockwiseKernel)[0]  # no page of the base class
    assert "gram_factor" in script["own_members"](kernels.KernelOperator)[0]
