"""What our loop costs beside a bare PyTorch loop that takes the same steps; fine-tuning, on a CPU.

    python benchmarks/overhead.py --out results

Both learn the same tasks of 32 pixels with the same net, batches and Adam, on one thread, from images
that lie in memory; turns alternate and the ratio is of the CPU seconds of each pair of turns. Weights
must end equal. A row is added to OUT/overhead.jsonl.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

import everlearn
from everlearn import Canvas, Plan, Stream
from everlearn.core.jsonl import read_json_lines
from everlearn.core.provenance import provenance
from everlearn.nets import build_classifier
from everlearn.render.benchmark import write_rows

STREAM = Stream(tasks=4, classes_per_task=5, canvas=Canvas(size=32))
BATCH, EPOCHS, RATE = 64, 1, 1e-3


def main() -> None:
    """Time both loops in turns and write the ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument("--turns", type=int, default=5)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    bare(), ours()  # compile and touch everything once
    pairs = [(timed(bare), timed(ours)) for _ in range(asked.turns)]
    for (_, plain), (_, found) in pairs:
        assert all(map(torch.equal, plain, found)), "the two loops took different steps"
    ratios = [b / a for (a, _), (b, _) in pairs]
    row = {
        "what": "our loop against a bare one",
        "ratio": statistics.median(ratios),
        "ratios": ratios,
        "bare_seconds": statistics.median(a for (a, _), _ in pairs),
    }
    print(f"{row['ratio']:.3f} x a bare loop ({min(ratios):.3f} to {max(ratios):.3f})")
    path = asked.out / "overhead.jsonl"
    write_rows(path, [*read_json_lines(path), row | provenance(None)])


def timed(work: Callable[[], list[Tensor]]) -> tuple[float, list[Tensor]]:
    """CPU seconds, and the weights at the end."""
    began = time.process_time()
    weights = work()
    return time.process_time() - began, weights


def batches(index: int) -> Iterator[Any]:
    """The batches of a task, made as our loop makes them."""
    return STREAM[index].batches(BATCH, EPOCHS, drop_last=True)


def bare() -> list[Tensor]:
    """A loop as one writes it: batch, loss, backward, step; a test after the last task."""
    net: nn.Module = build_classifier("convnet-pooled", 1, len(STREAM.class_ids), 32, STREAM.seed)
    net = net.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    optimizer = torch.optim.Adam(net.parameters(), lr=RATE, fused=True)
    for index in range(len(STREAM)):
        net.train()
        for batch in batches(index):
            loss = cross_entropy(
                net(batch.images.contiguous(memory_format=torch.channels_last)), batch.labels
            )
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
    net.eval()
    with torch.no_grad():
        for task in STREAM:
            test = task.test.batch(slice(None))
            (net(test.images).argmax(1) == test.labels).sum().item()
    return [weight.detach().clone() for weight in net.parameters()]


def ours() -> list[Tensor]:
    """The same through `everlearn.run`."""
    learner: Any = everlearn.build(
        "fine-tuning",
        STREAM,
        "cpu",
        net="convnet-pooled",
        batch_size=BATCH,
        epochs=EPOCHS,
        rate=RATE,
        final_learning_rate=None,
        include_unseen=True,
        fresh=False,
    )
    for _ in everlearn.run(STREAM, learner, Plan(every=len(STREAM))):
        pass
    return [weight.detach().clone() for weight in learner.trainer.weights]


if __name__ == "__main__":
    main()
