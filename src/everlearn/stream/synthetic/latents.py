"""Latents: a stream of synthetic latents by class and session, for experiments that take seconds.

A latent of class c in session k is ReLU(m_c + 0.8 s_k + 0.8 u_ck + 0.9 noise), each term of N(0, I).
Some sessions are test sessions, which are never trained on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from everlearn.core.random import Floats, Purpose, check_seed, normals, permutation
from everlearn.core.validate import check_int
from everlearn.stream.codec import decode, encode
from everlearn.stream.scenarios.incremental import NewInstancesAndClasses
from everlearn.stream.scenarios.scenario import ScenarioContext
from everlearn.stream.synthetic.points import FeatureCanvas, points_split
from everlearn.stream.task import Split, Task, find_task

SCENARIOS = ("nc", "nic")
_SESSION_SCALE = 0.8
_PAIR_SCALE = 0.8
_NOISE_SCALE = 0.9
_LIMITS = {
    "classes": 10**4,
    "first": 10**4,
    "classes_per_task": 10**4,
    "sessions": 10**4,
    "dimensions": 10**4,
    "train": 10**5,
    "test": 10**5,
}
Pair = tuple[int, int]


@dataclass(frozen=True)
class Latents:
    """Tasks of latents by class and session.

    Args:
        seed: determines all random draws.
        scenario: "nc": new classes in all training sessions; "nic": after the first task, one class in
            one session per task.
        tasks: the number of tasks; None for as many as show everything once.
        classes: the number of classes.
        first: the number of classes in the first task.
        classes_per_task: the number of classes in each later task of "nc".
        sessions: the number of sessions, including test sessions.
        test_sessions: the sessions to test on.
        dimensions: the number of dimensions of a latent.
        train: the number of latents per class and training session.
        test: the number of latents per class and test session.
        online: whether every training latent may be seen only once.
    """

    KEY: ClassVar = "everlearn_latents"
    seed: int = 0
    scenario: str = "nc"
    tasks: int | None = None
    classes: int = 50
    first: int = 10
    classes_per_task: int = 5
    sessions: int = 11
    test_sessions: tuple[int, ...] = (2, 6, 9)
    dimensions: int = 256
    train: int = 30
    test: int = 20
    online: bool = False

    def __post_init__(self) -> None:
        """Check every setting and count the tasks."""
        check_seed(self.seed)
        if self.scenario not in SCENARIOS:
            known = ", ".join(SCENARIOS)
            raise ValueError(f"unknown scenario {self.scenario!r} of latents; known: {known}")
        for name, limit in _LIMITS.items():
            check_int(getattr(self, name), name, 1, limit)
        check_int(self.first, "first", 1, self.classes)
        self._check_sessions()
        limit = self._max_tasks()
        tasks = limit if self.tasks is None else check_int(self.tasks, "tasks", 1, limit)
        object.__setattr__(self, "tasks", tasks)
        if not isinstance(self.online, bool):
            raise TypeError(f"online must be True or False, found {self.online!r}")

    def _check_sessions(self) -> None:
        if not isinstance(self.test_sessions, (tuple, list)):
            raise TypeError(f"test_sessions must be numbers, found {self.test_sessions!r}")
        chosen = [check_int(k, "test_sessions", 0, self.sessions - 1) for k in self.test_sessions]
        if not 0 < len(set(chosen)) == len(chosen) < self.sessions:
            raise ValueError(
                f"test_sessions must be some of the {self.sessions} sessions, each once, and leave some "
                f"to train on, found {self.test_sessions}"
            )
        object.__setattr__(self, "test_sessions", tuple(chosen))

    def _max_tasks(self) -> int:
        if self.scenario == "nic":
            return self._order.length
        return 1 + -(-(self.classes - self.first) // self.classes_per_task)

    @property
    def train_sessions(self) -> tuple[int, ...]:
        """The sessions to train on."""
        return tuple(k for k in range(self.sessions) if k not in self.test_sessions)

    @property
    def canvas(self) -> FeatureCanvas:
        """The shape of a latent."""
        return FeatureCanvas(self.dimensions)

    @property
    def class_ids(self) -> range:
        """The ids of all classes."""
        return range(self.classes)

    def __len__(self) -> int:
        """Count the tasks."""
        return self.tasks or 0

    def __getitem__(self, index: int) -> Task:
        """Make one task."""
        number = find_task(index, len(self))
        pairs = self._pairs(number)
        classes = tuple(dict.fromkeys(label for label, _ in pairs))
        tests = [(label, session) for label in classes for session in self.test_sessions]
        means = np.maximum(self._normals(_from_one(classes), 0, 0), 0)[:, None]
        return Task(
            number,
            classes,
            train=self._draw(pairs, self.train),
            val=points_split((), np.zeros((0, 1, self.dimensions))),
            test=self._draw(tests, self.test),
            canonical=points_split(classes, means),
            seed=self.seed,
            online=self.online,
        )

    def __iter__(self) -> Iterator[Task]:
        """Iterate over the tasks; every pass gives the same ones."""
        return (self[number] for number in range(len(self)))

    @property
    def _order(self) -> NewInstancesAndClasses:
        return NewInstancesAndClasses(self.classes, len(self.train_sessions), self.first)

    def _pairs(self, task: int) -> list[Pair]:
        """List the (class, training session) pairs of a task."""
        sessions = self.train_sessions
        if self.scenario == "nic":
            context = ScenarioContext(self.seed, self.tasks, 1, 0)
            arrivals = self._order.arrivals(context, task)
            return [(label, sessions[band]) for label, band in arrivals if band is not None]
        order = permutation(self.seed, Purpose.LATENTS, 0, self.classes).tolist()
        end = self.first + task * self.classes_per_task
        start = end - self.classes_per_task if task else 0
        return [(label, session) for label in order[start:end] for session in sessions]

    def _draw(self, pairs: list[Pair], rows: int) -> Split:
        """Make a split with `rows` latents of each pair of class and session."""
        classes, sessions = (_from_one(numbers) for numbers in zip(*pairs, strict=True))
        centres = (
            self._normals(classes, 0, 0)
            + _SESSION_SCALE * self._normals(0, sessions, 0)
            + _PAIR_SCALE * self._normals(classes, sessions, 0)
        )
        noise = self._normals(classes[:, None], sessions[:, None], np.arange(1, rows + 1))
        latents = np.maximum(centres[:, None] + _NOISE_SCALE * noise, 0)
        return points_split([label for label, _ in pairs], latents)

    def _normals(self, classes: ArrayLike, sessions: ArrayLike, row: ArrayLike) -> Floats:
        """Return the normal draws of a class, a session or a pair; both count from 1, and 0 means none."""
        index = (np.asarray(classes, np.uint64) << np.uint64(32)) | np.asarray(sessions, np.uint64)
        return normals(self.seed, Purpose.LATENTS, index, row, count=self.dimensions)

    def to_json(self) -> str:
        """Return the settings as JSON."""
        return encode(self.KEY, asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Latents:
        """Build the stream that `to_json` described."""
        allowed = [item.name for item in fields(cls)]
        return cls(**decode(text, cls.KEY, allowed, "a stream of latents"))

    def with_changes(self, **changes: Any) -> Latents:
        """Return a copy with some settings replaced; tasks=None means all."""
        return replace(self, **changes)


def _from_one(numbers: tuple[int, ...]) -> Any:
    """Count from 1 instead of 0."""
    return np.array(numbers, np.int64) + 1
