"""Batch renormalisation, the CWR* head and AR1 beside Avalanche's, on the same numbers.

    PYTHONPATH=src .venv-avalanche/bin/python -P benchmarks/avalanche_ar1.py --out results

Runs in Avalanche's own environment (`make avalanche`) in seconds, and writes the largest differences to
OUT/avalanche_ar1.jsonl. With -P the file avalanche.py beside this one does not hide the package.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Iterator
from importlib.metadata import version
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

from everlearn.core.provenance import provenance
from everlearn.methods import ar1 as ours
from everlearn.methods.ar1.generator import iterate_rows
from everlearn.nets.cwr_head import CWRHead
from everlearn.nets.layers.norm import EPS
from everlearn.nets.layers.renorm import (
    D_MAX,
    GROWTH,
    INITIAL_MOMENTUM,
    LATER_MOMENTUM,
    R_MAX,
    Renorm,
    end_renorm_warmup,
)
from everlearn.core.settings import change_settings
from everlearn.render.benchmark import write_rows
from everlearn.stream import Latents

Row = dict[str, Any]
CHANNELS, BATCH = 8, 128
STEPS = {"limits grow": 40, "limits at their maxima": 60, "later experiences": 40}
SCHEDULE = {"batch_size": 16, "epochs": 2, "momentum": 0.9}
LEARNING_RATE = 0.02  # of all layers, in all experiences
SETTINGS = {
    **SCHEDULE,
    "net": "mlp",
    "replay_mode": "none",
    "importance_scale": 1.0,
    "weight_decay": 0.0,
    # As Avalanche: one mean of all rows, all classes in the softmax, a new optimizer per experience.
    "mean_shift": "global",
    "include_unseen": True,
    "reset_optimizer": True,
    "learning_rate": LEARNING_RATE,
    "later_learning_rate": LEARNING_RATE,
    "head_learning_rate": LEARNING_RATE,
    "later_head_learning_rate": LEARNING_RATE,
}


def main() -> None:
    """Print and write what differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results"))
    out = parser.parse_args().out
    torch.manual_seed(0)
    torch.set_num_threads(1)
    rows = [*compare_renorm(), compare_head()]
    rows += [compare_learner(strength) for strength in (0.0, 1e2, 1e4)]
    rows.append(count_replay_labels())
    for row in rows:
        print(row)
    origin = provenance() | {"avalanche": version("avalanche-lib")}
    write_rows(out / "avalanche_ar1.jsonl", [{**row, **origin} for row in rows])


def compare_renorm() -> Iterator[Row]:
    """Compare both layers on batches with drifting statistics."""
    layer = Renorm(CHANNELS, relu=False)
    avalanche = BatchRenorm2D(
        CHANNELS, running_mean=torch.zeros(CHANNELS), running_var=torch.ones(CHANNELS), eps=EPS,
        momentum=INITIAL_MOMENTUM, r_d_max_inc_step=GROWTH, max_r_max=R_MAX, max_d_max=D_MAX,
    )  # fmt: skip
    step = 0
    for part, steps in STEPS.items():
        if part == "later experiences":
            end_renorm_warmup(layer, LATER_MOMENTUM)
            change_brn_pars(nn.ModuleDict({"norm": avalanche}), LATER_MOMENTUM, 0, R_MAX, D_MAX)
        differences = torch.zeros(3)
        for _ in range(steps):
            step += 1
            batch = (1 + 0.01 * step) * torch.randn(BATCH, CHANNELS, 4, 4) + 0.02 * step
            differences = differences.maximum(_renorm_step(layer, avalanche, batch))
        outputs, gradients, statistics = differences.tolist()
        yield {
            "what": f"batch renormalisation, {part}", "outputs": outputs, "gradients": gradients,
            "running_statistics": statistics, "r": float(layer.r), "d": float(layer.d),
            "avalanche_r": float(avalanche.r_max), "avalanche_d": float(avalanche.d_max),
        }  # fmt: skip
    layer.eval()
    avalanche.eval()
    yield {
        "what": "batch renormalisation, evaluation",
        "outputs": largest_difference(layer(batch), avalanche(batch)),
    }


def _renorm_step(layer: Renorm, avalanche: BatchRenorm2D, batch: Tensor) -> Tensor:
    """Return the largest differences of outputs, of gradients and of running statistics, (3,)."""
    inputs = [batch.clone().requires_grad_() for _ in range(2)]
    outputs = [layer(inputs[0]), avalanche(inputs[1])]
    weights = torch.randn(outputs[0].shape)
    for output in outputs:
        (output * weights).sum().backward()
    statistics = (
        torch.cat([layer.mean, layer.std]),
        torch.cat([avalanche.running_avg_mean.flatten(), avalanche.running_avg_std.flatten()]),
    )
    pairs = (outputs, [tensor.grad for tensor in inputs], statistics)
    return torch.tensor([largest_difference(*pair) for pair in pairs])


