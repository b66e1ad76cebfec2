"""CWR heads: rows that are learned within an experience, beside the rows that are kept of all of them.

CWR (Lomonaco and Maltoni 2017, arXiv 1705.03550), CWR+ (Maltoni and Lomonaco 2019, arXiv 1806.08568) and
CWR* (Lomonaco et al. 2020, arXiv 1907.03799). A class competes only with those of its own experience, and
all rows are compared in the end; so they must be of one size.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

RULES = ("plain", "cwr", "cwr+", "cwr*")
SHIFTS = ("global", "per_class")
_SPREAD = 0.01  # of the random rows of CWR


class CopyWeights(nn.Module):
    """One row a class without bias: learned ones while training, kept ones to answer with.

    Attributes:
        weight: (classes, width) the rows of this experience.
        kept: (classes, width) the rows of all experiences.
        past: (classes,) how many patterns a kept row has seen.
        known: (classes,) whether there is a kept row.

    Args:
        rule: what is kept: "cwr*" (rows that come back are averaged by how much they have seen), "cwr+"
            (the last ones, less their mean), "cwr" (the last ones) or "plain" (one set of rows, no copies).
        shift: the mean that rows are moved by: of all of them ("global") or of each ("per_class").
    """

    def __init__(self, width: int, classes: int, rule: str = "cwr*", shift: str = "global") -> None:
        """Start with zeros, and no class known."""
        super().__init__()
        self.rule, self.shift = rule, shift
        self.weight = nn.Parameter(torch.zeros(classes, width))
        self.kept: Tensor
        self.past: Tensor
        self.known: Tensor
        self.register_buffer("kept", torch.zeros(classes, width))
        self.register_buffer("past", torch.zeros(classes))
        self.register_buffer("known", torch.zeros(classes, dtype=torch.bool))

    def forward(self, features: Tensor) -> Tensor:
        """Logits (B, classes) by the learned rows while training, by the kept ones otherwise."""
        live = self.training or self.rule == "plain"
        return linear(features.float(), self.weight if live else self.kept)

    @torch.no_grad()
    def open(self, present: Tensor, chance: torch.Generator) -> None:
        """Begin an experience with the rows of its classes; those that have none, and all others, are 0.

        Args:
            present: (classes,) those of the new data and of what is replayed.
            chance: what the random rows of CWR are drawn from.
        """
        if self.rule == "cwr*":
            self.weight.copy_(torch.where((present & self.known)[:, None], self.kept, 0.0))
        elif self.rule == "cwr+":
            self.weight.zero_()
        elif self.rule == "cwr":
            self.weight.normal_(0.0, _SPREAD, generator=chance)

    @torch.no_grad()
    def close(self, present: Tensor, counts: Tensor) -> None:
        """End an experience: keep the rows of the classes that were counted.

        Args:
            present: (classes,) as at the beginning: their mean is taken off.
            counts: (classes,) patterns seen that count for a class; 0 leaves its kept row as it is.
        """
        counted = counts > 0 if self.rule != "plain" else torch.ones_like(self.known)
        rows = self.weight if self.rule in ("plain", "cwr") else self._shifted(present)
        if self.rule == "cwr*":
            old = torch.sqrt(self.past / counts.clamp(min=1))[:, None]
            rows = torch.where(self.known[:, None], (self.kept * old + rows) / (old + 1), rows)
        self.kept.copy_(torch.where(counted[:, None], rows, self.kept))
        self.past += counts
        self.known |= counts > 0

    def _shifted(self, present: Tensor) -> Tensor:
        """The learned rows less their mean."""
        if self.shift == "per_class":
            return self.weight - self.weight.mean(1, keepdim=True)
        inside = torch.where(present[:, None], self.weight, 0.0).sum()
        return self.weight - inside / (present.sum().clamp(min=1) * self.weight.shape[1])

    def norms(self, of: Tensor) -> Tensor:
        """The mean length of the kept rows of some classes (classes,), (); 0 where there are none."""
        chosen = of & self.known
        lengths = torch.where(chosen, self.kept.norm(dim=1), 0.0)
        return lengths.sum() / chosen.sum().clamp(min=1)
