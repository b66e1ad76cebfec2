"""ArrayStream: a stream of tasks over a data set in the user's data folder."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, ClassVar

from everlearn.core.random import check_seed
from everlearn.render.canvas import Canvas
from everlearn.stream.datasets import codec
from everlearn.stream.datasets.bands import check_bands
from everlearn.stream.datasets.checks import check_latents, check_settings, check_shares
from everlearn.stream.datasets.files import Arrays, data_folder
from everlearn.stream.datasets.scenario import (
    default_classes_per_task,
    find_file_lists,
    fit_scenario,
    max_tasks,
)
from everlearn.stream.datasets.sessions import assign_sessions, hold_out_sessions
from everlearn.stream.datasets.sources import find_source, load
from everlearn.stream.datasets.sources.nicv2 import NAMES
from everlearn.stream.datasets.splits import TEST_SHARE, training_classes
from everlearn.stream.datasets.task import build_array_task
from everlearn.stream.scenarios.scenario import ScenarioContext
from everlearn.stream.synthetic.points import FeatureCanvas
from everlearn.stream.task import Task, find_task


@dataclass(frozen=True)
class ArrayStream:
    """Tasks over a data set. Settings left at None are derived from the data.

    The official test set, where there is one, is the test set of each task's classes. Exemplars are the
    canonical images of dSprites, else the first training image of each class in the task. The data
    folder plays no part in equality.

    Args:
        name: mnist, fashion-mnist, omniglot, dsprites, cifar10 or core50; latents/NAME for the latents
            in the file latents/NAME.npz, which are used unchanged.
        data: folder of the data sets; EVERLEARN_DATA by default.
        seed: determines class order, splits and training order.
        tasks: the number of tasks; by default as many as the classes suffice for.
        classes_per_task: the number of classes per task.
        first_classes: the number of classes of the first task, if it differs.
        scenario: a name (class, task, domain, nic, blurry, recurring; for core50 nicv2-79, nicv2-196
            or nicv2-391) or a scenario object. The bands of domain and nic are the sessions of core50 and
            of latents, the people who drew omniglot, or ranges of a factor of dsprites; for nic, the
            training images of any other data set are assigned to sessions at random.
        class_order: "random" or "natural".
        val_share: the fraction of each class's training images that is held out for validation.
        test_share: the fraction that is held out for testing, where there is no official test set; with
            omniglot in scenario domain or nic, the fraction of people.
        size: height and width to resize images to.
        channels: 1 (grey: the mean of red, green and blue) or 3.
        dtype: "float32" in [0, 1], or "uint8".
        online: whether every training row may be seen only once.
        imbalance: the ratio between the fractions of training rows that the largest and the smallest
            class of a task keep.
        rows: the number of images in the data set; a stream read from a file refuses other data.
    """

    KEY: ClassVar = codec.KEY
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
        """Check every setting and derive from the data those that were not given."""
        find_source(self.name)
        self._set("seed", check_seed(self.seed))
        self._set("data", data_folder(self.data))
        check_settings(self)
        arrays = load(self.name, self.folder, find_file_lists(self.scenario))
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
        arrays = hold_out_sessions(arrays, self.scenario, self.seed, self.test_share)
        scenario = find_file_lists(self.scenario) or fit_scenario(self.scenario, arrays, len(known))
        self._set("scenario", scenario)
        check_bands(scenario, assign_sessions(arrays, scenario, self.seed), known, self.name)
        self._fit_classes(len(known))
        self._fit_tasks(len(known))
        if hasattr(scenario, "check"):
            scenario.check(self.scenario_context)

    def _fit_classes(self, known: int) -> None:
        source_default = find_source(self.name).classes_per_task
        default = default_classes_per_task(self.scenario, source_default, known)
        each = default if self.classes_per_task is None else self.classes_per_task
        if each != default and self.scenario.name in ("nic", *NAMES):
            raise ValueError(
                f"scenario {self.scenario.name!r} determines the classes of every task; leave "
                f"classes_per_task out, found {each}"
            )
        if self.first_classes is not None and self.scenario.name not in ("class", "task"):
            raise ValueError("first_classes is for the scenarios class and task; leave it out")
        required = max(each, self.first_classes or 0, getattr(self.scenario, "classes", 0))
        if required > known:
            raise ValueError(f"{self.name} has {known} classes, found {required} requested")
        self._set("classes_per_task", each)

    def _fit_tasks(self, known: int) -> None:
        limit = max_tasks(self, known)
        if self.tasks is None and limit is None:
            raise ValueError("this scenario brings no new classes and has no end; give tasks")
        if self.tasks is not None and limit is not None and self.tasks > limit:
            raise ValueError(
                f"{self.name} has {known} classes, enough for {limit} tasks of scenario "
                f"{self.scenario.name!r} with classes_per_task={self.classes_per_task}, found "
                f"tasks={self.tasks}"
            )
        self._set("tasks", limit if self.tasks is None else self.tasks)

    @property
    def folder(self) -> Path:
        """The data folder."""
        return data_folder(self.data)

    @property
    def scenario_context(self) -> ScenarioContext:
        """The settings that the scenario depends on."""
        return ScenarioContext(self.seed, self.tasks, self.classes_per_task or 0, 0)

    @property
    def class_ids(self) -> range:
        """The ids that classes may have."""
        arrays = load(self.name, self.folder, find_file_lists(self.scenario))
        return range(int(arrays.labels.max()) + 1)

    @property
    def canvas(self) -> Canvas | FeatureCanvas:
        """The size, channels and dtype of the images."""
        if find_source(self.name).latents:
            return FeatureCanvas(self.channels or 0, self.size or 0)
        return Canvas(self.size or 0, self.channels or 0, dtype=self.dtype)

    def __len__(self) -> int:
        """Count the tasks."""
        return self.tasks or 0

    def __getitem__(self, index: int) -> Task:
        """Make one task."""
        return build_array_task(self, find_task(index, len(self)))

    def __iter__(self) -> Iterator[Task]:
        """Iterate over the tasks; every pass gives the same ones."""
        return (self[number] for number in range(len(self)))

    def to_json(self) -> str:
        """Return the settings as JSON, without the data folder."""
        return codec.encode_stream(self)

    @classmethod
    def from_json(cls, text: str, data: str | Path | None = None) -> ArrayStream:
        """Build the stream that `to_json` described, over the data sets of a folder."""
        allowed = {item.name for item in fields(cls) if item.compare}
        return cls(data=data, **codec.decode_stream(text, allowed))

    def with_changes(self, **changes: Any) -> ArrayStream:
        """Return a copy with some settings replaced; those set to None are derived from the data again."""
        return replace(self, **changes)
