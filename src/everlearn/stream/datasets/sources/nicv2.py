"""NICv2 of CORe50 (Lomonaco et al. 2020): the official lists of the frames of every task.

The lists alone determine the stream; a frame is opened only when it is read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from everlearn.stream.datasets.file_tree import FileTree, LazyImages
from everlearn.stream.datasets.files import Arrays, Origin, check_labels, corrupt
from everlearn.stream.datasets.sources import core50

ORIGIN = Origin(
    "the file lists of CORe50 NICv2",
    "vlomonaco.github.io/core50 (batches_filelists_NICv2.zip)",
    "core50",
)
# The number of tasks of a stream, and the usual number of classes of a task after the first.
TASKS = {79: 5, 196: 2, 391: 1}
_LINE = re.compile(r"(s\d{1,2}/o\d{1,2}/[^/\s]+\.png) (\d{1,2})")


@dataclass(frozen=True)
class FileLists:
    """The scenario nicv2-79, -196 or -391: ten classes first, then old and new classes in new sessions.

    Args:
        tasks: 79, 196 or 391.
        run: the number of the official class order.
    """

    tasks: int = 391
    run: int = 0

    def __post_init__(self) -> None:
        """Check both numbers."""
        if not isinstance(self.tasks, int) or self.tasks not in TASKS:
            raise ValueError(f"NICv2 has 79, 196 or 391 tasks, found {self.tasks!r}")
        if isinstance(self.run, bool) or not isinstance(self.run, int) or self.run < 0:
            raise ValueError(f"run must be a whole number of 0 or more, found {self.run!r}")

    @property
    def name(self) -> str:
        """The scenario's name."""
        return f"nicv2-{self.tasks}"

    @property
    def files(self) -> list[str]:
        """The official paths of the lists, training first."""
        names = [f"train_batch_{task:02d}_filelist.txt" for task in range(self.tasks)]
        place = f"NIC_v2_{self.tasks}/run{self.run}"
        return [f"{place}/{name}" for name in (*names, "test_filelist.txt")]


NAMES = tuple(FileLists(tasks).name for tasks in TASKS)


class _List(NamedTuple):
    names: list[str]
    labels: list[int]


def read_nicv2(folder: Path, lists: FileLists) -> Arrays:
    """Read the lists: the training frames in task order, then the test frames."""
    tree = _find_lists(folder, lists)
    parts = [_read_list(folder, tree, name) for name in lists.files]
    names = [name for part in parts for name in part.names]
    labels = np.array([label for part in parts for label in part.labels], np.int64)
    tasks = np.repeat([*range(lists.tasks), -1], [len(part.names) for part in parts])
    sessions, _ = core50.parse_paths(names, tree.root)
    return Arrays(
        _frames(folder, names),
        check_labels(labels, core50.OBJECTS, tree.root),
        test=tasks < 0,
        sessions=sessions,
        experiences=tasks.astype(np.int64),
    )


def _frames(folder: Path, names: list[str]) -> LazyImages:
    tree = core50.image_tree(folder)
    first = next((name for name in tree.names() if core50.PATH.search(name)), "")
    prefix = first.removesuffix("/".join(first.split("/")[-3:]))
    return LazyImages(FileTree(tree.root, prefix), names, core50.SIDE, core50.ORIGIN, folder)


def _find_lists(folder: Path, lists: FileLists) -> FileTree:
    """Find the lists in the folder NIC_v2_* or in a zip of file lists."""
    place = folder / ORIGIN.place
    wanted = lists.files[-1]
    if (place / wanted).is_file():
        return FileTree(place)
    for path in sorted(place.glob("*filelists*.zip")):
        ends = [name for name in FileTree(path).names() if name.endswith(wanted)]
        if ends:
            return FileTree(path, ends[0].removesuffix(wanted))
    raise ORIGIN.missing(folder, [wanted])


def _read_list(folder: Path, tree: FileTree, name: str) -> _List:
    try:
        text = tree.read(name).decode("ascii", "replace")
    except FileNotFoundError:
        raise ORIGIN.missing(folder, [name]) from None
    lines = text.splitlines()
    found = [_LINE.fullmatch(line) for line in lines]
    pairs = [match.groups() for match in found if match]
    if not lines or len(pairs) < len(lines):
        bad = next((line for line, match in zip(lines, found, strict=True) if not match), "nothing")
        raise corrupt(tree.label(name), f"expected lines 's1/o1/frame.png 0', found {bad!r}")
    return _List([path for path, _ in pairs], [int(label) for _, label in pairs])
