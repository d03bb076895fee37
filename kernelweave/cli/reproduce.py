"""``kernelweave reproduce``: the way to the published experiments, which are in a checkout and not in a wheel.

This is the only place where the library knows about ``reproduction``, and it looks there when the command runs.
"""

from pathlib import Path

import typer

from kernelweave.cli import messages

NOT_HERE = (
    "The published experiments are part of the source repository, not of the installed package; in a checkout of it, "
    "run 'python -m reproduction'."
)


def reproduce(context: typer.Context) -> None:
    """Recompute published tables and compare them with the printed ones (in a checkout)."""
    if not _in_checkout():
        messages.fail("reproduce", NOT_HERE)
    from reproduction.command import main

    raise typer.Exit(main(context.args, program="kernelweave reproduce"))


def _in_checkout() -> bool:
    """Whether the experiments are next to this package; another package of that name does not count."""
    return (Path(__file__).parents[2] / "reproduction" / "command.py").is_file()
