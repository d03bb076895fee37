"""Where benchmark files lie: the folder that is named, or the user's."""

import os
from pathlib import Path

from kernelweave.foundation.errors import DataError

VARIABLE = "KERNELWEAVE_DATA"


def user_directory():
    """Return the folder that downloads go to where none is named: below XDG_DATA_HOME, or ``~/.local/share``."""
    base = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(base) / "kernelweave"


def data_directory(data_dir=None):
    """Return the folder to read from: ``data_dir``, the one KERNELWEAVE_DATA names, or the user's if it is there."""
    folder = _named(data_dir)
    if not folder:
        if user_directory().is_dir():
            return user_directory()
        raise DataError(
            f"No data directory is set: pass data_dir= or set the environment variable {VARIABLE} "
            "to the directory that holds the .npz files; 'kernelweave data fetch NAME' downloads public sets."
        )
    directory = Path(folder).expanduser()
    if not directory.is_dir():
        raise DataError(_not_a_directory(data_dir, folder))
    return directory


def download_directory(data_dir=None):
    """Return the folder to download to, which is made where it is missing."""
    folder = _named(data_dir) or user_directory()
    directory = Path(folder).expanduser()
    if directory.exists() and not directory.is_dir():
        raise DataError(_not_a_directory(data_dir, folder))
    directory.mkdir(parents=True, exist_ok=True)
    return directory


def _named(data_dir):
    return os.environ.get(VARIABLE) if data_dir is None else data_dir


def _not_a_directory(data_dir, folder):
    source = VARIABLE if data_dir is None else "data_dir"
    return f"{source}={str(folder)!r} is not a directory: name the one that holds the .npz files."
