"""Our methods beside Avalanche's: the same points, initial weights, steps and settings.

    python benchmarks/avalanche.py --out results [--peer .venv-avalanche/bin/python] [--only lwf]

Avalanche runs in an environment of its own (`make avalanche`), in avalanche_peer.py. Rows go to
OUT/avalanche.jsonl, one for each method and seed: test points classified correctly after the last task.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from everlearn import build
from everlearn.core.provenance import provenance
from everlearn.experiments.framework.shared_trials import SEEDS
from everlearn.metrics import aggregate
from everlearn.nets import build_classifier
from everlearn.render.benchmark import write_rows
from everlearn.stream import Gaussians
from everlearn.training.schedule import Schedule, training_batches

Settings = dict[str, Any]
Row = dict[str, Any]
SCHEDULE: Settings = {"batch_size": 32, "epochs": 5, "learning_rate": 0.05}
MOMENTUM = 0.9
PEER = Path(__file__).with_name("avalanche_peer.py")
NET = "net/"  # before the name of a weight in a file


class Pair(NamedTuple):
    """A method on both sides.

    Attributes:
        copying: give Avalanche's SI an optimizer with which it works on a CPU.
        deterministic: the method draws nothing, so that equal batches must lead to equal weights.
        schedule: batch size, epochs and learning rate.
    """

    method: str
    changes: Settings
    strategy: str
    settings: Settings
    copying: bool = False
    deterministic: bool = False
    schedule: Settings = SCHEDULE


SI, COMPAT = "SynapticIntelligence", {"avalanche_compat": True}
EWC, ONLINE = {"decay": 0.9}, {"mode": "online", "decay_factor": 0.9}
DER, AVALANCHE_DER = {"buffer_size": 200}, {"mem_size": 200}
LATE = DER | {"store_at_task_end": True}
PAIRS = (
    Pair("fine-tuning", {}, "Naive", {}, deterministic=True),
    Pair("er", {"buffer_size": 50}, "Replay", {"mem_size": 50}),
    Pair("er", {"buffer_size": 200}, "Replay", {"mem_size": 200}),
    Pair("lwf", {"distillation_weight": 0.1}, "LwF", {"alpha": 0.1, "temperature": 2}, deterministic=True),
    Pair("lwf", {"distillation_weight": 1.0}, "LwF", {"alpha": 1.0, "temperature": 2}, deterministic=True),
    Pair("si", {"strength": 0.1}, SI, {"si_lambda": 0.1}),
    Pair("si", {"strength": 5.0}, SI, {"si_lambda": 5.0}),
    Pair("si", {"strength": 0.1} | COMPAT, SI, {"si_lambda": 0.1}, copying=True, deterministic=True),
    Pair("si", {"strength": 5.0} | COMPAT, SI, {"si_lambda": 5.0}, copying=True, deterministic=True),
    Pair("si", {"strength": 1e3} | COMPAT, SI, {"si_lambda": 1e3}, copying=True, deterministic=True),
    Pair("online-ewc", {"strength": 0.3} | EWC, "EWC", {"ewc_lambda": 0.3} | ONLINE),
    Pair("online-ewc", {"strength": 100.0} | EWC, "EWC", {"ewc_lambda": 100.0} | ONLINE),
    # A batch of one: only then is Avalanche's Fisher information that of single points.
    Pair(
        "online-ewc", {"strength": 100.0, "fisher_labels": "true"} | EWC,
        "EWC", {"ewc_lambda": 100.0} | ONLINE,
        deterministic=True, schedule={"batch_size": 1, "epochs": 1, "learning_rate": 0.002},
    ),
    Pair(
        "agem", {"images_per_task": 10, "reference_batch_size": 64},
        "AGEM", {"patterns_per_exp": 10, "sample_size": 64},
    ),
    Pair("der", {"alpha": 0.1} | DER, "DER", {"alpha": 0.1, "beta": 0.0} | AVALANCHE_DER),
    Pair("der", {"alpha": 0.3} | DER, "DER", {"alpha": 0.3, "beta": 0.0} | AVALANCHE_DER),
    # DER++; 0.1 and 0.5 are the defaults of Avalanche's DER.
    Pair("der", {"alpha": 0.1, "beta": 0.5} | DER, "DER", {"alpha": 0.1, "beta": 0.5} | AVALANCHE_DER),
    Pair("der", {"alpha": 0.3, "beta": 0.5} | DER, "DER", {"alpha": 0.3, "beta": 0.5} | AVALANCHE_DER),
    # With the logits at the end of a task, as Avalanche stores them.
    Pair("der", {"alpha": 0.3} | LATE, "DER", {"alpha": 0.3, "beta": 0.0} | AVALANCHE_DER),
    Pair("der", {"alpha": 0.1, "beta": 0.5} | LATE, "DER", {"alpha": 0.1, "beta": 0.5} | AVALANCHE_DER),
)  # fmt: skip


def main() -> None:
    """Train both sides, write rows and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument("--peer", default=".venv-avalanche/bin/python")
    parser.add_argument("--only", help="one method, by our name, and fine-tuning")
    asked = parser.parse_args()
    if shutil.which(asked.peer) is None:
        parser.error(f"there is no {asked.peer}; make it with: make avalanche")
    torch.set_num_threads(1)
    pairs = [pair for pair in PAIRS if asked.only in (None, pair.method) or pair is PAIRS[0]]
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_jobs(folder, pairs)
        subprocess.run([asked.peer, "-P", PEER, folder], check=True)
        for number, pair in enumerate(pairs):
            of_pair = [compare(folder, number, pair, seed) for seed in SEEDS]
            print(describe(of_pair), flush=True)
            rows += of_pair
    origin = provenance()
    write_rows(asked.out / "avalanche.jsonl", [{**row, **origin} for row in rows])


