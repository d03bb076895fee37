"""The vocabulary check of `make lint` finds the phrases of its table, where they are, and nothing else."""

import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

pytestmark = pytest.mark.skipif(not (ROOT / "scripts").is_dir(), reason="the scripts are not part of this copy")


@pytest.fixture(scope="module")
def vocabulary():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "scripts"))
        return importlib.import_module("vocabulary")


@pytest.fixture
def found(vocabulary, tmp_path):
    def look(text, name="page.md"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return vocabulary.findings(path, tmp_path)

    return look


def test_every_phrase_is_found_in_its_example(vocabulary, found):
    for phrase in vocabulary.PHRASES:
        instead = [each.instead for each in found(phrase.example)]
        assert phrase.instead in instead, phrase.example


@pytest.mark.parametrize(
    "text",
    [
        "It has two parts: the first is read at once, and both parts of it are kept.",
        "There is no edge in it, and where there\nis no noise there are no outliers.",
        "A fit is no longer slow, and 0 is no better than chance.",
        "The steps a run takes, the samples a view lacks and 0 where a sample is absent.",
        "What a million samples need: hundreds of steps per start, O(n d k) per iteration.",
        "In half a second a view of ten columns is read.",
        "Tens of thousands of samples.",
        "Compare with the table; it has had its day.",
        "[The guide](guide.md) explains it, and [`KernelKMeans`](api.md) has an example.",
        "See [choosing a method](choosing.md). It has a chart.",
    ],
)
def test_plain_english_is_left_alone(found, text):
    assert found(text) == []


@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        ("Cost: O((n + d) k) a step, from where the last one ended.", "O((n + d) k) a step"),
        ("| `PifsKMeans` | n² d a view |\n| `MinMaxKMeans` | none |", "d a view"),
        ("It keeps 32 MB a view and 744 a second.", "MB a view"),
        ("They are no neighbours.", "are no neighbours."),
        ("The kernel cannot part the rings.", "cannot part the rings"),
        ("Read on. [Graph fusion](graph_fusion.md) explains it.", ". [Graph fusion](graph_fusion.md) explains"),
    ],
)
def test_other_forms_of_a_phrase_are_found(found, text, phrase):
    assert found(text)[0].found == phrase


def test_a_phrase_is_found_across_lines_but_not_across_paragraphs(found):
    (finding,) = found("First line.\n\nTwo lines: views are counted\nand a number of them ended by\nitself.\n")
    assert (finding.path, finding.line, finding.found) == ("page.md", 4, "ended by itself")
    assert found("It is\n\nno end.") == []


def test_docstrings_comments_and_messages_of_python_are_read_and_its_names_are_not(found):
    source = '''"""One line.

    Whether it ended
    by itself.
    """

alike = 1  # what is
# no comment
# follows: it is no
# number
raise ValueError(
    f"{alike} is "
    f"no number: {'alike'}"
)
'''
    lines = [(each.line, each.found) for each in found(source, "module.py")]
    assert lines == [(3, "ended by itself"), (9, "is no number"), (12, "is no number:"), (13, "alike")]


def test_a_line_may_be_kept(found):
    assert found("A formula: 8 bytes a view. <!-- vocabulary: keep, it quotes the source -->") == []


def test_the_command_names_the_place_and_what_to_write_or_counts(vocabulary, tmp_path, capsys):
    page = tmp_path / "page.md"
    page.write_text("Two a second.\n\nMethods to compare with. It is no number.\n", encoding="utf-8")
    assert vocabulary.main([str(page)]) == 1
    assert f"{page.as_posix()}:3: 'to compare with': write 'baseline'" in capsys.readouterr().out
    assert vocabulary.main(["--count", str(page)]) == 1
    assert capsys.readouterr().out.split("\n")[0] == f"   3  {page.as_posix()}"
    page.write_text("Plain.", encoding="utf-8")
    assert vocabulary.main([str(page)]) == 0
    assert capsys.readouterr().out == "vocabulary: no phrases to replace\n"


def test_pages_modules_and_tests_of_the_project_are_looked_at(vocabulary):
    names = {path.relative_to(ROOT).as_posix() for path in vocabulary.pages(ROOT)}
    assert {"README.md", "docs/index.md", "docs/guide/choosing.md", "kernelweave/cli/catalogue.py"} <= names
    assert "scripts/vocabulary.py" not in names
    assert not any("_build" in name for name in names)
