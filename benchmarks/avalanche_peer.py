"""The half of avalanche.py that runs in Avalanche's own environment, without everlearn.

    .venv-avalanche/bin/python -P benchmarks/avalanche_peer.py FOLDER

FOLDER/jobs.json lists what to train. A job reads its data and initial weights from one file of the
folder; its predictions, final weights and seconds go to another. With -P the file avalanche.py beside
this one does not hide the package.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

logging.captureWarnings(True)  # Avalanche turns its own warnings back on, one for each task
# The CPU build of torch lacks the operators of the torchvision wheel, which asks for them on import.
for operator in ("nms", "qnms"):
    shape = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
    torch.library.define(f"torchvision::{operator}", shape)

from avalanche.benchmarks import tensors_benchmark  # noqa: E402
from avalanche.training import supervised  # noqa: E402
from avalanche.training.determinism.rng_manager import RNGManager  # noqa: E402

NET = "net/"  # before the name of a weight in a file


class MLP(nn.Module):
    """The same net as everlearn's "mlp", with the same names."""

    def __init__(self, weights: dict[str, torch.Tensor]) -> None:
        """Start from given weights."""
        super().__init__()
        self.hidden = nn.Linear(*reversed(weights["hidden.weight"].shape))
        self.head = nn.Linear(*reversed(weights["head.weight"].shape))
        self.load_state_dict(weights)

    def forward(self, points: torch.Tensor) -> torch.Tensor:
        """(B, classes)."""
        return self.head(torch.relu(self.hidden(points.flatten(1))))


class CopyingSGD(torch.optim.SGD):
    """SGD that writes updated weights to new memory, so that views of the old ones keep their values.

    Avalanche's SI keeps such views on a CPU where copies were meant; with plain SGD it sees no change.
    """

    def step(self, closure: Any = None) -> Any:
        """Take a step in new memory."""
        for group in self.param_groups:
            for weight in group["params"]:
                weight.data = weight.data.clone()
        return super().step(closure)


def main() -> None:
    """Train all jobs of a folder."""
    folder = Path(sys.argv[1])
    torch.set_num_threads(1)
    for job in json.loads((folder / "jobs.json").read_text()):
        found = train(job, dict(np.load(folder / job["data"])))
        np.savez(folder / job["out"], avalanche=version("avalanche-lib"), **found)


def train(job: dict[str, Any], data: dict[str, np.ndarray]) -> dict[str, Any]:
    """Train on task after task; then predict the classes of all test points."""
    RNGManager.set_random_seeds(job["seed"])
    weights = {name.removeprefix(NET): torch.tensor(data[name]) for name in data if NET in name}
    net = MLP(weights)
    strategy = build(job, net)
    began = time.perf_counter()
    for experience in tasks(data):
        strategy.train(experience, shuffle=job["shuffle"])
    seconds = time.perf_counter() - began
    net.eval()
    with torch.no_grad():
        predictions = net(torch.from_numpy(data["test_points"])).argmax(1).numpy()
    last = {NET + name: value.numpy() for name, value in net.state_dict().items()}
    return {"predictions": predictions, "seconds": seconds, **last}


def build(job: dict[str, Any], net: nn.Module) -> Any:
    """Return a strategy with its optimizer; it prints nothing."""
    optimizer = CopyingSGD if job["copying"] else torch.optim.SGD
    return getattr(supervised, job["strategy"])(
        model=net,
        optimizer=optimizer(net.parameters(), lr=job["learning_rate"], momentum=job["momentum"]),
        criterion=nn.CrossEntropyLoss(),
        train_mb_size=job["batch_size"],
        train_epochs=job["epochs"],
        evaluator=None,
        **job["settings"],
    )


def tasks(data: dict[str, np.ndarray]) -> Any:
    """Return the training stream; all tasks have label 0, so no task id is given."""
    pairs = zip(data["train_points"], data["train_labels"], strict=True)
    tensors = [(torch.from_numpy(points), torch.from_numpy(labels)) for points, labels in pairs]
    labels = [0] * len(tensors)
    benchmark = tensors_benchmark(train_tensors=tensors, test_tensors=tensors, task_labels=labels)
    return benchmark.train_stream


if __name__ == "__main__":
    main()