def compare_head() -> Row:
    """Compare consolidated rows over experiences with recurring classes, from the same learned rows."""
    classes, width = 12, 32
    head = CWRHead(width, classes)
    layer = nn.Linear(width, classes, bias=False)
    plugin = CWRStarPlugin(nn.Sequential(layer))
    initial = consolidated = 0.0
    for _ in range(20):
        counts = torch.randint(0, 30, (classes,)) * (torch.rand(classes) < 0.4)
        counts[torch.randint(classes, ())] += 1
        present = counts > 0
        plugin.cur_class = present.nonzero()[:, 0].tolist()
        plugin.model.cur_j = dict(enumerate(counts.tolist()))
        head.begin_experience(present, torch.Generator())
        plugin.reset_weights(plugin.cur_class)
        initial = max(initial, largest_difference(head.weight, layer.weight))
        rows = torch.randn(classes, width)
        for weight in (head.weight, layer.weight):
            weight.data.add_(rows)
        head.end_experience(present, counts.float())
        plugin.after_training_exp(None)
        found = largest_difference(head.consolidated[head.known], layer.weight[head.known])
        consolidated = max(consolidated, found)
    return {
        "what": "CWR* head",
        "experiences": 20,
        "initial": initial,
        "consolidated": consolidated,
    }


def compare_learner(strength: float) -> Row:
    """Compare AR1* without replay after the same batches, from the same weights."""
    stream = Latents(
        scenario="nic", classes=6, first=2, sessions=4, test_sessions=(0,), dimensions=8, train=16
    )
    settings = change_settings(ours.Settings(), {**SETTINGS, "strength": strength}, "ar1")
    learner = ours.AR1(stream, settings, "cpu")
    body = nn.Sequential(nn.Flatten(), nn.Linear(8, 64), nn.ReLU())
    body[1].load_state_dict(learner.top[0][1].state_dict())
    net = nn.Sequential(body, nn.Linear(64, 6, bias=False))
    strategy = _strategy(net, strength)
    for task, experience in zip(stream, _experiences(stream, learner), strict=True):
        for _ in learner.learn(task):
            pass
        # As its AR1 does: a new optimizer for every experience.
        strategy.optimizer = CopyingSGD(net.parameters(), LEARNING_RATE, SCHEDULE["momentum"])
        strategy.train(experience, shuffle=False)
    return {
        "what": "AR1* without replay", "strength": strength, "experiences": len(stream),
        "consolidated": largest_difference(learner.head.consolidated, net[1].weight),
        "largest_row": float(learner.head.consolidated.abs().max().detach()),
        "upper_half": largest_difference(learner.top[0][1].weight, body[1].weight),
        "negative_importances": sum(
            int((found.data < 0).sum())
            for plugin in strategy.plugins if hasattr(plugin, "ewc_data")
            for found in plugin.ewc_data[1].values()
        ),
    }  # fmt: skip


def _strategy(net: nn.Sequential, strength: float) -> Any:
    """Return the plugins of Avalanche's AR1 on a net of ours."""
    penalty = [SynapticIntelligencePlugin(strength, excluded_parameters=["1"])] if strength else []
    return Naive(
        model=net,
        optimizer=CopyingSGD(net.parameters(), LEARNING_RATE, SCHEDULE["momentum"]),
        criterion=nn.CrossEntropyLoss(),
        train_mb_size=SCHEDULE["batch_size"],
        train_epochs=1,
        evaluator=None,
        plugins=[*penalty, CWRStarPlugin(net, "1", freeze_remaining_model=False)],
    )


def _experiences(stream: Latents, learner: ours.AR1) -> Iterator[Any]:
    """Yield our batches of all epochs, one after another, as Avalanche's experiences."""
    tensors = []
    for task in stream:
        new = learner.settings.split_batch(len(task.train), 0)[0]
        rows = torch.cat(list(iterate_rows(task, learner.settings.epochs, new, "cpu")))
        batch = task.train.batch(rows.numpy())
        tensors.append((batch.images, batch.labels))
    labels = [0] * len(tensors)
    benchmark = tensors_benchmark(train_tensors=tensors, test_tensors=tensors, task_labels=labels)
    yield from benchmark.train_stream


def count_replay_labels() -> Row:
    """Count the labels in the replay memory of Avalanche's AR1 that are those of their latents.

    Images of class c are all equal, so the nearest class mean of a latent is its class.
    """
    images = torch.arange(8.0).view(8, 1, 1, 1).expand(8, 3, 128, 128).repeat_interleave(4, 0)
    labels = torch.arange(8).repeat_interleave(4)
    benchmark = tensors_benchmark(
        train_tensors=[(images, labels)], test_tensors=[(images, labels)], task_labels=[0]
    )

    def untrained(pretrained: bool, latent_layer_num: int) -> MobilenetV1:
        """Return the net without downloading weights."""
        return MobilenetV1(False, latent_layer_num)

    with mock.patch.object(ar1, "MobilenetV1", untrained), warnings.catch_warnings(action="ignore"):
        strategy = AR1(lr=0.0, train_epochs=1, train_mb_size=8, rm_sz=32, evaluator=None)
    strategy.train(benchmark.train_stream[0])
    latents, stored = strategy.rm
    with torch.no_grad():
        means = strategy.model.lat_features(images[::4]).flatten(1)
    true = torch.cdist(latents.flatten(1), means).argmin(1)
    return {
        "what": "labels in the replay memory of Avalanche's AR1",
        "correct": int((true == stored.cpu()).sum()),
        "total": len(stored),
    }


def largest_difference(one: Tensor, other: Tensor) -> float:
    """Return the largest absolute difference."""
    return float((one - other).abs().max().detach())


if __name__ == "__main__":
    main()
