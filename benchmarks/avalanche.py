"""Our methods beside Avalanche's: the same points, first weights, budget and settings.

    python benchmarks/avalanche.py --out results [--peer .venv-avalanche/bin/python] [--only lwf]

Avalanche runs in an environment of its own (`make avalanche`), in avalanche_peer.py. Rows go to
OUT/avalanche.jsonl, one for each method and seed: answers right of all, after the last task.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from everlearn import build
from everlearn.core.provenance import provenance
from everlearn.metrics import aggregate
from everlearn.nets import build_classifier
from everlearn.render.benchmark import write_rows
from everlearn.stream import Gaussians
from everlearn.training.schedule import Schedule, training_batches

Settings = dict[str, Any]
Row = dict[str, Any]
PACE: Settings = {"batch_size": 32, "epochs": 5, "rate": 0.05}
MOMENTUM = 0.9
PEER = Path(__file__).with_name("avalanche_peer.py")
NET = "net/"  # before the name of a weight in a file


class Pair(NamedTuple):
    """A method on both sides.

    Attributes:
        moving: give Avalanche's SI an optimiser with which it works on a CPU.
        same: the method draws nothing, so that the same batches must lead to the same weights.
        schedule: batch size, epochs and learning rate.
    """

    method: str
    changes: Settings
    strategy: str
    settings: Settings
    moving: bool = False
    same: bool = False
    schedule: Settings = PACE


SI, COMPAT = "SynapticIntelligence", {"avalanche_compat": True}
EWC, ONLINE = {"decay": 0.9}, {"mode": "online", "decay_factor": 0.9}
DER, ITS_DER = {"buffer_size": 200}, {"mem_size": 200}
LATE = DER | {"store_at_task_end": True}
PAIRS = (
    Pair("fine-tuning", {}, "Naive", {}, same=True),
    Pair("er", {"buffer_size": 50}, "Replay", {"mem_size": 50}),
    Pair("er", {"buffer_size": 200}, "Replay", {"mem_size": 200}),
    Pair("lwf", {"distillation_weight": 0.1}, "LwF", {"alpha": 0.1, "temperature": 2}, same=True),
    Pair("lwf", {"distillation_weight": 1.0}, "LwF", {"alpha": 1.0, "temperature": 2}, same=True),
    Pair("si", {"strength": 0.1}, SI, {"si_lambda": 0.1}),
    Pair("si", {"strength": 5.0}, SI, {"si_lambda": 5.0}),
    Pair("si", {"strength": 0.1} | COMPAT, SI, {"si_lambda": 0.1}, moving=True, same=True),
    Pair("si", {"strength": 5.0} | COMPAT, SI, {"si_lambda": 5.0}, moving=True, same=True),
    Pair("si", {"strength": 1e3} | COMPAT, SI, {"si_lambda": 1e3}, moving=True, same=True),
    Pair("online-ewc", {"strength": 0.3} | EWC, "EWC", {"ewc_lambda": 0.3} | ONLINE),
    Pair("online-ewc", {"strength": 100.0} | EWC, "EWC", {"ewc_lambda": 100.0} | ONLINE),
    # A batch of one: only then is Avalanche's Fisher information that of single points.
    Pair(
        "online-ewc", {"strength": 100.0, "fisher_labels": "true"} | EWC,
        "EWC", {"ewc_lambda": 100.0} | ONLINE,
        same=True, schedule={"batch_size": 1, "epochs": 1, "rate": 0.002},
    ),
    Pair(
        "agem", {"images_per_task": 10, "reference_batch_size": 64},
        "AGEM", {"patterns_per_exp": 10, "sample_size": 64},
    ),
    Pair("der", {"alpha": 0.1} | DER, "DER", {"alpha": 0.1, "beta": 0.0} | ITS_DER),
    Pair("der", {"alpha": 0.3} | DER, "DER", {"alpha": 0.3, "beta": 0.0} | ITS_DER),
    # DER++; 0.1 and 0.5 are what Avalanche's DER does unless told otherwise.
    Pair("der", {"alpha": 0.1, "beta": 0.5} | DER, "DER", {"alpha": 0.1, "beta": 0.5} | ITS_DER),
    Pair("der", {"alpha": 0.3, "beta": 0.5} | DER, "DER", {"alpha": 0.3, "beta": 0.5} | ITS_DER),
    # With logits of when a task ends, as Avalanche keeps them.
    Pair("der", {"alpha": 0.3} | LATE, "DER", {"alpha": 0.3, "beta": 0.0} | ITS_DER),
    Pair("der", {"alpha": 0.1, "beta": 0.5} | LATE, "DER", {"alpha": 0.1, "beta": 0.5} | ITS_DER),
)  # fmt: skip


def main() -> None:
    """Run both sides, write rows and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument("--peer", default=".venv-avalanche/bin/python")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", help="one method, by our name, and fine-tuning")
    asked = parser.parse_args()
    if shutil.which(asked.peer) is None:
        parser.error(f"there is no {asked.peer}; make it with: make avalanche")
    torch.set_num_threads(1)
    pairs = [pair for pair in PAIRS if asked.only in (None, pair.method) or pair is PAIRS[0]]
    streams, rows = [Gaussians(seed=seed) for seed in range(asked.seeds)], []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder, pairs, streams)
        subprocess.run([asked.peer, "-P", PEER, folder], check=True)
        for number, pair in enumerate(pairs):
            some = list(measure(folder, number, pair, streams))
            print(line(some), flush=True)
            rows += some
    origin = provenance()
    write_rows(asked.out / "avalanche.jsonl", [{**row, **origin} for row in rows])


