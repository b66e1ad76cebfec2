"""CORe50: 50 objects filmed in 11 sessions, 128 x 128, from a zip or a folder s*/o*/*.png.

Images are read on request. Class ids are object numbers minus one; id // 5 is the category.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from everlearn.stream.datasets.file_tree import FileTree, LazyImages, find_file_tree
from everlearn.stream.datasets.files import Arrays, Ints, Origin, check_labels, corrupt

SIDE = 128
OBJECTS = 50
TEST_SESSIONS = (3, 7, 10)
ORIGIN = Origin("CORe50", "vlomonaco.github.io/core50 (core50_128x128.zip)", "core50")
PATH = re.compile(r"(?:^|/)s(\d{1,2})/o(\d{1,2})/[^/\s]+\.png$")


def read_core50(folder: Path) -> Arrays:
    """List the frames at hand; sessions 3, 7 and 10 are the official test set."""
    tree = image_tree(folder)
    names = [name for name in tree.names() if PATH.search(name)]
    if not names:
        raise corrupt(tree.root, "it holds no s*/o*/*.png")
    sessions, labels = parse_paths(names, tree.root)
    images = LazyImages(tree, names, SIDE, ORIGIN, folder)
    return Arrays(images, labels, test=np.isin(sessions, TEST_SESSIONS), sessions=sessions)


def image_tree(folder: Path) -> FileTree:
    """Find the folder of frames or its zip."""
    tree = find_file_tree(folder / ORIGIN.place, "core50_128x128")
    if tree is None:
        raise ORIGIN.missing(folder, ["core50_128x128.zip (or the folder core50_128x128)"])
    return tree


def parse_paths(names: list[str], where: Path | str) -> tuple[Ints, Ints]:
    """Return the session and the class id of every path s*/o*/*.png."""
    found = [match.groups() for name in names if (match := PATH.search(name))]
    numbers = np.array(found, np.int64)
    return numbers[:, 0], check_labels(numbers[:, 1] - 1, OBJECTS, where)
