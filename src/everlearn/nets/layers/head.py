"""The last layer of a net, in float32 whatever the rest is in: 16 bits would round the logits."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn.functional import linear


class Head(nn.Linear):
    """A linear layer that stays in float32."""

    def forward(self, input: Tensor) -> Tensor:
        """(B, inputs) to (B, outputs), float32."""
        return linear(input.float(), self.weight, self.bias)
