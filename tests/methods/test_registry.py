"""METHODS: every record is complete, can be built from, and is all that other code needs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from everlearn.core.settings import change_settings, describe_settings
from everlearn.experiments.framework.scales import SCALES
from everlearn.methods import METHODS, build
from everlearn.methods.registry import describe_methods, group_methods
from everlearn.runs.presets import PRESETS
from everlearn.stream import Gaussians

from ..conftest import import_script

ROOT = Path(__file__).parents[2]
ALL_PRESETS = {**PRESETS, **{f"scale {name}": scale for name, scale in SCALES.items()}}
TOY: dict[str, Any] = {"net": "mlp", "epochs": 1}


@pytest.mark.parametrize("name", METHODS)
def test_a_record_is_complete(name: str) -> None:
    method = METHODS[name]
    assert all((method.summary, method.group, method.supervision, method.stores))
    assert not method.paper or re.search(r"arXiv \d{4}\.\d{5}|(19|20)\d\d, ", method.paper)
    assert callable(method.build)
    assert all(describe_settings(method.settings()).values())


@pytest.mark.parametrize("name", METHODS)
def test_a_method_has_a_page(name: str) -> None:
    assert (ROOT / "docs/methods" / f"{name}.md").exists()


@pytest.mark.parametrize("preset", ALL_PRESETS)
@pytest.mark.parametrize("name", METHODS)
def test_presets_change_settings_that_a_method_has(name: str, preset: str) -> None:
    change_settings(METHODS[name].settings(), ALL_PRESETS[preset].settings_of(name), name)


def test_records_name_presets_that_exist() -> None:
    groups = {group for preset in ALL_PRESETS.values() for group in preset.groups}
    named = {group for method in METHODS.values() for group in method.presets}
    assert named <= groups


def test_no_two_methods_have_the_same_place_in_figures() -> None:
    places = [method.style for method in METHODS.values() if method.style is not None]
    assert len(set(places)) == len(places)


def test_groups_hold_every_method_once() -> None:
    names = [name for group in group_methods().values() for name in group]
    assert sorted(names) == sorted(METHODS)


def test_the_table_links_every_method() -> None:
    assert re.findall(r"\[([^]]+)\]\(pages/\1\.md\)", describe_methods("pages")) == [
        name for group in group_methods().values() for name in group
    ]


def test_records_are_read_without_torch() -> None:
    code = "import sys; import everlearn.methods as m; m.METHODS['er']; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_lr_is_short_for_learning_rate() -> None:
    learner: Any = build("er", Gaussians(), "cpu", **TOY, lr=0.125)
    assert learner.settings.train.schedule.learning_rate == 0.125


def test_an_old_name_is_refused_with_the_new_one() -> None:
    with pytest.raises(ValueError, match="'memory' is now called 'buffer_size'"):
        build("er", Gaussians(), "cpu", **TOY, memory=5)


def test_the_reference_lists_the_methods_as_the_records_do() -> None:
    blocks = import_script("blocks")
    page = (ROOT / "docs/reference/methods.md").read_text()
    assert "<!-- end of methods -->" in page
    assert blocks.fill(page, None, blocks.FROM_CODE) == page, "run python docs/published.py"
