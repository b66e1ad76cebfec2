"""Omniglot: 1623 handwritten characters, 20 drawings each, from two zips or the folders in them."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from everlearn.stream.datasets.file_tree import FileTree, decode_png, find_file_tree
from everlearn.stream.datasets.files import Arrays, Ints, Origin, corrupt

SIDE = 105
ORIGIN = Origin("Omniglot", "github.com/brendenlake/omniglot (folder python)", "omniglot-py")
_DRAWER = re.compile(r"(\d+)\.png$")
_SETS = ("images_background", "images_evaluation")


def read_omniglot(folder: Path) -> Arrays:
    """Read all images, 105 x 105, black on white.

    A class is a character: ids follow (alphabet, character) in the background set, then in the
    evaluation set. The two sets differ in alphabets; the stream splits train from test images.
    A session is one of the 20 people who drew; their number ends each file name.
    """
    trees = {name: find_file_tree(folder / ORIGIN.place, name) for name in _SETS}
    missing = [f"{name}.zip" for name, tree in trees.items() if tree is None]
    if missing:
        raise ORIGIN.missing(folder, missing)
    files = [file for tree in trees.values() if tree is not None for file in _files(tree)]
    images = np.empty((len(files), 1, SIDE, SIDE), np.uint8)
    labels = np.empty(len(files), np.int64)
    known: dict[tuple[Path, str], int] = {}
    for row, (tree, name) in enumerate(files):
        images[row, 0] = decode_png(tree.read(name), tree.label(name), "L", SIDE)
        labels[row] = known.setdefault((tree.root, name.rsplit("/", 1)[0]), len(known))
    return Arrays(images, labels, sessions=_people(files))


def _files(tree: FileTree) -> list[tuple[FileTree, str]]:
    """The images of one set: .../alphabet/character/drawing.png."""
    names = [name for name in tree.names() if name.endswith(".png") and name.count("/") >= 2]
    if not names:
        raise corrupt(tree.root, "it holds no alphabet/character/drawing.png")
    return [(tree, name) for name in names]


def _people(files: list[tuple[FileTree, str]]) -> Ints:
    found = [_DRAWER.search(name) for _, name in files]
    if None in found:
        tree, name = files[found.index(None)]
        raise corrupt(
            tree.label(name), "its name does not end in the number of the person who drew it"
        )
    return np.array([int(match[1]) for match in found if match], np.int64)
