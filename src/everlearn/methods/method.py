"""Method: all that the rest of the package knows about one method, readable without torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from everlearn.core.settings import change_settings

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from everlearn.learner import Learner
    from everlearn.stream import TaskStream

    Builder = Callable[[TaskStream, DataclassInstance, str], Learner]

Changes = Mapping[str, object]


@dataclass(frozen=True)
class Method:
    """One method: what it is, what it is given, what it keeps and how it is built.

    Attributes:
        summary: one line for lists and tables.
        group: the family it is listed under.
        paper: the citation; empty for a method of ours and for baselines without a paper.
        supervision: what it is given to learn from.
        stores: what it keeps from task to task, besides its net.
        learner: where it is built, as "er:ER": a module of this package, or "package.module:Class" of any
            other, and a class or function in it. The module also has the dataclass `Settings`.
        style: its place in the cycle of colours and dashes of figures; None: chosen by its name.
        changes: settings that differ from the defaults of its module.
        presets: settings for some presets or groups of presets, by their names.
        needs_images: it does not learn from points or latents.
        grows: what it stores grows with the number of tasks.
        first_task: how it learns a single task, where that is not fine-tuning.
    """

    summary: str
    group: str
    paper: str
    supervision: str
    stores: str
    learner: str
    style: int | None = None
    changes: Changes = field(default_factory=dict)
    presets: Mapping[str, Changes] = field(default_factory=dict)
    needs_images: bool = False
    grows: bool = False
    first_task: str = ""

    def settings(self) -> DataclassInstance:
        """Return its settings, a frozen dataclass."""
        module, _, _ = self.learner.partition(":")
        defaults: DataclassInstance = self._import(module).Settings()
        return change_settings(defaults, self.changes, module)

    @property
    def build(self) -> Builder:
        """Return the function that makes a learner for a stream, with settings, on a device."""
        module, _, name = self.learner.partition(":")
        builder: Builder = getattr(self._import(module), name)
        return builder

    def settings_for(self, *presets: str) -> dict[str, object]:
        """Return what this method changes for presets; later ones take precedence."""
        return {
            name: value
            for preset in presets
            for name, value in self.presets.get(preset, {}).items()
        }

    def with_preset(self, name: str, changes: Changes) -> Method:
        """Return the same record with more settings for a preset."""
        return replace(
            self, presets={**self.presets, name: {**self.presets.get(name, {}), **changes}}
        )

    @staticmethod
    def _import(module: str) -> Any:
        # Not before it is needed: methods import torch, and reports read these records without it.
        return import_module(module if "." in module else f"everlearn.methods.{module}")
