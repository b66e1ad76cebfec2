"""The tensors in which VASE keeps what it knows of its environments."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

import torch
from torch import Tensor

from everlearn.methods.vase.settings import Settings

NONE = -1
SLOTS = 4  # reference batches that are stored
LARGEST = float(torch.finfo(torch.float32).max)


def _tensor(dims: str, value: float = 0, dtype: torch.dtype = torch.int64) -> Any:
    """Declare a tensor by its dimensions (E: environments, N: latents, S: slots) and its first value."""
    return field(metadata={"dims": dims, "value": value, "dtype": dtype})


@dataclass(frozen=True)
class EnvironmentState:
    """E = max_environments rows of N = latent_dim latents, and where inference stands.

    A captured CUDA graph reads and writes these very tensors: every change is made in place, and the host
    reads no decision back.
    """

    # Of every environment. a^s of eq. 5: 1 where a latent applies; fixed when the environment opens.
    masks: Tensor = _tensor("EN", 1.0, torch.float32)
    # Running means: of the reconstruction error in nats (L of eq. 6), of alpha (eq. 4), of the absolute
    # deviations of both, of the KL to the prior in nats, of mean and variance of the codes of a batch.
    error: Tensor = _tensor("E", 0.0, torch.float32)
    error_deviation: Tensor = _tensor("E", 0.0, torch.float32)
    atypicality: Tensor = _tensor("EN", 0.0, torch.float32)
    atypicality_deviation: Tensor = _tensor("EN", 0.0, torch.float32)
    kl: Tensor = _tensor("EN", 0.0, torch.float32)
    mean: Tensor = _tensor("EN", 0.0, torch.float32)
    variance: Tensor = _tensor("EN", 1.0, torch.float32)
    age: Tensor = _tensor("E")  # batches learned in it
    start_capacity: Tensor = _tensor("E", 0.0, torch.float32)  # C at its first step, in nats
    opened_at: Tensor = _tensor("E", NONE)  # step
    # Where inference stands.
    count: Tensor = _tensor("", 1)  # r: environments so far
    active: Tensor = _tensor("")  # s: the environment that batches are taken for
    given: Tensor = _tensor("", NONE)  # environment announced for the next batch; NONE: infer it
    steps: Tensor = _tensor("")  # batches seen
    visit_age: Tensor = _tensor("")  # batches learned since the active environment was entered
    surprises_in_a_row: Tensor = _tensor("")
    tried: Tensor = _tensor("E", False, torch.bool)  # where the current surprises have been tried
    nearest: Tensor = _tensor("")  # environment in which they had the lowest error
    lowest_error: Tensor = _tensor("", LARGEST, torch.float32)
    switched: Tensor = _tensor("", False, torch.bool)  # by the last batch
    # Of the reference batches.
    reference_sizes: Tensor = _tensor("S")  # images in each
    stored: Tensor = _tensor("S", False, torch.bool)  # the slot that the last batch replaces
    # Counters for diagnostics.
    surprises: Tensor = _tensor("")
    switches: Tensor = _tensor("")

    @classmethod
    def create(cls, settings: Settings, device: str) -> EnvironmentState:
        """Start in the first environment, where every latent applies, with nothing learned."""
        sizes = {"E": settings.max_environments, "N": settings.latent_dim, "S": SLOTS}
        tensors = {}
        for item in fields(cls):
            shape = [sizes[dim] for dim in item.metadata["dims"]]
            value = item.metadata["value"]
            dtype = item.metadata["dtype"]
            tensors[item.name] = torch.full(shape, value, dtype=dtype, device=device)
        return cls(**tensors)

    @property
    def tensors(self) -> dict[str, Tensor]:
        """Every tensor by its name."""
        return {item.name: getattr(self, item.name) for item in fields(self)}

    def load(self, tensors: dict[str, Any]) -> None:
        """Copy the values of other tensors into these."""
        for name, tensor in self.tensors.items():
            tensor.copy_(tensors[name])


def select_row(values: Tensor, index: Tensor) -> Tensor:
    """Return the row of an index () that lies on a device; plain indexing would wait for it."""
    return values.index_select(0, index.reshape(1))[0]
