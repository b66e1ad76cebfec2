"""The command line: every bad input ends in one line on stderr and exit code 2."""

import os
import sys
from collections.abc import Sequence
from typing import Annotated, Any, NoReturn

import typer

from everlearn.cli.ask import app as ask
from everlearn.cli.bench import app as bench
from everlearn.cli.compare import compare
from everlearn.cli.draw import app as draw
from everlearn.cli.export import export
from everlearn.cli.jobs import StoppedError
from everlearn.cli.latents import latents
from everlearn.cli.messages import error_message, print_error
from everlearn.cli.methods import methods
from everlearn.cli.pretrain import pretrain
from everlearn.cli.quickstart import quickstart
from everlearn.cli.report import report
from everlearn.cli.reproduce import reproduce
from everlearn.cli.run import resume
from everlearn.cli.run import run as learn
from everlearn.cli.tune import tune
from everlearn.cli.verify import verify
from everlearn.core.version import __version__

BAD_INPUT, STOPPED = 2, 130
# The base of typer's errors about options; newer versions of typer keep it to themselves.
_USAGE: Any = typer.BadParameter.mro()[1]

app = typer.Typer(
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)
# Settings of methods are not typer options: they are parsed from the extra arguments.
_FREE = {"ignore_unknown_options": True}
app.command()(quickstart)
app.command(context_settings=_FREE)(learn)
app.command()(resume)
app.command(context_settings=_FREE)(compare)
app.command()(reproduce)
app.command()(tune)
app.command()(report)
app.command()(verify)
app.command()(methods)
app.command()(pretrain)
app.command()(latents)
app.add_typer(draw, name="draw")
app.command()(export)
app.add_typer(bench, name="bench")
app.add_typer(ask, name="ask")


@app.callback(invoke_without_command=True)
def start(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Endless, reproducible streams of shapes for continual learning."""
    if version:
        typer.echo(f"everlearn {__version__}")
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and leave with its exit code."""
    # Threads that wait without spinning: twice as fast where another process wants a core, too.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    sys.exit(run(arguments))


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    0 when all went well, 1 when a repeated run differs or none can be compared, 2 for bad input, 130 when
    stopped by hand.
    """
    try:
        code = app(args=arguments, prog_name="everlearn", standalone_mode=False)
    except (KeyboardInterrupt, typer.Abort):
        code = STOPPED
    except StoppedError as error:
        print_error(str(error))
        return STOPPED
    except _USAGE as error:
        print_error(error.format_message())
        return BAD_INPUT
    except (ValueError, TypeError, IndexError, OSError, ImportError) as error:
        print_error(error_message(error))
        return BAD_INPUT
    except (ArithmeticError, RuntimeError) as error:
        print_error(_explain(error))
        return BAD_INPUT
    if code == STOPPED:
        print_error("stopped by hand")
    return code if isinstance(code, int) else 0


def _explain(error: Exception) -> str:
    """Tell what stopped a learner; any other error is a fault of ours and is raised again."""
    import torch

    from everlearn.evaluation.costs import DivergedError

    if isinstance(error, torch.OutOfMemoryError):
        return (
            "the GPU is out of memory; lower --batch-size or --size, or use --device cpu, "
            "in another folder"
        )
    if not isinstance(error, DivergedError):
        raise error
    return str(error)