def prepare(folder: Path, pairs: list[Pair], streams: list[Gaussians]) -> None:
    """Write data, and what Avalanche shall do with them; its answers come beside them."""
    jobs = []
    for number, pair in enumerate(pairs):
        for seed, stream in enumerate(streams):
            for kind in ("", "_same") if pair.same else ("",):
                name = f"{number}_{seed}{kind}"
                np.savez(folder / f"{name}_data.npz", **export(pair, stream, bool(kind)))
                jobs.append(job(pair, seed, name, bool(kind)))
    (folder / "jobs.json").write_text(json.dumps(jobs))


def job(pair: Pair, seed: int, name: str, same: bool) -> Settings:
    """What Avalanche shall do; data in our order hold all epochs and are taken once, as they come."""
    return {
        "data": f"{name}_data.npz", "out": f"{name}.npz", "seed": seed, "strategy": pair.strategy,
        "settings": pair.settings, "moving": pair.moving, "momentum": MOMENTUM, **pair.schedule,
        "epochs": 1 if same else pair.schedule["epochs"], "shuffle": not same,
    }  # fmt: skip


def export(pair: Pair, stream: Gaussians, same: bool) -> Settings:
    """First weights, points and labels; same: those of all epochs, as our methods meet them."""
    tasks = [
        [lesson.batch for lesson in training_batches(task, Schedule(**pair.schedule), "cpu")]
        if same
        else [task.train.batch(slice(None))]
        for task in stream
    ]
    net = build_classifier("mlp", stream.dimensions, len(stream.class_ids), 1, stream.seed)
    return {
        "train_points": np.stack([torch.cat([b.images for b in task]) for task in tasks]),
        "train_labels": np.stack([torch.cat([b.labels for b in task]) for task in tasks]),
        "test_points": exam(stream)[0].numpy(),
        **{NET + name: weight.numpy() for name, weight in net.state_dict().items()},
    }


def exam(stream: Gaussians) -> tuple[torch.Tensor, torch.Tensor]:
    """Test points of all tasks, and their labels."""
    batches = [task.test.batch(slice(None)) for task in stream]
    return torch.cat([b.images for b in batches]), torch.cat([b.labels for b in batches])


