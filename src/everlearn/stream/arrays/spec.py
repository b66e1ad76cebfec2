"""ArrayStream: the tasks of a stream over real images, from files that the user has."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from everlearn.philox import check_seed
from everlearn.render.canvas import Canvas
from everlearn.stream.arrays import codec
from everlearn.stream.arrays.bands import check_bands
from everlearn.stream.arrays.checks import check_latents, check_settings, check_shares
from everlearn.stream.arrays.files import Arrays, data_folder
from everlearn.stream.arrays.parts import TEST_SHARE, training_classes
from everlearn.stream.arrays.plan import (
    find_lists,
    fit_scenario,
    most_tasks,
    usual_classes,
)
from everlearn.stream.arrays.sessions import deal_sessions, hold_out
from everlearn.stream.arrays.sources import find_source, load
from everlearn.stream.arrays.sources.nicv2 import NAMES
from everlearn.stream.arrays.task import build_array_task
from everlearn.stream.arrivals import Setting
from everlearn.stream.points import Plain
from everlearn.stream.task import Task, find_task


@dataclass(frozen=True)
class ArrayStream:
    """Tasks of real images. What is None is found from the data; two streams are equal on any folder.

    Official test images are kept apart and are those of a task's classes. A task's exemplars are the
    canonical images of dSprites, else the first training image of each class in the task.

    Args:
        name: mnist, fashion-mnist, omniglot, dsprites, cifar10 or core50; latents/NAME for the latents
            in the file latents/NAME.npz, which are given as they are.
        data: folder of the data sets; EVERLEARN_DATA by default.
        seed: class order, splits and training order follow from it.
        tasks: how many; by default as many as the classes are enough for.
        classes_per_task: how many classes come with a task.
        first_classes: how many come with the first one, where it is another number.
        scenario: a name (class, task, domain, nic, blurry, recurring; for core50 nicv2-79, nicv2-196
            or nicv2-391) or a scenario. Bands of domain and nic are the sessions of core50 and of
            latents, the drawers of omniglot, ranges of a factor of dsprites; for nic the training
            images of any other data set are dealt into sessions at random.
        class_order: "random" by the seed, or "natural".
        val_share: part of the training images of each class that is held back for validation.
        test_share: likewise for testing, where the data have no official test set; where tasks are
            drawers, it is this part of the drawers.
        size: height and width to resize images to.
        channels: 1 (grey: the mean of red, green and blue) or 3.
        dtype: "float32" in [0, 1], or "uint8".
        online: every training row may be seen once only.
        imbalance: how many times larger a share of its training rows the first class of a task keeps
            than the last.
        rows: how many images the data have; a stream from a file is refused on other data.
    """

    name: str
    data: str | Path | None = field(default=None, compare=False)
    seed: int = 0
    tasks: int | None = None
    classes_per_task: int | None = None
    first_classes: int | None = None
    scenario: Any = "class"
    class_order: str = "random"
    val_share: float = 0.1
    test_share: float | None = None
    size: int | None = None
    channels: int | None = None
    dtype: str = "float32"
    online: bool = False
    imbalance: float = 1.0
    rows: int | None = None

    def __post_init__(self) -> None:
        """Check every setting and find from the data what was not given."""
        find_source(self.name)
        self._set("seed", check_seed(self.seed))
        self._set("data", data_folder(self.data))
        check_settings(self)
        arrays = load(self.name, self.folder, find_lists(self.scenario))
        self._fit_images(arrays)
        self._fit_shares(arrays)
        self._fit_scenario(arrays)

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def _fit_images(self, arrays: Arrays) -> None:
        if self.rows not in (None, len(arrays)):
            raise ValueError(
                f"this stream was made of {self.rows} images, but {self.name} in {self.folder} has "
                f"{len(arrays)}; give the same version of the data set"
            )
        _, channels, _, side = arrays.images.shape
        self._set("rows", len(arrays))
        self._set("size", self.size or side)
        self._set("channels", channels if self.channels is None else self.channels)
        if find_source(self.name).latents:
            check_latents(self, channels, side)
        else:
            Canvas(self.size or side, self.channels or 0, dtype=self.dtype)

    def _fit_shares(self, arrays: Arrays) -> None:
        if arrays.test is not None and self.test_share is not None:
            raise ValueError(f"{self.name} has an official test set; leave test_share out")
        if arrays.test is None and self.test_share is None:
            self._set("test_share", TEST_SHARE)
        check_shares(self.val_share, self.test_share or 0.0)

    def _fit_scenario(self, arrays: Arrays) -> None:
        known = training_classes(arrays)
        arrays = hold_out(arrays, self.scenario, self.seed, self.test_share)
        scenario = find_lists(self.scenario) or fit_scenario(self.scenario, arrays, len(known))
        self._set("scenario", scenario)
        check_bands(scenario, deal_sessions(arrays, scenario, self.seed), known, self.name)
        self._fit_classes(len(known))
        self._fit_tasks(len(known))
        if hasattr(scenario, "check"):
            scenario.check(self.setting)

    def _fit_classes(self, known: int) -> None:
        usual = usual_classes(self.scenario, find_source(self.name).classes_per_task, known)
        each = usual if self.classes_per_task is None else self.classes_per_task
        if each != usual and self.scenario.name in ("nic", *NAMES):
            raise ValueError(f"scenario {self.scenario.name!r} says itself which classes come when")
        if self.first_classes is not None and self.scenario.name not in ("class", "task"):
            raise ValueError("first_classes goes with the scenarios class and task only")
        most = max(each, self.first_classes or 0, getattr(self.scenario, "classes", 0))
        if most > known:
            raise ValueError(f"{self.name} has {known} classes, found {most} asked for")
        self._set("classes_per_task", each)

    def _fit_tasks(self, known: int) -> None:
        most = most_tasks(self, known)
        if self.tasks is None and most is None:
            raise ValueError("this scenario brings no new classes and has no end; give tasks")
        if self.tasks is not None and most is not None and self.tasks > most:
            raise ValueError(
                f"{self.name} has {known} classes, enough for {most} tasks of scenario "
                f"{self.scenario.name!r} with classes_per_task={self.classes_per_task}, found "
                f"tasks={self.tasks}"
            )
        self._set("tasks", most if self.tasks is None else self.tasks)

    @property
    def folder(self) -> Path:
        """The data folder."""
        return data_folder(self.data)

    @property
    def setting(self) -> Setting:
        """What a scenario needs to know."""
        return Setting(self.seed, self.tasks, self.classes_per_task or 0, 0)

    @property
    def class_ids(self) -> range:
        """The ids that classes may have."""
        arrays = load(self.name, self.folder, find_lists(self.scenario))
        return range(int(arrays.labels.max()) + 1)

    @property
    def canvas(self) -> Canvas | Plain:
        """Size, channels and dtype of the images."""
        if find_source(self.name).latents:
            return Plain(self.channels or 0, self.size or 0)
        return Canvas(self.size or 0, self.channels or 0, dtype=self.dtype)

    def __len__(self) -> int:
        """Count the tasks."""
        return self.tasks or 0

    def __getitem__(self, index: int) -> Task:
        """Make any task."""
        return build_array_task(self, find_task(index, len(self)))

    def __iter__(self) -> Iterator[Task]:
        """Go through the tasks; two passes give the same."""
        return (self[number] for number in range(len(self)))

    def to_json(self) -> str:
        """Write the stream as a small JSON text, without the data folder."""
        return codec.encode(self)

    @classmethod
    def from_json(cls, text: str, data: str | Path | None = None) -> ArrayStream:
        """Read a stream back, equal to the one written, on the data of a folder."""
        allowed = {item.name for item in fields(cls) if item.compare}
        return cls(data=data, **codec.decode(text, allowed))

    def with_changes(self, **changes: Any) -> ArrayStream:
        """The same stream but for some settings; one given as None is found from the data again."""
        return replace(self, **changes)
