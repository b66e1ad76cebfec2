"""What the command line says: results to stdout, one red line to stderr when something is wrong."""

from pathlib import Path

import typer


def tell(words: str) -> None:
    """Say how it went."""
    typer.echo(printable(words))


def tell_file(path: Path) -> None:
    """Say which file was written, and how large it is."""
    tell(f"wrote {path} ({max(1, round(path.stat().st_size / 1000))} kB)")


def complain(words: str) -> None:
    """Say in one line what is wrong."""
    typer.secho(f"error: {printable(words)}", fg="red", err=True)


def in_words(error: Exception) -> str:
    """Tell an error, without its number."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    return str(error) or type(error).__name__


def printable(words: str) -> str:
    """Put a text on one line that every terminal can show."""
    return "".join(c if c.isprintable() else "?" for c in " ".join(words.split()))
