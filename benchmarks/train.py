"""How fast DCL trains on a GPU: beside a plain loop, and how much of a step is drawing.

    python benchmarks/train.py --out results [--device cuda] [--tasks 5]

Rows go to OUT/train_gpu.jsonl (or train_cpu.jsonl).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from everlearn import Canvas, Stream, Task
from everlearn.core.provenance import provenance
from everlearn.evaluation.prefetch import TaskLoader
from everlearn.methods import build
from everlearn.nets import build_net
from everlearn.render.benchmark import gpu_name, write_rows
from everlearn.training.schedule import Schedule, training_batches

Row = dict[str, Any]
WARM_UP_TASKS = 2


def main() -> None:
    """Measure and write rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--tasks", type=int, default=5)
    parser.add_argument("--net", default="resnet18")
    asked = parser.parse_args()
    origin = provenance(gpu_name() if asked.device != "cpu" else None)
    rows = [{**row, **origin} for row in measure(asked.net, asked.device, asked.tasks)]
    write_rows(asked.out / f"train_{'cpu' if asked.device == 'cpu' else 'gpu'}.jsonl", rows)


def measure(net: str, device: str, tasks: int) -> Iterator[Row]:
    """Give one row a measurement."""
    for size, batch in ((64, 256), (64, 512), (64, 1024), (128, 256)):
        rate = learner_rate(net, size, batch, device, tasks)
        yield say(
            {
                "what": "training",
                "net": net,
                "size": size,
                "batch": batch,
                "images_per_second": rate,
            }
        )
        if (size, batch) == (64, 256):
            for kind in ("float32", "autocast"):
                plain = plain_rate(net, size, batch, device, max(2, tasks // 2), kind)
                yield say({"what": f"plain eager loop, {kind}", "net": net, "size": size, "batch": batch,
                           "images_per_second": plain, "ours_over_it": rate / plain})  # fmt: skip
            share = drawing_seconds(size, batch, device) / (batch / rate)
            yield say(
                {
                    "what": "share of a step spent drawing",
                    "size": size,
                    "batch": batch,
                    "share": share,
                }
            )


def say(row: Row) -> Row:
    """Print a row and give it back."""
    print(row, flush=True)
    return row


def learner_rate(net: str, size: int, batch: int, device: str, tasks: int) -> float:
    """Training images a second of DCL, making the tasks included."""
    stream = Stream(canvas=Canvas(size=size))
    learner = build("dcl", stream, device, net=net, batch_size=batch)

    def learn(task: Task) -> int:
        return sum(1 for _ in learner.learn(task))

    return task_rate(stream, learn, batch, tasks, device)


def plain_rate(net: str, size: int, batch: int, device: str, tasks: int, kind: str) -> float:
    """The same steps as one would write them first: eager, torch's own layers, torch's own Adam."""
    stream, schedule = Stream(canvas=Canvas(size=size)), Schedule(batch_size=batch)
    model = plain_net(net, size).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    def step(images: Tensor, theta: Tensor) -> None:
        optimizer.zero_grad()
        with torch.autocast(device, torch.bfloat16, enabled=kind == "autocast"):
            found = model(images)
        loss = (found.float().reshape(-1, 2, 3) - theta).square().mean()
        loss.backward()
        optimizer.step()

    def learn(task: Task) -> int:
        steps = 0
        for batch, _, _ in training_batches(task, schedule, device):
            step(batch.images, batch.theta)
            steps += 1
        return steps

    return task_rate(stream, learn, batch, tasks, device)


def plain_net(net: str, size: int) -> nn.Module:
    """The net of torchvision where it is installed; ours, unfused by its float32, otherwise."""
    if net != "resnet18":
        return build_net(net, 1, 6, size, 0)
    from torchvision.models import resnet18

    model = resnet18(num_classes=6)
    model.conv1 = nn.Conv2d(1, 64, 7, 2, 3, bias=False)
    return model


def task_rate(
    stream: Stream, learn: Callable[[Task], int], batch: int, tasks: int, device: str
) -> float:
    """Images a second over some tasks, after others to warm up; tasks are prefetched, as in a run."""
    for index in range(WARM_UP_TASKS):
        learn(stream[index])
    wait()
    start, steps = time.perf_counter(), 0
    loader = TaskLoader(stream, WARM_UP_TASKS, WARM_UP_TASKS + tasks, device)
    for task in loader:
        steps += learn(task)
        loader.prefetch()
    wait()
    return steps * batch / (time.perf_counter() - start)


def drawing_seconds(size: int, batch: int, device: str, repeats: int = 500) -> float:
    """Seconds that making one batch keeps the device busy: its images, labels, factors and maps."""
    placed = Stream(canvas=Canvas(size=size))[0].train.to(device)
    rows = torch.arange(batch, device=device)
    placed.batch(rows)
    if device == "cpu":
        start = time.perf_counter()
        for _ in range(repeats):
            placed.batch(rows)
        return (time.perf_counter() - start) / repeats
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        placed.batch(rows)
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    graph.replay()
    begin.record()
    for _ in range(repeats):
        graph.replay()
    end.record()
    wait()
    return begin.elapsed_time(end) / 1000 / repeats


def wait() -> None:
    """Let the GPU finish."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()


if __name__ == "__main__":
    main()
