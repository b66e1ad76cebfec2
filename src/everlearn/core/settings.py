"""Settings as frozen dataclasses: every field has a help text and can be changed by its name."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import field, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, TypeGuard, TypeVar

from everlearn.core.validate import check_names

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    S = TypeVar("S", bound=DataclassInstance)
T = TypeVar("T")

SHORT = {"lr": "learning_rate"}
# Old names, each with its new names; which one applies depends on the settings it is given for.
RENAMED: dict[str, tuple[str, ...]] = {
    "ahead": ("future_tasks",),
    "again": ("from_scratch",),
    "apart": ("separate_means",),
    "average": ("weight_averaging",),
    "clip": ("max_importance", "max_gradient_norm"),
    "code_ahead": ("code_all_tasks",),
    "code_images": ("code_train_images",),
    "code_tests": ("code_test_images",),
    "codes": ("code_probe_every",),
    "decay": ("weight_decay",),
    "every": ("retrain_every",),
    "excess": ("excess_error",),
    "fade": ("decay_later_learning_rates",),
    "feature": ("feature_distillation",),
    "final_rate": ("final_learning_rate",),
    "finals": ("final_after",),
    "fit": ("fit_candidates",),
    "fresh": ("reset_optimizer",),
    "gated": ("gated_fraction",),
    "generator_rate": ("generator_learning_rate",),
    "generator_share": ("generator_replay_fraction",),
    "guess": ("assign_by",),
    "head_rate": ("head_learning_rate",),
    "high": ("mask_high",),
    "image_loss": ("image_loss_weight",),
    "jitter_shift": ("jitter_translation",),
    "jitter_turn": ("jitter_rotation",),
    "labels": ("fisher_labels",),
    "late": ("store_at_task_end",),
    "latents": ("describe_latents",),
    "later_head_rate": ("later_head_learning_rate",),
    "later_rate": ("later_learning_rate",),
    "least": ("min_latent_kl",),
    "length": ("prompt_length",),
    "limit": ("atypicality_threshold",),
    "low": ("mask_low",),
    "masked": ("masked_entries",),
    "memory": ("buffer_size",),
    "mode": ("replay_mode",),
    "most": ("max_environments",),
    "multiplier": ("importance_scale",),
    "old": ("negative_exemplars",),
    "own": ("instance_stats",),
    "per_task": ("images_per_task",),
    "pool": ("pool_size",),
    "prediction": ("prediction_distillation",),
    "probe": ("probe_every",),
    "pull": ("key_loss_weight",),
    "quiet": ("min_environment_steps",),
    "rate": ("learning_rate",),
    "reach": ("force_capacity",),
    "recalled": ("replay_batch_size",),
    "reference": ("reference_batch_size",),
    "rehearse": ("exemplar_replay",),
    "rise": ("atypicality_rise",),
    "samples": ("fisher_samples",),
    "share": ("replay_fraction",),
    "shared": ("batchwise_prompts",),
    "side": ("image_size",),
    "slow": ("running_mean_batches",),
    "spreads": ("num_deviations",),
    "summed": ("sum_reconstruction",),
    "switches": ("environment_switches",),
    "tau": ("temperature", "snapshot_steps"),
    "test_images": ("test_images_per_task",),
    "test_tasks": ("max_test_tasks",),
    "through": ("straight_through",),
    "tolerance": ("max_latent_noise",),
    "top": ("top_k",),
    "trained": ("trained_tasks",),
    "units": ("hidden_units",),
    "unmet": ("include_unseen",),
    "wave": ("cosine_loss_scale",),
    "weight": ("distillation_weight",),
    "whole": ("all_classes_every",),
    "within": ("within_task",),
    "z": ("latent_dim",),
}


def setting(default: T, help: str) -> T:
    """Declare a field of settings with its default and its help text."""
    return field(default=default, metadata={"help": help})


def list_settings(settings: DataclassInstance) -> dict[str, Any]:
    """Return every value by its name; fields of nested groups stand beside the others."""
    out: dict[str, Any] = {}
    for item in fields(settings):
        value = getattr(settings, item.name)
        out |= list_settings(value) if _is_group(value) else {item.name: value}
    return out


def describe_settings(settings: DataclassInstance) -> dict[str, str]:
    """Return the help text of every setting by its name."""
    out: dict[str, str] = {}
    for item in fields(settings):
        value = getattr(settings, item.name)
        help = {item.name: item.metadata.get("help", "")}
        out |= describe_settings(value) if _is_group(value) else help
    return out


def find_name(name: str, known: Collection[str], spell: Callable[[str], str] = repr) -> str:
    """Return the full name of a setting; raise with the new name where an old one is given.

    Args:
        known: names of the settings that can be changed.
        spell: how a name is written in the message.
    """
    if name in known:
        return name
    new = [spell(found) for found in RENAMED.get(name, ()) if found in known]
    if new:
        raise ValueError(f"{spell(name)} is now called {' or '.join(new)}; use the new name")
    return SHORT[name] if SHORT.get(name) in known else name


def change_settings(settings: S, changes: Mapping[str, Any], owner: str) -> S:
    """Return settings with some changed, or raise an error that lists the known names."""
    known = list_settings(settings)
    named = {find_name(name, known): value for name, value in changes.items()}
    if len(named) < len(changes):
        raise ValueError(f"a setting of {owner} is given twice, found {', '.join(changes)}")
    check_names(named, known, owner)
    return _change(settings, named)


def _change(settings: S, changes: Mapping[str, Any]) -> S:
    new = {}
    for item in fields(settings):
        value = getattr(settings, item.name)
        if _is_group(value):
            new[item.name] = _change(value, changes)
        elif item.name in changes:
            new[item.name] = changes[item.name]
            if isinstance(value, bool) and not isinstance(new[item.name], bool):
                raise TypeError(f"{item.name} must be True or False, found {new[item.name]!r}")
    return replace(settings, **new)


def _is_group(value: object) -> TypeGuard[DataclassInstance]:
    return is_dataclass(value) and not isinstance(value, type)
