"""Files of JSON lines: packed ones are read as plain ones, and damage is explained."""

from __future__ import annotations

import gzip
import random
from pathlib import Path
from typing import Any

import pytest

from everlearn.core.jsonl import encode_row, pack_json_lines, packed_path, read_json_lines

ROWS = [{"kind": "test", "step": step, "name": "é"} for step in range(50)]


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    """A file of rows, not packed."""
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b"".join(map(encode_row, ROWS)))
    return path


@pytest.fixture
def packed(plain: Path) -> Path:
    """The same rows, packed."""
    pack_json_lines(plain)
    return plain


def test_a_packed_file_replaces_the_plain_one_and_holds_the_same_rows(packed):
    assert not packed.exists()
    assert read_json_lines(packed) == ROWS


def test_gunzip_restores_a_packed_file(plain):
    content = plain.read_bytes()
    pack_json_lines(plain)
    assert gzip.decompress(packed_path(plain).read_bytes()) == content


def test_equal_rows_are_packed_to_equal_bytes_without_name_or_time(tmp_path, plain):
    copy = tmp_path / "a folder" / "costs.jsonl"
    copy.parent.mkdir()
    copy.write_bytes(plain.read_bytes())
    for path in (plain, copy):
        pack_json_lines(path)
    content = packed_path(plain).read_bytes()
    assert packed_path(copy).read_bytes() == content
    assert content[3:8] == bytes(5)  # flags (no name) and time


def test_packing_twice_changes_nothing(packed):
    before = packed_path(packed).read_bytes()
    pack_json_lines(packed)
    assert packed_path(packed).read_bytes() == before


def test_a_file_that_does_not_exist_has_no_rows_and_is_not_packed(tmp_path):
    path = tmp_path / "rows.jsonl"
    assert read_json_lines(path) == []
    pack_json_lines(path)
    assert list(tmp_path.iterdir()) == []


def test_an_empty_file_is_packed_to_no_rows(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b"")
    pack_json_lines(path)
    assert read_json_lines(path) == []


def test_a_plain_file_beside_a_packed_one_is_refused(packed):
    packed.write_bytes(encode_row({"kind": "test"}))
    for function in (read_json_lines, pack_json_lines):
        with pytest.raises(ValueError, match=r"rows\.jsonl and rows\.jsonl\.gz both exist; delete"):
            function(packed)


def test_packing_ends_what_a_kill_interrupted(packed):
    packed.write_bytes(b"".join(map(encode_row, ROWS)))  # killed before the plain file was removed
    pack_json_lines(packed)
    assert read_json_lines(packed) == ROWS


def damage(content: bytes) -> list[Any]:
    """Truncated, with a changed byte, empty, and not gzip at all."""
    draws = random.Random(0)
    changed = bytearray(content)
    changed[draws.randrange(20, len(content) - 8)] ^= 255
    return [content[:-1], content[:15], content[:5], bytes(changed), b"", b"rows\n"]


@pytest.mark.parametrize("case", range(6))
def test_a_damaged_packed_file_is_refused_in_one_line(packed, case):
    path = packed_path(packed)
    path.write_bytes(damage(path.read_bytes())[case])
    with pytest.raises(
        ValueError, match=r"rows\.jsonl\.gz is damaged: .*; put back a copy"
    ) as error:
        read_json_lines(packed)
    assert "\n" not in str(error.value)
