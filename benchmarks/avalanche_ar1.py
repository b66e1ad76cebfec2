"""Batch renormalisation, the CWR* head and AR1 beside Avalanche's, on the same numbers.

    PYTHONPATH=src .venv-avalanche/bin/python -P benchmarks/avalanche_ar1.py

Runs in Avalanche's own environment (`make avalanche`) in a minute and prints the largest differences. With
-P the file avalanche.py beside this one does not hide the package.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from torch import Tensor, nn

sys.path.append(str(Path(__file__).parent))  # at the end: it does not hide the package either
from avalanche_peer import CopyingSGD  # noqa: I001  (first: it makes Avalanche importable)

from avalanche.benchmarks import tensors_benchmark
from avalanche.models import MobilenetV1
from avalanche.models.batch_renorm import BatchRenorm2D
from avalanche.training.plugins import CWRStarPlugin, SynapticIntelligencePlugin
from avalanche.training.supervised import AR1, Naive, ar1
from avalanche.training.utils import change_brn_pars

from everlearn.methods import ar1 as ours
from everlearn.methods.ar1.generator import iterate_rows
from everlearn.nets.cwr_head import CWRHead
from everlearn.nets.layers.norm import EPS
from everlearn.nets.layers.renorm import (
    D_MAX,
    GROWTH,
    LATER_MOMENTUM,
    R_MAX,
    INITIAL_MOMENTUM,
    Renorm,
    end_renorm_warmup,
)
from everlearn.core.settings import change_settings
from everlearn.stream import Latents

CHANNELS, BATCH = 8, 128
STEPS = {"limits grow": 40, "limits at their maxima": 60, "later experiences": 40}
PACE = {"batch_size": 16, "epochs": 2, "momentum": 0.9}
RATE_OF_ALL = 0.02


def main() -> None:
    """Print what differs."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    compare_renorm()
    compare_head()
    for strength in (0.0, 1e2, 1e4):
        compare_learner(strength)
    look_at_labels()


def compare_renorm() -> None:
    """Both layers on batches whose moments drift."""
    mine = Renorm(CHANNELS, relu=False)
    its = BatchRenorm2D(
        CHANNELS, running_mean=torch.zeros(CHANNELS), running_var=torch.ones(CHANNELS), eps=EPS,
        momentum=INITIAL_MOMENTUM, r_d_max_inc_step=GROWTH, max_r_max=R_MAX, max_d_max=D_MAX,
    )  # fmt: skip
    step = 0
    for part, steps in STEPS.items():
        if part == "later experiences":
            end_renorm_warmup(mine, LATER_MOMENTUM)
            change_brn_pars(nn.ModuleDict({"norm": its}), LATER_MOMENTUM, 0, R_MAX, D_MAX)
        off = torch.zeros(3)
        for _ in range(steps):
            step += 1
            batch = (1 + 0.01 * step) * torch.randn(BATCH, CHANNELS, 4, 4) + 0.02 * step
            off = off.maximum(_renorm_step(mine, its, batch))
        r, d = float(mine.r), float(mine.d)
        print(f"renorm, {part}: outputs {off[0]:.1e}, gradients {off[1]:.1e}, moments {off[2]:.1e}")
        print(f"  r {r:.5f} and {float(its.r_max):.5f}, d {d:.5f} and {float(its.d_max):.5f}")
    mine.eval(), its.eval()
    print(f"renorm, answering: outputs {farthest(mine(batch), its(batch)):.1e}")


def _renorm_step(mine: Renorm, its: BatchRenorm2D, batch: Tensor) -> Tensor:
    """Largest differences of outputs, of gradients and of kept moments, (3,)."""
    one, two = batch.clone().requires_grad_(), batch.clone().requires_grad_()
    found, theirs = mine(one), its(two)
    weights = torch.randn(found.shape)
    for out in (found, theirs):
        (out * weights).sum().backward()
    kept = torch.cat([mine.mean, mine.std])
    their_kept = torch.cat([its.running_avg_mean.flatten(), its.running_avg_std.flatten()])
    assert one.grad is not None
    assert two.grad is not None
    pairs = ((found, theirs), (one.grad, two.grad), (kept, their_kept))
    return torch.tensor([farthest(*pair) for pair in pairs])


def compare_head() -> None:
    """Kept rows over experiences whose classes come back, when both learned the same rows."""
    classes, width = 12, 32
    mine = CWRHead(width, classes)
    layer = nn.Linear(width, classes, bias=False)
    its = CWRStarPlugin(nn.Sequential(layer))
    off = opened = 0.0
    for _ in range(20):
        counts = torch.randint(0, 30, (classes,)) * (torch.rand(classes) < 0.4)
        counts[torch.randint(classes, ())] += 1
        present = counts > 0
        its.cur_class = present.nonzero()[:, 0].tolist()
        its.model.cur_j = dict(enumerate(counts.tolist()))
        mine.begin_experience(present, torch.Generator())
        its.reset_weights(its.cur_class)
        opened = max(opened, farthest(mine.weight, layer.weight))
        rows = torch.randn(classes, width)
        for weight in (mine.weight, layer.weight):
            weight.data.add_(rows)
        mine.end_experience(present, counts.float())
        its.after_training_exp(None)
        off = max(off, farthest(mine.consolidated[mine.known], layer.weight[mine.known]))
    print(f"CWR* head, 20 experiences: rows at the start {opened:.1e}, kept rows {off:.1e}")


