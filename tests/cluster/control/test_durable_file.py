"""A small file that is replaced whole."""

import os
from pathlib import Path

import pytest

from rumq.cluster.control.durable_file import replace_durably


def test_it_is_made_with_its_directory_and_replaced(tmp_path: Path) -> None:
    path = tmp_path / "below" / "file.json"
    for content in (b"one", b"a longer two"):
        replace_durably(path, content)
        assert path.read_bytes() == content
    assert path.stat().st_mode & 0o777 == 0o600 and list(path.parent.iterdir()) == [path]


def test_the_old_one_stays_until_the_new_one_is_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file.json"
    replace_durably(path, b"old")

    def fail(descriptor: int) -> None:
        raise OSError(5, "the disk fails")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="the disk fails"):
        replace_durably(path, b"new")
    assert path.read_bytes() == b"old"
