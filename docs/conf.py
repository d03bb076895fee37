"""Configuration of the documentation; ``make docs`` builds it with warnings as errors and without a network."""

import re
import sys
from importlib.metadata import version as installed
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))  # for the extensions of this folder, whose names begin with an underscore
sys.path.insert(0, str(HERE.parent))  # for the package of the published experiments, which is not installed

from _pictures import THUMBNAIL  # noqa: E402  (found on the path set above)

project = "kernelweave"
author = "The kernelweave developers"
copyright = "the kernelweave developers"
release = version = installed("kernelweave")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx.ext.viewcode",
    "numpydoc",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "_api",
    "_charts",
    "_formulas",
    "_pictures",
]
exclude_patterns = ["_build", "_only_here.md"]
html_math_renderer = "mathml"

myst_enable_extensions = ["attrs_block", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

# Pages of classes and functions are written by _api.
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
    "within_subsection_order": "_pictures.GalleryOrder",
    "abort_on_example_error": True,
    "backreferences_dir": "gallery/backreferences",
    "doc_module": ("kernelweave",),
    "capture_repr": (),
    "copyfile_regex": "",
    "download_all_examples": False,
    "inspect_global_variables": False,
    "min_reported_time": 3600,
    "show_signature": False,
    "thumbnail_size": THUMBNAIL,
    "write_computation_times": False,
}

html_theme = "pydata_sphinx_theme"
html_title = "kernelweave"
html_static_path = ["_static"]
html_css_files = ["extra.css"]
html_favicon = "_static/mark.svg"
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "kernelweave", "image_light": "_static/mark.svg", "image_dark": "_static/mark.svg"},
    "header_links_before_dropdown": 7,
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "show_prev_next": False,
    "show_toc_level": 2,
    "secondary_sidebar_items": {"**": ["page-toc"], "index": [], "gallery/index": []},
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "tango",
    "pygments_dark_style": "github-dark",
}
html_sidebars = {"index": [], "search": [], "gallery/index": [], "results": [], "scoreboard": []}


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
