"""Latents: a stream of synthetic latents, classes seen in sessions, for looks that take seconds.

A latent of class c in session k is ReLU(m_c + 0.8 s_k + 0.8 u_ck + 0.9 noise), each term of N(0, I).
Some sessions are for testing alone; no latent of theirs is ever trained on.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from everlearn.border import check_whole
from everlearn.philox import Floats, Purpose, check_seed, normals, permutation
from everlearn.stream.arrivals import Setting
from everlearn.stream.codec import read_settings
from everlearn.stream.points import Plain, split_of
from everlearn.stream.scenarios import NewInstancesAndClasses
from everlearn.stream.task import Split, Task

KEY = "everlearn_latents"
FORMAT = 1
SCENARIOS = ("nc", "nic")
_SESSION, _PAIR, _NOISE = 0.8, 0.8, 0.9
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
    """Tasks of latents by class and session; a pure function of a few numbers.

    Args:
        seed: everything follows from it.
        scenario: "nc", new classes in all training sessions, or "nic", after the first task one class in
            one session.
        tasks: how many; None for as many as show everything once.
        classes: how many classes there are.
        first: how many of them come with the first task.
        classes_per_task: how many come with each later one, in "nc".
        sessions: how many there are, those for testing among them.
        test_sessions: which are for testing.
        dimensions: of a latent.
        train: latents a class and training session.
        test: latents a class and test session.
        online: every training latent may be seen once only.
    """

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
        for name, most in _LIMITS.items():
            check_whole(getattr(self, name), name, 1, most)
        check_whole(self.first, "first", 1, self.classes)
        self._check_sessions()
        most = self._most_tasks()
        tasks = most if self.tasks is None else check_whole(self.tasks, "tasks", 1, most)
        object.__setattr__(self, "tasks", tasks)
        if not isinstance(self.online, bool):
            raise TypeError(f"online must be True or False, found {self.online!r}")

    def _check_sessions(self) -> None:
        if not isinstance(self.test_sessions, (tuple, list)):
            raise TypeError(f"test_sessions must be numbers, found {self.test_sessions!r}")
        chosen = [check_whole(k, "test_sessions", 0, self.sessions - 1) for k in self.test_sessions]
        if not 0 < len(set(chosen)) == len(chosen) < self.sessions:
            raise ValueError(
                f"test_sessions must be some of the {self.sessions} sessions, each once, and leave some "
                f"to train on, found {self.test_sessions}"
            )
        object.__setattr__(self, "test_sessions", tuple(chosen))

    def _most_tasks(self) -> int:
        if self.scenario == "nic":
            return self._order.length
        return 1 + -(-(self.classes - self.first) // self.classes_per_task)

    @property
    def train_sessions(self) -> tuple[int, ...]:
        """The sessions to train on."""
        return tuple(k for k in range(self.sessions) if k not in self.test_sessions)

    @property
    def canvas(self) -> Plain:
        """The shape of a latent."""
        return Plain(self.dimensions)

    @property
    def class_ids(self) -> range:
        """The ids of all classes."""
        return range(self.classes)

    def __len__(self) -> int:
        """Count the tasks."""
        return self.tasks or 0

    def __getitem__(self, index: int) -> Task:
        """Make any task."""
        number = int(index) + (len(self) if index < 0 else 0)
        if not 0 <= number < len(self):
            raise IndexError(f"task {index} is not in the stream (0 .. {len(self) - 1})")
        pairs = self._pairs(number)
        classes = tuple(dict.fromkeys(label for label, _ in pairs))
        tests = [(label, session) for label in classes for session in self.test_sessions]
        means = np.maximum(self._normals(_count(classes), 0, 0), 0)[:, None]
        return Task(
            number,
            classes,
            train=self._draw(pairs, self.train),
            val=split_of((), np.zeros((0, 1, self.dimensions))),
            test=self._draw(tests, self.test),
            canonical=split_of(classes, means),
            seed=self.seed,
            online=self.online,
        )

    def __iter__(self) -> Iterator[Task]:
        """Go through the tasks; two passes give the same."""
        return (self[number] for number in range(len(self)))

    @property
    def _order(self) -> NewInstancesAndClasses:
        return NewInstancesAndClasses(self.classes, len(self.train_sessions), self.first)

    def _pairs(self, task: int) -> list[Pair]:
        """The classes and training sessions that come with a task."""
        sessions = self.train_sessions
        if self.scenario == "nic":
            setting = Setting(self.seed, self.tasks, 1, 0)
            found = self._order.arrivals(setting, task)
            return [(label, sessions[band]) for label, band in found if band is not None]
        order = permutation(self.seed, Purpose.LATENTS, 0, self.classes).tolist()
        end = self.first + task * self.classes_per_task
        start = end - self.classes_per_task if task else 0
        return [(label, session) for label in order[start:end] for session in sessions]

    def _draw(self, pairs: list[Pair], rows: int) -> Split:
        """Latents of some classes and sessions, so many of each pair."""
        classes, sessions = (_count(numbers) for numbers in zip(*pairs, strict=True))
        centres = (
            self._normals(classes, 0, 0)
            + _SESSION * self._normals(0, sessions, 0)
            + _PAIR * self._normals(classes, sessions, 0)
        )
        noise = self._normals(classes[:, None], sessions[:, None], np.arange(1, rows + 1))
        latents = np.maximum(centres[:, None] + _NOISE * noise, 0)
        return split_of([label for label, _ in pairs], latents)

    def _normals(self, classes: ArrayLike, sessions: ArrayLike, row: ArrayLike) -> Floats:
        """The normals of a class, a session or both, counted from 1: 0 stands for none."""
        index = (np.asarray(classes, np.uint64) << np.uint64(32)) | np.asarray(sessions, np.uint64)
        return normals(self.seed, Purpose.LATENTS, index, row, count=self.dimensions)

    def to_json(self) -> str:
        """Write the stream as a small JSON text."""
        return json.dumps({KEY: FORMAT, **asdict(self)}, indent=1)

    @classmethod
    def from_json(cls, text: str) -> Latents:
        """Read a stream back, equal to the one written."""
        allowed = [item.name for item in fields(cls)]
        return cls(**read_settings(text, KEY, FORMAT, allowed, "a stream of latents"))

    def with_changes(self, **changes: Any) -> Latents:
        """The same stream but for some settings; tasks=None asks for all."""
        return replace(self, **changes)


def _count(numbers: tuple[int, ...]) -> Any:
    """Numbers counted from 1."""
    return np.array(numbers, np.int64) + 1
