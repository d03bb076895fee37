"""``kernelweave scoreboard``: the way to the scoreboard, which is in a checkout and not in a wheel.

As with ``reproduce``, the library looks into ``reproduction`` when the command runs and not before.
"""

from pathlib import Path

import typer

from kernelweave.cli import messages

NOT_HERE = (
    "The scoreboard is part of the source repository, not of the installed package; in a checkout of it, install it "
    "with 'pip install -e .' and run the command again."
)


def scoreboard(context: typer.Context) -> None:
    """Run and rank all multi-view methods on the multi-view sets (in a checkout)."""
    if not _in_checkout():
        messages.fail("scoreboard", NOT_HERE)
    from reproduction.scoreboard.command import main

    raise typer.Exit(main(context.args))


def _in_checkout() -> bool:
    """Whether the scoreboard is next to this package; another package of that name does not count."""
    return (Path(__file__).parents[2] / "reproduction" / "scoreboard" / "command.py").is_file()
