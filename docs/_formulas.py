"""Formulas as MathML, which browsers draw themselves: nothing is loaded from a network, and no script runs.

docutils converts them. A formula that it does not know is an error of the build.
"""

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.errors import ExtensionError


def mathml(node: nodes.Node, *, block: bool) -> str:
    """Return a formula as MathML."""
    formula = node.astext()
    # Lines of a formula are aligned as Sphinx does for other writers.
    if block and "\\\\" in formula and "\\begin" not in formula:
        formula = f"\\begin{{aligned}}{formula}\\end{{aligned}}"
    try:
        return str(tex2mathml(formula, as_block=block))
    except MathError as error:
        raise ExtensionError(f"{node.source}:{node.line}: the formula {formula!r} cannot be drawn: {error}") from error


def inline(writer, node):
    """Write a formula of a line."""
    writer.body.append(mathml(node, block=False))
    raise nodes.SkipNode


def displayed(writer, node):
    """Write a formula that stands alone; a wide one scrolls in its own box."""
    writer.body.append(writer.starttag(node, "div", CLASS="formula"))
    writer.body.append(mathml(node, block=True))
    writer.body.append("</div>\n")
    raise nodes.SkipNode


def setup(app):
    """Name the writer of formulas; ``html_math_renderer`` chooses it."""
    app.add_html_math_renderer("mathml", (inline, None), (displayed, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
