"""The oracle player: it searches for the affine map between the query and each choice."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

import torch
from torch import Tensor
from torch.nn.functional import adaptive_avg_pool2d, grid_sample

from everlearn.core.validate import check_int

# Sides in pixels. A coarse picture forgives the gaps of the grid; a finer one tells shapes apart.
_COARSE, _FINE = 16, 32
_NEARER = 0.7  # how far away the neighbours of a map are in the next round, as a share
# A map itself, and one step up or down in each of its numbers.
_NEIGHBOURS = torch.cat((torch.zeros(1, 4), torch.eye(4), -torch.eye(4)))


@dataclass(frozen=True)
class AffineSearch:
    """Tries a grid of maps, refines the best for each choice, and takes the choice that fits best.

    A map is four numbers: scale, orientation in radians, and the shift along x and y.

    Args:
        scales: values from 0.5 to 1.
        angles: values of a whole turn.
        places: values of x and of y.
        starts: maps that are refined for each choice.
        rounds: refinement steps, each to the best of the eight neighbours.
    """

    scales: int = 4
    angles: int = 24
    places: int = 9
    starts: int = 4
    rounds: int = 9

    def __post_init__(self) -> None:
        """Check every number."""
        for field in fields(self):
            check_int(getattr(self, field.name), field.name, 2, 256)

    @torch.no_grad()
    def choose(self, query: Tensor, choices: Tensor) -> int:
        """Choose the picture that can be mapped onto the query best; computed on the CPU."""
        query = query.cpu()
        choices = choices.cpu()
        grid = self._grid()
        seen = undo(_shrink(query[None], _COARSE), grid[None])[0]
        differences = torch.cdist(_shrink(choices, _COARSE).flatten(1), seen)
        starts = grid[differences.topk(self.starts, largest=False).indices]
        return int(self._improve(query, choices, starts).argmin())

    def _improve(self, query: Tensor, choices: Tensor, maps: Tensor) -> Tensor:
        """Return the distance (n,) of each choice from the query, refining maps (n, starts, 4).

        Choices are mapped onto the query, not the reverse: enlarging a small shape blurs it.
        """
        goal = _shrink(query, _FINE).flatten()
        pictures = _shrink(choices, _FINE)
        steps = self._steps()
        for _ in range(self.rounds):
            around = maps[:, :, None] + steps * _NEIGHBOURS
            drawn = apply(pictures, around.flatten(1, 2))
            least, best = (drawn - goal).square().mean(2).reshape(around.shape[:3]).min(2)
            maps = around.take_along_dim(best[..., None, None], 2).squeeze(2)
            steps = steps * _NEARER
        return least.amin(1)

    def _grid(self) -> Tensor:
        """All maps (G, 4)."""
        scale = torch.linspace(0.5, 1.0, self.scales)
        shift = torch.linspace(-0.5, 0.5, self.places)
        angle = 2 * math.pi * torch.arange(self.angles) / self.angles
        return torch.cartesian_prod(scale, angle, shift, shift)

    def _steps(self) -> Tensor:
        """Return half the gaps of the grid: the first distance to a neighbour."""
        shift = 1 / (self.places - 1)
        gaps = (0.5 / (self.scales - 1), 2 * math.pi / self.angles, shift, shift)
        return torch.tensor(gaps) / 2


def undo(pictures: Tensor, maps: Tensor) -> Tensor:
    """Normalise each picture (B, C, S, S) by its maps (B, G, 4); return (B, G, C * S * S)."""
    turn, shift = _as_complex(maps)
    return _sample(pictures, turn * _centres(pictures.shape[-1]) + shift)


def apply(pictures: Tensor, maps: Tensor) -> Tensor:
    """Draw each picture under its maps: the inverse of `undo`."""
    turn, shift = _as_complex(maps)
    return _sample(pictures, (_centres(pictures.shape[-1]) - shift) / turn)


def _as_complex(maps: Tensor) -> tuple[Tensor, Tensor]:
    """Maps as u -> turn * u + shift on the complex plane, which is faster than an affine grid."""
    scale, angle, x, y = maps[..., None, :].unbind(-1)
    return torch.polar(scale, angle), torch.complex(x, y)


def _sample(pictures: Tensor, points: Tensor) -> Tensor:
    """Pictures (B, C, S, S) at points (B, G, D) of the complex plane."""
    where = torch.view_as_real(points)
    seen = grid_sample(pictures, where, padding_mode="border", align_corners=False)
    return seen.transpose(1, 2).flatten(2)


def _centres(side: int) -> Tensor:
    """Centres of pixels as complex numbers, row by row, from -1 to 1."""
    line = (2 * torch.arange(side) + 1) / side - 1
    return torch.complex(line.repeat(side), line.repeat_interleave(side))


def _shrink(pictures: Tensor, side: int) -> Tensor:
    return adaptive_avg_pool2d(pictures, side)
