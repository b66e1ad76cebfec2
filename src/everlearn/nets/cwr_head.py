"""CWR heads: temporary weights that one experience trains, beside the consolidated weights of all of them.

CWR (Lomonaco and Maltoni 2017, arXiv 1705.03550), CWR+ (Maltoni and Lomonaco 2019, arXiv 1806.08568) and
CWR* (Lomonaco et al. 2020, arXiv 1907.03799). A class is trained against those of its own experience only,
while prediction compares the rows of all classes; so they must be of one scale.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

RULES = ("plain", "cwr", "cwr+", "cwr*")
SHIFTS = ("global", "per_class")
_INITIAL_STD = 0.01  # of the random rows of CWR


class CWRHead(nn.Module):
    """A linear layer without bias: temporary weights in training, consolidated ones in evaluation.

    Attributes:
        weight: (classes, width) temporary weights, one row per class, of this experience.
        consolidated: (classes, width) consolidated weights of all experiences.
        past_counts: (classes,) patterns that each consolidated row was trained on.
        known: (classes,) which classes have a consolidated row.

    Args:
        rule: "cwr*" (average a returning class's rows by the number of patterns), "cwr+" (copy the rows
            less their mean), "cwr" (copy the rows) or "plain" (one set of weights, no copies).
        shift: the mean to subtract: of all rows ("global") or of each row ("per_class").
    """

    def __init__(self, width: int, classes: int, rule: str = "cwr*", shift: str = "global") -> None:
        """Start with zeros and no known class."""
        super().__init__()
        self.rule = rule
        self.shift = shift
        self.weight = nn.Parameter(torch.zeros(classes, width))
        self.consolidated: Tensor
        self.past_counts: Tensor
        self.known: Tensor
        self.register_buffer("consolidated", torch.zeros(classes, width))
        self.register_buffer("past_counts", torch.zeros(classes))
        self.register_buffer("known", torch.zeros(classes, dtype=torch.bool))

    def forward(self, features: Tensor) -> Tensor:
        """Logits (B, classes), by temporary weights in training and consolidated ones in evaluation.

        In float64, as all logits: see `ClassHead`.
        """
        temporary = self.training or self.rule == "plain"
        weight = self.weight if temporary else self.consolidated
        return linear(features.double(), weight.double())

    @torch.no_grad()
    def begin_experience(self, present: Tensor, generator: torch.Generator) -> None:
        """Initialise the temporary weights: consolidated rows for known classes present, 0 for others.

        Args:
            present: (classes,) classes of the new and of the replayed data.
            generator: draws the random rows of CWR.
        """
        if self.rule == "cwr*":
            self.weight.copy_(torch.where((present & self.known)[:, None], self.consolidated, 0.0))
        elif self.rule == "cwr+":
            self.weight.zero_()
        elif self.rule == "cwr":
            # Rows of this experience alone, so that the draws do not depend on classes to come.
            rows = torch.empty_like(self.weight[present])
            self.weight.zero_()[present] = rows.normal_(0.0, _INITIAL_STD, generator=generator)

    @torch.no_grad()
    def end_experience(self, present: Tensor, counts: Tensor) -> None:
        """Consolidate the rows of the classes with a count.

        Args:
            present: (classes,) as at the beginning: the mean of their rows is subtracted.
            counts: (classes,) training patterns of each class; 0 leaves its consolidated row as it is.
        """
        counted = counts > 0 if self.rule != "plain" else torch.ones_like(self.known)
        rows = self.weight if self.rule in ("plain", "cwr") else self._centered(present)
        if self.rule == "cwr*":
            past = torch.sqrt(self.past_counts / counts.clamp(min=1))[:, None]
            averaged = (self.consolidated * past + rows) / (past + 1)
            rows = torch.where(self.known[:, None], averaged, rows)
        self.consolidated.copy_(torch.where(counted[:, None], rows, self.consolidated))
        self.past_counts += counts
        self.known |= counts > 0

    def _centered(self, present: Tensor) -> Tensor:
        """The temporary weights less their mean."""
        if self.shift == "per_class":
            return self.weight - self.weight.mean(1, keepdim=True)
        total = torch.where(present[:, None], self.weight, 0.0).sum(dtype=torch.float64)
        mean = total / (present.sum().clamp(min=1) * self.weight.shape[1])
        return self.weight - mean.float()

    def mean_norm(self, classes: Tensor) -> Tensor:
        """The mean norm, (), of the consolidated rows of a mask of classes; 0 where there are none."""
        chosen = classes & self.known
        norms = torch.where(chosen, self.consolidated.norm(dim=1), 0.0)
        return (norms.sum(dtype=torch.float64) / chosen.sum().clamp(min=1)).float()
