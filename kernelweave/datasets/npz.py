"""Reading ``.npz`` files without ever unpickling anything."""

import zipfile
import zlib

import numpy as np

from kernelweave.foundation.errors import DataError


def read_arrays(path):
    """Return every array of the file by name; object arrays would need unpickling and are refused."""
    try:
        with np.load(path, allow_pickle=False) as stored:
            return {key: stored[key] for key in stored.files}
    except (ValueError, TypeError, AttributeError, OSError, EOFError, zipfile.BadZipFile, zlib.error) as reason:
        raise DataError(
            f"The file {path.name} cannot be read ({reason}): write it with numpy.savez_compressed from "
            "arrays of numbers and strings."
        ) from reason
