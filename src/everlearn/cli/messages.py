"""Output of the command line: results on stdout, one red line on stderr for an error."""

from pathlib import Path

import typer


def print_message(message: str) -> None:
    """Print a line on stdout."""
    typer.echo(one_line(message))


def print_written(path: Path) -> None:
    """Print which file was written and its size."""
    print_message(f"wrote {path} ({max(1, round(path.stat().st_size / 1000))} kB)")


def print_error(message: str) -> None:
    """Print an error as one line on stderr."""
    typer.secho(f"error: {one_line(message)}", fg="red", err=True)


def error_message(error: Exception) -> str:
    """Return the message of an error, without the number of an OSError."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    return str(error) or type(error).__name__


def one_line(text: str) -> str:
    """Return a text as one line that every terminal can show."""
    return "".join(c if c.isprintable() else "?" for c in " ".join(text.split()))