def write_jobs(folder: Path, pairs: list[Pair]) -> None:
    """Write what Avalanche trains on, and with which settings."""
    jobs = []
    for number, pair in enumerate(pairs):
        for seed in SEEDS:
            for ordered in (False, True) if pair.deterministic else (False,):
                name = job_name(number, seed, ordered)
                data = training_data(pair, Gaussians(seed=seed), ordered)
                np.savez(folder / f"{name}_data.npz", **data)
                jobs.append(job(pair, seed, name, ordered))
    (folder / "jobs.json").write_text(json.dumps(jobs))


def job_name(number: int, seed: int, ordered: bool = False) -> str:
    """Return the name of the files of a job."""
    return f"{number}_{seed}{'_ordered' if ordered else ''}"


def job(pair: Pair, seed: int, name: str, ordered: bool) -> Settings:
    """Return what Avalanche trains; data in our order hold all epochs and are used once, unshuffled."""
    return {
        "data": f"{name}_data.npz", "out": f"{name}.npz", "seed": seed, "strategy": pair.strategy,
        "settings": pair.settings, "copying": pair.copying, "momentum": MOMENTUM, **pair.schedule,
        "epochs": 1 if ordered else pair.schedule["epochs"], "shuffle": not ordered,
    }  # fmt: skip


def training_data(pair: Pair, stream: Gaussians, ordered: bool) -> Settings:
    """Return initial weights, points and labels; `ordered`: of all epochs, in the order of our batches."""
    schedule = Schedule(**pair.schedule)
    tasks = [
        [found.batch for found in training_batches(task, schedule, "cpu")]
        if ordered
        else [task.train.batch(slice(None))]
        for task in stream
    ]
    net = build_classifier("mlp", stream.dimensions, len(stream.class_ids), 1, stream.seed)
    return {
        "train_points": np.stack([torch.cat([b.images for b in task]) for task in tasks]),
        "train_labels": np.stack([torch.cat([b.labels for b in task]) for task in tasks]),
        "test_points": test_set(stream)[0].numpy(),
        **{NET + name: weight.numpy() for name, weight in net.state_dict().items()},
    }


