"""Whoever can read a data directory reads every message: what rumq writes is its owner's alone, whatever the umask.

Attack: another user of the machine reads the log, its backup, what was restored from it, an export or a lake."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from commitlog import RealFiles
from rumq.lake.folder import LocalFolder
from rumq.process.wiring.exposure import exposed
from tests.broker_process import Rumqd
from tests.cli.conftest import rumqd
from tests.conformance.peer import Peer


@pytest.fixture(autouse=True)
def open_umask() -> Iterator[None]:
    """The umask that hides least."""
    before = os.umask(0)
    yield
    os.umask(before)


def open_to_others(root: Path) -> list[str]:
    found = [root, *root.rglob("*")]
    return [f"{path} {stat.filemode(path.lstat().st_mode)}" for path in found if path.lstat().st_mode & 0o077]


def filled(data: Path) -> None:
    broker = Rumqd(data)
    broker.start()
    try:
        with Peer(broker.address) as publisher:
            publisher.connect("p")
            publisher.publish("t/a", b"secret", qos=1, retain=True)
    finally:
        broker.stop()


def test_a_log_its_backup_and_its_restoration_are_their_owners_alone(tmp_path: Path) -> None:
    data, copy, new = tmp_path / "above" / "data", tmp_path / "copies" / "backup", tmp_path / "new" / "data"
    filled(data)
    assert open_to_others(tmp_path / "above") == []
    assert rumqd("backup", str(copy), "--data", str(data)).status == 0
    assert open_to_others(copy.parent) == []
    assert rumqd("restore", str(copy), "--data", str(new)).status == 0
    assert open_to_others(new.parent) == []
    assert rumqd("log", "export", "--data", str(data), "--to", str(tmp_path / "all.jsonl")).status == 0
    assert open_to_others(tmp_path / "all.jsonl") == []


def test_a_backup_closes_what_an_older_one_left_open(tmp_path: Path) -> None:
    data, copy = tmp_path / "data", tmp_path / "backup"
    filled(data)
    assert rumqd("backup", str(copy), "--data", str(data)).status == 0
    for path in copy.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    assert rumqd("backup", str(copy), "--data", str(data)).status == 0
    assert [each for each in open_to_others(copy) if each.split()[1].startswith("d")] == []
    assert exposed(str(copy)) == ""


def test_a_start_and_the_doctor_tell_of_a_directory_that_others_can_read(tmp_path: Path) -> None:
    data = tmp_path / "data"
    filled(data)
    for path in [data, *data.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
    broker = Rumqd(data)
    broker.start()
    broker.stop()
    (said,) = broker.named("data.exposed")
    assert said["level"] == "warning" and f"chmod -R o= {data}" in said["why"]
    looked = rumqd("doctor", "--data", str(data))
    assert looked.status == 1 and "everybody on this machine can read" in looked.out
    for path in [data, *data.rglob("*")]:
        path.chmod(path.stat().st_mode & ~0o007)
    broker = Rumqd(data)
    broker.start()
    broker.stop()
    assert broker.named("data.exposed") == []


def test_one_closed_directory_on_the_way_closes_all_below(tmp_path: Path) -> None:
    inner = tmp_path / "data" / "main"
    inner.mkdir(parents=True)
    (inner / "x.seg").touch()
    for path in (inner.parent, inner):
        path.chmod(0o755)
    assert str(inner / "x.seg") in exposed(str(tmp_path / "data"))
    inner.chmod(0o770)
    assert exposed(str(tmp_path / "data")) == ""


def test_a_lake_is_as_open_as_its_folder_and_never_to_everybody(tmp_path: Path) -> None:
    for mode, wanted in ((None, 0o700), (0o755, 0o750), (0o777, 0o750), (0o700, 0o700)):
        place = tmp_path / f"lake-{mode}"
        if mode is not None:
            place.mkdir(mode)
        lake = LocalFolder(str(place))
        lake.lock()
        lake.put("a/b.parquet", b"rows", lambda _: None)
        lake.unlock()
        assert stat.S_IMODE((place / "a").stat().st_mode) == wanted
        assert stat.S_IMODE((place / "a/b.parquet").stat().st_mode) == wanted & 0o666


def test_directories_above_are_made_closed_as_well(tmp_path: Path) -> None:
    RealFiles().make_directory(str(tmp_path / "main/g1/p0"))
    assert open_to_others(tmp_path / "main") == []
