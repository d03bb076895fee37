"""``kernelweave data``: the benchmark sets, which of them are here, and how to download the others."""

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from kernelweave.cli import messages, options

Folder = Annotated[
    Path | None,
    typer.Option(
        "--data", metavar="DIR", help="Folder of the sets; default: KERNELWEAVE_DATA, or the user's data folder."
    ),
]


def add_data_commands(app: typer.Typer) -> None:
    """Add the commands on benchmark sets to the application."""
    commands = typer.Typer(rich_markup_mode="markdown", add_completion=False)
    commands.callback(invoke_without_command=True)(_start)
    commands.command("list")(list_sets)
    commands.command("fetch")(fetch_sets)
    commands.command("check")(check_content)
    app.add_typer(commands, name="data", help="Download benchmark sets, and show and check those that are here.")


def _start(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def list_sets(folder: Folder = None, as_json: options.AsJson = False) -> None:
    """Show the benchmark sets: name, what it is, where it comes from, and whether it is here."""
    with messages.guarded("data list"):
        entries = list(_entries(folder))
    if as_json:
        messages.put("data list", json.dumps(entries, indent=2) + "\n")
        return
    known_width = os.environ.get("COLUMNS", "").isdecimal() or Console().is_terminal
    table = Table(box=None, pad_edge=False)
    for column in ("set", "what", "from", "here"):
        table.add_column(column, no_wrap=column in ("set", "here"), overflow="fold")
    for each in entries:
        owner = each["from"].partition("/")[0]
        table.add_row(each["name"], each["what"], owner, "yes" if each["here"] else "no")
    messages.put("data list", messages.rendered(None if known_width else messages.WIDE, table))


def fetch_sets(
    names: Annotated[list[str] | None, typer.Argument(metavar="NAME...", help="The sets to download.")] = None,
    every: Annotated[bool, typer.Option("--all", help="All sets that are public.")] = False,
    folder: Folder = None,
    force: Annotated[bool, typer.Option("--force", help="Replace files with different contents.")] = False,
    timeout: Annotated[float, typer.Option(min=0.1, metavar="S", help="Seconds to wait for a server.")] = 30.0,
    quiet: options.Quiet = False,
) -> None:
    """Download benchmark sets from their public sources, convert them and verify their contents.

    Sets that are here already are verified and not downloaded again. Files whose checksums differ from those in the
    library are not kept.

    Exit code: 0 when all sets are here, 2 for bad input, 3 when a set could not be downloaded; the others are in place.
    """
    from kernelweave.datasets.fetching import chosen_sets, fetch
    from kernelweave.foundation.errors import DataError

    if every == bool(names):
        messages.fail("data fetch", "Name the sets, or give --all; 'kernelweave data list' shows what there is.")
    failed = 0
    with messages.guarded("data fetch"):
        chosen = chosen_sets(names or None)
        for each in chosen:
            try:
                done = fetch(each.name, data_dir=folder, force=force, timeout=timeout, progress=not quiet)
            except DataError as error:
                failed += 1
                reason = messages.in_one_line(str(error)).replace("force=True", "--force")
                messages.tell(f"kernelweave data fetch: {reason}")
                continue
            if not quiet:
                messages.put("data fetch", f"{each.name}: {done[each.name]}\n")
    if failed:
        messages.fail("data fetch", f"{failed} of {len(chosen)} sets could not be fetched.", code=3)


def check_content(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME...", help="The sets to check; default: all that are here.")
    ] = None,
    folder: Folder = None,
    as_json: options.AsJson = False,
) -> None:
    """Verify the contents of the files of benchmark sets.

    Exit code: 0 when all are verified, 1 when a file has different contents or a named set is not here, 2 for bad
    input.
    """
    from kernelweave.datasets.fetching import check_sets

    with messages.guarded("data check"):
        states = check_sets(names or None, data_dir=folder)
    shown = {name: state for name, state in states.items() if names or state != "missing"}
    if as_json:
        messages.put("data check", json.dumps(shown, indent=2) + "\n")
    elif shown:
        messages.put("data check", "".join(f"{name}: {state}\n" for name, state in shown.items()))
    else:
        messages.put("data check", "No set of the catalogue is here; 'kernelweave data fetch NAME' downloads one.\n")
    if any(state != "verified" for state in shown.values()):
        raise typer.Exit(1)


def _entries(folder: Path | None) -> Iterable[dict[str, Any]]:
    from kernelweave.datasets.fetching import chosen_sets, set_file
    from kernelweave.datasets.folders import data_directory
    from kernelweave.foundation.errors import DataError

    try:
        root = data_directory(folder)
    except DataError:
        if folder is not None:
            raise
        root = None
    for each in chosen_sets(None, all_sets=True):
        here = root is not None and set_file(each, root).exists()
        addresses = sorted({file.address for source in each.sources for file in source.files})
        yield {"name": each.name, "what": each.about, "from": each.origin, "addresses": addresses, "here": here}