def measure(folder: Path, number: int, pair: Pair, streams: list[Gaussians]) -> Iterator[Row]:
    """Give a row for each seed."""
    for seed, stream in enumerate(streams):
        points, labels = exam(stream)
        ours, theirs = learn(pair, stream, points), np.load(folder / f"{number}_{seed}.npz")
        naive = np.load(folder / f"0_{seed}.npz")
        same = np.load(folder / f"{number}_{seed}_same.npz") if pair.same else None
        yield {
            "what": "answers right after the last task, beside Avalanche", "seed": seed,
            "of": len(labels), **pair.schedule, "momentum": MOMENTUM,
            "method": pair.method, "settings": pair.changes, "right": right(ours, labels),
            "finite": distance(ours, ours) == 0, "seconds": ours["seconds"],
            "avalanche": str(theirs["avalanche"]), "strategy": pair.strategy,
            "its_settings": pair.settings, "moving": pair.moving, "its_right": right(theirs, labels),
            "its_finite": distance(theirs, theirs) == 0, "its_seconds": float(theirs["seconds"]),
            "its_weights_are_naive": distance(theirs, naive) == 0,
            "off_with_same_batches": distance(ours, same) if same else None,
        }  # fmt: skip


def learn(pair: Pair, stream: Gaussians, points: torch.Tensor) -> Settings:
    """Our side, as the other one tells it: answers, last weights and seconds."""
    learner = build(
        pair.method, stream, "cpu",
        net="mlp", optimizer="sgd", momentum=MOMENTUM, final_learning_rate=None, include_unseen=True,
        reset_optimizer=False,
        **pair.schedule, **pair.changes,
    )  # fmt: skip
    began = time.perf_counter()
    for task in stream:
        for _ in learner.learn(task):
            pass
    seconds, weights = time.perf_counter() - began, learner.state()["net"]
    named = {NET + name: weight.numpy() for name, weight in weights.items()}
    return {"answers": learner.predict(points).numpy(), "seconds": seconds, **named}


def right(found: Any, labels: torch.Tensor) -> int:
    """Count the answers that are right."""
    return int((found["answers"] == labels.numpy()).sum())


def distance(one: Any, other: Any) -> float | None:
    """The largest difference of two weights; None where one is not finite."""
    names = [name for name in one if name.startswith(NET)]
    off = float(np.max([np.abs(one[name] - other[name]).max() for name in names]))
    return off if math.isfinite(off) else None


def line(rows: list[Row]) -> str:
    """A method in words: its accuracy here and there over seeds, with Trainer's intervals."""
    row = rows[0]
    settings, its_settings = (
        " ".join(f"{name}={value}" for name, value in row[key].items())
        for key in ("settings", "its_settings")
    )
    return (
        f"{row['method']} {settings}: {spread(rows, 'right', 'finite')} | "
        f"{row['strategy']} {its_settings}: {spread(rows, 'its_right', 'its_finite')}{notes(rows)}"
    )


def spread(rows: list[Row], key: str, finite: str) -> str:
    """Mean accuracy over seeds, and its interval."""
    found = aggregate([row[key] / row["of"] for row in rows])
    told = f"{found.mean:.3f} [{found.low:.3f}, {found.high:.3f}]"
    return told if all(row[finite] for row in rows) else told + ", diverged"


def overlap(rows: list[Row]) -> bool:
    """Whether the intervals of both sides have a number in common."""
    one, two = (aggregate([row[key] / row["of"] for row in rows]) for key in ("right", "its_right"))
    return one.low <= two.high and two.low <= one.high


def notes(rows: list[Row]) -> str:
    """What else there is to say."""
    offs = [row["off_with_same_batches"] for row in rows]
    said = "" if overlap(rows) else "; the intervals do not overlap"
    said += "; with copies of the weights" if rows[0]["moving"] else ""
    if all(row["its_weights_are_naive"] for row in rows):
        said += "; to the bit what Naive gives"
    if None not in offs:
        said += f"; given the same batches, weights agree to {max(offs):.1e}"
    return said


if __name__ == "__main__":
    main()