def test_set(stream: Gaussians) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the test points of all tasks, and their labels."""
    batches = [task.test.batch(slice(None)) for task in stream]
    return torch.cat([b.images for b in batches]), torch.cat([b.labels for b in batches])


def compare(folder: Path, number: int, pair: Pair, seed: int) -> Row:
    """Train our side, and return the row of both."""
    stream = Gaussians(seed=seed)
    points, labels = test_set(stream)
    ours = learn(pair, stream, points)
    avalanche = np.load(folder / f"{job_name(number, seed)}.npz")
    naive = np.load(folder / f"{job_name(0, seed)}.npz")
    difference = None
    if pair.deterministic:
        difference = weight_difference(
            ours, np.load(folder / f"{job_name(number, seed, ordered=True)}.npz")
        )
    return {
        "what": "test points correct after the last task, beside Avalanche", "seed": seed,
        "total": len(labels), **pair.schedule, "momentum": MOMENTUM,
        "method": pair.method, "settings": pair.changes, "correct": count_correct(ours, labels),
        "finite": weight_difference(ours, ours) == 0, "seconds": ours["seconds"],
        "avalanche": str(avalanche["avalanche"]), "strategy": pair.strategy,
        "avalanche_settings": pair.settings, "copying": pair.copying,
        "avalanche_correct": count_correct(avalanche, labels),
        "avalanche_finite": weight_difference(avalanche, avalanche) == 0,
        "avalanche_seconds": float(avalanche["seconds"]),
        "avalanche_equals_naive": weight_difference(avalanche, naive) == 0,
        "weight_difference": difference,
    }  # fmt: skip


def learn(pair: Pair, stream: Gaussians, points: torch.Tensor) -> Settings:
    """Return our predictions, final weights and seconds, in the form of the other side."""
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
    seconds = time.perf_counter() - began
    weights = {NET + name: weight.numpy() for name, weight in learner.state()["net"].items()}
    return {"predictions": learner.predict(points).numpy(), "seconds": seconds, **weights}


def count_correct(found: Any, labels: torch.Tensor) -> int:
    """Count the predictions that are correct."""
    return int((found["predictions"] == labels.numpy()).sum())


def weight_difference(one: Any, other: Any) -> float | None:
    """Return the largest difference of two weights; None where one is not finite."""
    names = [name for name in one if name.startswith(NET)]
    largest = float(np.max([np.abs(one[name] - other[name]).max() for name in names]))
    return largest if math.isfinite(largest) else None


def describe(rows: list[Row]) -> str:
    """Return a line with the accuracies of both sides over seeds."""
    row = rows[0]
    settings, avalanche_settings = (
        " ".join(f"{name}={value}" for name, value in row[key].items())
        for key in ("settings", "avalanche_settings")
    )
    return (
        f"{row['method']} {settings}: {accuracy(rows)} | "
        f"{row['strategy']} {avalanche_settings}: {accuracy(rows, 'avalanche_')}{notes(rows)}"
    )


def accuracy(rows: list[Row], side: str = "") -> str:
    """Return the mean accuracy over seeds with its interval."""
    found = aggregate([row[f"{side}correct"] / row["total"] for row in rows])
    text = f"{found.mean:.3f} [{found.low:.3f}, {found.high:.3f}]"
    return text if all(row[f"{side}finite"] for row in rows) else f"{text}, diverged"


def intervals_overlap(rows: list[Row]) -> bool:
    """Return whether the intervals of both sides overlap."""
    ours, avalanche = (
        aggregate([row[key] / row["total"] for row in rows])
        for key in ("correct", "avalanche_correct")
    )
    return ours.low <= avalanche.high and avalanche.low <= ours.high


def notes(rows: list[Row]) -> str:
    """Return what else the rows of a pair show."""
    text = "" if intervals_overlap(rows) else "; the intervals do not overlap"
    text += "; with copies of the weights" if rows[0]["copying"] else ""
    if all(row["avalanche_equals_naive"] for row in rows):
        text += "; equal to Naive, bit for bit"
    differences = [row["weight_difference"] for row in rows]
    if None not in differences:
        text += f"; from the same batches, weights differ by at most {max(differences):.1e}"
    return text


if __name__ == "__main__":
    main()
