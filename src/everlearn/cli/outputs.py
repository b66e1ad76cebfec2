"""Files of which others may be made: a command writes a new one and never over an old one."""

from pathlib import Path


def check_new_file(out: Path, suffix: str = ".npz") -> None:
    """Raise where a file is there already, or its name has another ending."""
    if out.suffix != suffix:
        raise ValueError(f"--out must end in {suffix}, found {str(out)!r}")
    if out.exists():
        raise ValueError(f"{out} is there already, and runs may rest on it; give another --out")