def compare_learner(strength: float) -> None:
    """AR1* without replay, given the same batches, weights and settings."""
    stream = Latents(
        scenario="nic", classes=6, first=2, sessions=4, test_sessions=(0,), dimensions=8, train=16
    )
    same = {"learning_rate": RATE_OF_ALL, "later_learning_rate": RATE_OF_ALL}
    same |= {
        "head_learning_rate": RATE_OF_ALL,
        "later_head_learning_rate": RATE_OF_ALL,
        "weight_decay": 0.0,
    }
    own = (
        {"net": "mlp", "replay_mode": "none", "strength": strength, "importance_scale": 1.0}
        | same
        | PACE
    )
    learner = ours.AR1(stream, change_settings(ours.Settings(), own, "ar1"), "cpu")
    body = nn.Sequential(nn.Flatten(), nn.Linear(8, 64), nn.ReLU())
    body[1].load_state_dict(learner.top[0][1].state_dict())
    net = nn.Sequential(body, nn.Linear(64, 6, bias=False))
    strategy = _strategy(net, strength)
    for task, experience in zip(stream, _experiences(stream, learner), strict=True):
        for _ in learner.learn(task):
            pass
        # As its AR1 does: a new optimiser for every experience.
        strategy.optimizer = CopyingSGD(net.parameters(), RATE_OF_ALL, PACE["momentum"])
        strategy.train(experience, shuffle=False)
    rows = farthest(learner.head.consolidated, net[1].weight)
    upper = farthest(learner.top[0][1].weight, body[1].weight)
    negative = sum(
        int((found.data < 0).sum()) for plugin in strategy.plugins if hasattr(plugin, "ewc_data")
        for found in plugin.ewc_data[1].values()
    )  # fmt: skip
    print(
        f"AR1*, lambda {strength:g}, {len(stream)} experiences: kept rows {rows:.1e} of "
        f"{float(learner.head.consolidated.abs().max().detach()):.2f}, upper half {upper:.1e}; "
        f"importances of Avalanche below 0: {negative}"
    )


def _strategy(net: nn.Sequential, strength: float) -> Any:
    """The plugins of Avalanche's AR1 on a net of ours."""
    held = [SynapticIntelligencePlugin(strength, excluded_parameters=["1"])] if strength else []
    return Naive(
        model=net,
        optimizer=CopyingSGD(net.parameters(), RATE_OF_ALL, PACE["momentum"]),
        criterion=nn.CrossEntropyLoss(),
        train_mb_size=PACE["batch_size"],
        train_epochs=1,
        evaluator=None,
        plugins=[*held, CWRStarPlugin(net, "1", freeze_remaining_model=False)],
    )


def _experiences(stream: Latents, learner: ours.AR1) -> Iterator[Any]:
    """Our batches of all epochs, one after another, as Avalanche's experiences."""
    tensors = []
    for task in stream:
        new = learner.settings.split_batch(len(task.train), 0)[0]
        rows = torch.cat(list(iterate_rows(task, learner.settings.epochs, new, "cpu")))
        batch = task.train.batch(rows.numpy())
        tensors.append((batch.images, batch.labels))
    labels = [0] * len(tensors)
    made = tensors_benchmark(train_tensors=tensors, test_tensors=tensors, task_labels=labels)
    yield from made.train_stream


def look_at_labels() -> None:
    """Whether the labels of Avalanche's replay memory are those of its latents.

    Images of class c are all equal, so a latent tells its class.
    """
    images = torch.arange(8.0).view(8, 1, 1, 1).expand(8, 3, 128, 128).repeat_interleave(4, 0)
    labels = torch.arange(8).repeat_interleave(4)
    made = tensors_benchmark(
        train_tensors=[(images, labels)], test_tensors=[(images, labels)], task_labels=[0]
    )

    def untrained(pretrained: bool, latent_layer_num: int) -> MobilenetV1:
        """No weights are fetched."""
        return MobilenetV1(False, latent_layer_num)

    with mock.patch.object(ar1, "MobilenetV1", untrained), warnings.catch_warnings(action="ignore"):
        strategy = AR1(lr=0.0, train_epochs=1, train_mb_size=8, rm_sz=32, evaluator=None)
    strategy.train(made.train_stream[0])
    latents, told = strategy.rm
    with torch.no_grad():
        means = strategy.model.lat_features(images[::4]).flatten(1)
    true = torch.cdist(latents.flatten(1), means).argmin(1)
    right = int((true == told.cpu()).sum())
    print(
        f"Avalanche's AR1, replay memory: {right} of {len(told)} labels are those of their latents"
    )


def farthest(one: Tensor, other: Tensor) -> float:
    """The largest difference."""
    return float((one - other).abs().max().detach())


if __name__ == "__main__":
    main()
