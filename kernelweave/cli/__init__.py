"""The command line: ``kernelweave COMMAND``.

Exit codes are 0 for success and 2 for bad input, with one line on standard error and nothing written; commands that
have more list them in their help. A reader that closes the pipe early does not change the code. The application is
built when it is called and each command imports what it needs when it runs, so that ``kernelweave --help`` is quick.
"""

import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from importlib import metadata
from typing import TYPE_CHECKING, Annotated, Any

if TYPE_CHECKING:
    import typer


_PASS_ON = {"allow_extra_args": True, "ignore_unknown_options": True, "allow_interspersed_args": False}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line with ``argv`` (default: the process's arguments) and return the exit code."""
    begun = time.perf_counter()
    return run_app(build_app(), argv, "kernelweave", begun)


def run_app(app: "typer.Typer", argv: Sequence[str] | None, program: str, begun: float | None = None) -> int:
    """Run an application and return the exit code; a fault is one line on standard error.

    Commands find in ``obj`` of their context when they began, in seconds of ``time.perf_counter``.
    """
    import typer

    # The base of all usage errors; typer brings its own copy of it or click's, depending on the version.
    usage_error: Any = next(base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException")
    arguments = None if argv is None else list(argv)
    try:
        code = app(
            args=arguments,
            prog_name=program,
            standalone_mode=False,
            obj=time.perf_counter() if begun is None else begun,
        )
    except typer.Abort:
        return 130
    except usage_error as error:
        sys.stderr.write(f"kernelweave: {_with_remedy(' '.join(error.format_message().split()))}\n")
        return 2
    except SystemExit as end:  # of typer and rich where the reader of a pipe has gone
        if end.code != 1:
            raise
        return 0
    except OSError as error:
        from kernelweave.cli.messages import drop_output, system_error_text

        drop_output()
        with suppress(OSError):
            sys.stderr.write(f"kernelweave: {system_error_text(error)}\n")
        return 2
    return code or 0


def _with_remedy(message: str) -> str:
    """Return what is wrong with an option, and where to look it up unless the message suggests something already."""
    text = message if message.endswith((".", "?", ")")) else f"{message}."
    return text if "Did you mean" in text or "ossible" in text else f"{text} See 'kernelweave COMMAND --help'."


def build_app() -> "typer.Typer":
    """Return the application with all its commands."""
    import typer

    from kernelweave.cli.cluster import cluster
    from kernelweave.cli.compare import compare
    from kernelweave.cli.data import add_data_commands
    from kernelweave.cli.methods import methods
    from kernelweave.cli.plan import plan
    from kernelweave.cli.predict import predict
    from kernelweave.cli.report import report
    from kernelweave.cli.reproduce import reproduce
    from kernelweave.cli.scoreboard import scoreboard

    app = typer.Typer(
        name="kernelweave",
        help="Clustering of data given as kernels, similarities, graphs or several views at once.",
        add_completion=False,
        rich_markup_mode="markdown",
        pretty_exceptions_enable=False,
    )
    _add_start(app)
    for command in (cluster, predict, report, methods, compare, plan):
        app.command()(command)
    add_data_commands(app)
    # All that follows these names belongs to the experiments, which have command lines of their own.
    app.command(add_help_option=False, context_settings=_PASS_ON)(reproduce)
    app.command(add_help_option=False, context_settings=_PASS_ON)(scoreboard)
    _add_demo(app)
    return app


def _add_start(app: "typer.Typer") -> None:
    import typer

    @app.callback(invoke_without_command=True)
    def start(
        context: typer.Context,
        version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
    ) -> None:
        if version:
            typer.echo(f"kernelweave {metadata.version('kernelweave')}")
            raise typer.Exit
        if context.invoked_subcommand is None:
            typer.echo(context.get_help())


def _add_demo(app: "typer.Typer") -> None:
    import typer

    @app.command()
    def demo(
        quiet: Annotated[bool, typer.Option("--quiet", help="Show the table alone, no progress.")] = False,
    ) -> None:
        """Cluster five views of handwritten digits and show how well each method does."""
        from kernelweave.cli.demo import demo as run_demo

        run_demo(quiet=quiet)
