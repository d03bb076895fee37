"""Configuration of the documentation; ``make docs`` builds it with warnings as errors and without a network."""

import re
import sys
from importlib.metadata import version as installed
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))  # for _pictures, which the gallery imports by name

project = "kernelweave"
author = "The kernelweave developers"
copyright = "the kernelweave developers"
release = version = installed("kernelweave")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build"]

myst_enable_extensions = ["deflist", "dollarmath"]
myst_heading_anchors = 3

# The API page lists its members itself, so that no stub files are written beside the sources.
autosummary_generate = False
autodoc_member_order = "bysource"
autodoc_typehints = "none"
numpydoc_show_class_members = False

# No inventory is fetched: a build must not need a network. Names of other packages stay plain text.
intersphinx_mapping: dict[str, tuple[str, str | None]] = {}

# examples/plot_*.py are run once and become pages; a second build runs those that changed.
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "ignore_pattern": r"^(?!(.*[/\\])?plot_)",
    "within_subsection_order": "FileNameSortKey",
    "reset_argv": "_pictures.arguments",
    "image_scrapers": ("matplotlib", "_pictures.saved_picture"),
    "abort_on_example_error": True,
    "capture_repr": (),
    "copyfile_regex": "",
    "download_all_examples": False,
    "inspect_global_variables": False,
    "min_reported_time": 3600,
    "notebook_extensions": set(),
    "show_signature": False,
    "write_computation_times": False,
}

html_theme = "furo"
html_title = f"kernelweave {release}"
html_static_path = ["_static"]
html_css_files = ["extra.css"]


def with_fragments(app, docname, source):
    """Put the entries of changelog.d where the page of changes asks for them, the newest first."""
    if docname != "changelog":
        return
    entries: dict[str, list[str]] = {}
    for path in sorted((HERE.parent / "changelog.d").glob("[0-9]*.md"), reverse=True):
        app.env.note_dependency(str(path))
        _, *parts = re.split(r"^### (.+)$", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
        for heading, body in zip(parts[::2], parts[1::2], strict=True):
            entries.setdefault(heading.strip(), []).append(body.strip())
    text = "\n\n".join(f"### {heading}\n\n" + "\n".join(bodies) for heading, bodies in entries.items())
    source[0] = source[0].replace("<!-- fragments -->", text)


def setup(app):
    """Connect what the pages need."""
    app.connect("source-read", with_fragments)
