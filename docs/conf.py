"""Configuration of the documentation; ``make docs`` builds it with warnings as errors and without a network."""

from importlib.metadata import version as installed

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

html_theme = "furo"
html_title = f"kernelweave {release}"
html_static_path = ["_static"]
