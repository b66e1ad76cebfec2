"""The oracle: it knows how queries come about and looks for the map that makes one a canonical picture."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

import torch
from torch import Tensor
from torch.nn.functional import adaptive_avg_pool2d, grid_sample

from everlearn.border import check_whole

# Sides in pixels. A coarse picture forgives the gaps of the grid; a finer one tells shapes apart.
_COARSE, _FINE = 16, 32
_NEARER = 0.7  # how far away the neighbours of a map are in the next round, as a share
# A map itself, and one step up or down in each of its numbers.
_NEIGHBOURS = torch.cat((torch.zeros(1, 4), torch.eye(4), -torch.eye(4)))


@dataclass(frozen=True)
class Search:
    """Undoes a grid of maps, improves the best for each choice, takes the one that fits best.

    A map is four numbers: scale, orientation in radians, and the shift along x and y.

    Args:
        scales: values from 0.5 to 1.
        angles: values of a whole turn.
        places: values of x, and of y.
        starts: how many maps are improved for each choice.
        rounds: how many times each goes to the best of its eight neighbours.
    """

    scales: int = 4
    angles: int = 24
    places: int = 9
    starts: int = 4
    rounds: int = 9

    def __post_init__(self) -> None:
        """Check every number."""
        for field in fields(self):
            check_whole(getattr(self, field.name), field.name, 2, 256)

    @torch.no_grad()
    def choose(self, query: Tensor, choices: Tensor) -> int:
        """Choose the picture that can be laid onto the query best; on a CPU, wherever they are."""
        query, choices, grid = query.cpu(), choices.cpu(), self._grid()
        seen = undo(_shrink(query[None], _COARSE), grid[None])[0]
        differences = torch.cdist(_shrink(choices, _COARSE).flatten(1), seen)
        starts = grid[differences.topk(self.starts, largest=False).indices]
        return int(self._improve(query, choices, starts).argmin())

    def _improve(self, query: Tensor, choices: Tensor, maps: Tensor) -> Tensor:
        """How far (n,) each choice is from the query, from maps (n, starts, 4) on.

        Choices are laid onto the query, not the other way round: a small shape made large is a blur.
        """
        goal, pictures = _shrink(query, _FINE).flatten(), _shrink(choices, _FINE)
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
        scale, shift = torch.linspace(0.5, 1.0, self.scales), torch.linspace(-0.5, 0.5, self.places)
        angle = 2 * math.pi * torch.arange(self.angles) / self.angles
        return torch.cartesian_prod(scale, angle, shift, shift)

    def _steps(self) -> Tensor:
        """Half the gaps of the grid: how far away neighbours are at first."""
        shift = 1 / (self.places - 1)
        gaps = (0.5 / (self.scales - 1), 2 * math.pi / self.angles, shift, shift)
        return torch.tensor(gaps) / 2


def undo(pictures: Tensor, maps: Tensor) -> Tensor:
    """See each picture (B, C, S, S) through its maps (B, G, 4), as `warp.normalise`; (B, G, C * S * S)."""
    turn, shift = _as_complex(maps)
    return _sample(pictures, turn * _centres(pictures.shape[-1]) + shift)


def apply(pictures: Tensor, maps: Tensor) -> Tensor:
    """Draw each picture under its maps: what `undo` undoes."""
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
