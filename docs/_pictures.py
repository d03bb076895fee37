"""What the gallery needs to show pictures that an example saves to the file named on its command line."""

import shutil
import tempfile
from pathlib import Path

from sphinx_gallery.scrapers import figure_rst

_folder = tempfile.TemporaryDirectory(prefix="kernelweave-gallery-")  # removed when the build ends
#: Where examples save; the file is taken away after each of them.
PLACE = Path(_folder.name, "picture.png")


def arguments(gallery_conf, script_vars):
    """Return the command line of an example: the file to draw into."""
    return [str(PLACE)]


def saved_picture(block, block_vars, gallery_conf):
    """Return the picture that an example saved, if it did."""
    if not PLACE.exists():
        return ""
    picture = next(block_vars["image_path_iterator"])
    shutil.move(PLACE, picture)
    return figure_rst([picture], gallery_conf["src_dir"])
