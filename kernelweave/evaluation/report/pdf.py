"""A page as PDF, printed by Chromium where it is there."""

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from kernelweave.foundation.errors import MissingPackageError

#: Names of Chromium on the path, and the variable that names another place.
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
VARIABLE = "KERNELWEAVE_CHROMIUM"
# Seconds after which Chromium is given up.
PATIENCE = 120
# It starts without a profile, asks nobody for anything, and resolves no name.
OPTIONS = (
    "--headless",
    "--disable-gpu",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--disable-dev-shm-usage",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--no-pdf-header-footer",
)
# When it was printed, which would make files of the same data differ.
DATES = re.compile(rb"/(CreationDate|ModDate) ?\(D:[^)]*\)")


def find_chromium() -> str:
    """Return the program that prints pages.

    Raises MissingPackageError where there is none.
    """
    named = os.environ.get(VARIABLE)
    if named:
        found = shutil.which(named)
        if found is None:
            raise MissingPackageError(
                f"A PDF needs Chromium, and {VARIABLE}={named} is not a program; correct or unset it."
            )
        return found
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        raise MissingPackageError(
            f"A PDF needs Chromium, and none of {', '.join(BROWSERS[:3])} is on the path; install it, name it in "
            f"{VARIABLE}, or write the report as .html and print that."
        )
    return found


def as_pdf(html: str) -> bytes:
    """Return a page as PDF, without a date.

    Raises MissingPackageError where Chromium is not there or cannot print.
    """
    program = find_chromium()
    with tempfile.TemporaryDirectory(prefix="kernelweave-pdf-", ignore_cleanup_errors=True) as folder:
        source = Path(folder, "report.html")
        result = Path(folder, "report.pdf")
        source.write_text(html, encoding="utf-8")
        command = [program, *OPTIONS, f"--user-data-dir={folder}/profile", f"--print-to-pdf={result}", source.as_uri()]
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            command.insert(1, "--no-sandbox")  # Chromium refuses to run as root with it
        try:
            ended = subprocess.run(command, capture_output=True, timeout=PATIENCE, check=False)
        except (subprocess.TimeoutExpired, OSError) as error:
            raise MissingPackageError(_failure(program, str(error))) from error
        if not result.exists():
            lines = ended.stderr.decode(errors="replace").strip().splitlines() or [f"it ended with {ended.returncode}"]
            raise MissingPackageError(_failure(program, lines[-1]))
        return DATES.sub(_undated, result.read_bytes())


def _failure(program: str, reason: str) -> str:
    return f"{program} could not print the report as PDF ({reason}); write it as .html and print that."


def _undated(date: re.Match[bytes]) -> bytes:
    """Return a date of the same length without its figures, so that places in the file stay as they are."""
    return re.sub(rb"\d", b"0", date[0])
