"""Writes to files are told by the name of their directory."""

import select
from pathlib import Path

from rumq.kafka.log.file_watch import FileWatch


def test_a_write_is_told_once_by_name(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    watch = FileWatch()
    assert watch.watch(str(tmp_path / "a"), "first") and watch.watch(str(tmp_path / "b"), "second")
    assert watch.watch(str(tmp_path / "a"), "first")
    assert not watch.watch(str(tmp_path / "none"), "third")
    assert watch.changed() == set()
    (tmp_path / "a/file").write_bytes(b"x")
    assert select.select([watch.descriptor], [], [], 10)[0]
    assert watch.changed() == {"first"} and watch.changed() == set()
    with (tmp_path / "a/file").open("r+b") as file:
        file.write(b"y")
    (tmp_path / "b/file").touch()
    assert watch.changed() == {"first", "second"}
    watch.close()
    watch.close()


def test_without_inotify_everything_may_have_changed() -> None:
    watch = FileWatch()
    watch.close()
    assert not watch.watch("/", "root") and watch.changed() is None
