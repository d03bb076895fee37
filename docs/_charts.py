"""Charts with links, put into the page itself: their links work there, and their colours follow the page.

An ``<img>`` shows the same chart without links; that is what other readers of the Markdown files see.
"""

from pathlib import Path

from docutils import nodes

INLINE = ("choosing.svg",)
STATIC = Path(__file__).parent / "_static"


def put_in_place(app, doctree, docname):
    """Replace the images of the list by their markup, in pages of HTML."""
    if app.builder.format != "html":
        return
    for image in list(doctree.findall(nodes.image)):
        name = Path(image["uri"]).name
        if name not in INLINE:
            continue
        app.env.note_dependency(str(STATIC / name))
        markup = (STATIC / name).read_text(encoding="utf-8")
        image.replace_self(nodes.raw("", f'<div class="chart">{markup}</div>', format="html"))


def setup(app):
    """Connect what the charts need."""
    app.connect("doctree-resolved", put_in_place)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
