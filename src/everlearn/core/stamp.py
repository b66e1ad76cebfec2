"""Write the build stamp, the commit and digest of a clean source tree: python -m everlearn.core.stamp.

Git ignores the stamp. Copied with the source to a machine without git metadata, it names the commit there;
a source that has changed since has another digest, and its rows are marked dirty.
"""

from __future__ import annotations

import json
import sys

from everlearn.core.files import write_file
from everlearn.core.source import PACKAGE, STAMP, git_commit, source_digest


def write_stamp() -> str:
    """Write the build stamp of a clean git checkout; return its commit."""
    commit, dirty = git_commit()
    if commit is None:
        raise ValueError(f"{PACKAGE} is not tracked by git: write the stamp in a git checkout")
    if dirty:
        raise ValueError(
            f"the source differs from commit {commit}: commit or stash the changes first"
        )
    stamp = {"commit": commit, "source_digest": source_digest()}
    write_file(STAMP, json.dumps(stamp).encode() + b"\n")
    return commit


if __name__ == "__main__":
    try:
        print(f"wrote {STAMP}: commit {write_stamp()}")
    except ValueError as error:
        sys.exit(f"no stamp written: {error}")
