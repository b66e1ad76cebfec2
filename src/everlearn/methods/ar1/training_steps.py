"""Training steps of AR1: the whole net on images, or the upper half and the head on latents."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.optim import SGD

from everlearn.losses.negative import negative_loss
from everlearn.memory.latent_memory import LatentMemory
from everlearn.methods.ar1.patterns import Patterns
from everlearn.methods.ar1.settings import Settings
from everlearn.methods.ar1.si_regularizer import SIRegularizer
from everlearn.nets.cwr_head import CWRHead
from everlearn.nets.precision import forward_pass
from everlearn.training.captured_step import CapturedStep
from everlearn.training.optimizer_step import optimizer_state, reset_optimizer, set_learning_rate
from everlearn.training.optimizers import sgd
from everlearn.training.path_integral import without_norms
from everlearn.training.step_pair import step_pair


class TrainingSteps:
    """Optimizer steps, captured as CUDA graphs; what differs between experiences lies in fixed tensors.

    Attributes:
        on_images: trains the whole net.
        on_latents: train the head and the upper half; the second one leaves the upper half alone.
        in_softmax: (classes,) classes of the softmax in this experience.
        current: (classes,) classes of this experience's own data.
        si: synaptic intelligence on the upper half, if it has a strength.

    Args:
        net: the lower half and `top`.
        top: the upper half and `head`.
        trained: the halves that are trained.
    """

    def __init__(
        self,
        net: nn.Module,
        top: nn.Sequential,
        head: CWRHead,
        trained: nn.Module,
        patterns: Patterns | LatentMemory,
        settings: Settings,
    ) -> None:
        """Capture nothing yet."""
        self.settings = settings
        self.patterns = patterns
        self.net = net
        self.top = top
        self.in_softmax = torch.zeros_like(head.known)
        self.current = torch.zeros_like(head.known)
        rates = settings.learning_rates
        rate, head_rate = rates.at(0)
        self.optimizer = sgd(trained.parameters(), rate, rates.momentum, rates.weight_decay)
        self.head_optimizer = sgd([head.weight], head_rate, rates.momentum, rates.weight_decay)
        self.si: SIRegularizer | None = None
        if settings.strength:
            self.si = SIRegularizer(
                without_norms(top[0]),
                settings.strength,
                settings.max_importance,
                settings.importance_scale,
            )
        changed = [
            *net.state_dict().values(),
            *optimizer_state(self.optimizer),
            *optimizer_state(self.head_optimizer),
            *([self.si.omega] if self.si else []),
        ]
        self.on_images = CapturedStep(self._learn_images, changed)
        self.on_latents = step_pair(self._learn_latents, changed)

    def begin_experience(self, experience: int) -> None:
        """Set the learning rates of an experience, the first being 0; reset momentum if so set."""
        learning_rates = self.settings.learning_rates.at(experience)
        for optimizer, learning_rate in zip(self.optimizers, learning_rates, strict=True):
            if self.settings.reset_optimizer:
                reset_optimizer(optimizer)
            set_learning_rate(optimizer, learning_rate)

    @property
    def optimizers(self) -> tuple[SGD, SGD]:
        """The optimizers of the net and of the head."""
        return self.optimizer, self.head_optimizer

    def _learn_images(self, images: Tensor, targets: Tensor) -> Tensor:
        """Train the whole net on a batch."""
        logits = forward_pass(self.net, images).masked_fill(~self.in_softmax, -torch.inf)
        return self._step(cross_entropy(logits, targets).float())

    def _learn_latents(
        self, is_upper_frozen: bool, latents: Tensor, targets: Tensor, *replayed_rows: Tensor
    ) -> Tensor:
        """Train the upper half, unless it is frozen, and the head on new and replayed latents."""
        # A frozen half normalises by its running statistics, whatever the batch.
        self.top[0].train(not is_upper_frozen)
        new = len(targets)
        for rows in replayed_rows:
            latents = torch.cat([latents, self.patterns.latents[rows]])
            targets = torch.cat([targets, self.patterns.targets[rows]])
        logits = forward_pass(self.top, latents, bfloat16=False)
        if self.settings.head == "plain" and self.settings.is_negative:
            is_replayed = torch.arange(len(targets), device=targets.device) >= new
            return self._step(
                negative_loss(logits, targets, is_replayed, self.current, self.in_softmax)
            )
        allowed = logits.masked_fill(~self.in_softmax, -torch.inf)
        return self._step(cross_entropy(allowed, targets).float())

    def _step(self, loss: Tensor) -> Tensor:
        """Take an optimizer step on a loss and the SI penalty, which records the gradients of both."""
        self.optimizer.zero_grad()
        self.head_optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        if self.si:
            loss = loss.detach() + self.si.before_step()
        self.optimizer.step()
        self.head_optimizer.step()
        if self.si:
            self.si.after_step()
        return loss
