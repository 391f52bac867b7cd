"""A broker of today on data of each released version, and of each change since: all of it is there."""

from __future__ import annotations

import hashlib
import json
import subprocess
import tarfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zlib import crc32

import msgspec
import pytest

import rumq
from commitlog.format.segment import SEGMENT_HEADER_BYTES
from commitlog.replica import replica_note
from rumq.cli.main import main
from tests.broker_process import ENVIRONMENT, Rumqd, run_command
from tests.upgrade import formats
from tests.upgrade.story import WILL, after, is_drained, messages
from tests.upgrade.write import flags_of

DATA = Path(__file__).parent / "data"
NEWEST = "unreleased"
# Archives of released versions are what their users have: they never change.
RELEASED = {"0.1.0": "2d113bc2f1d8d2f8a1be2e5296904b7a467001561d1db1d85be5c8ee1ceea45a"}
VERSIONS = sorted(path.name.removesuffix(".tar.xz") for path in DATA.iterdir())
LAST_WORD = "write data of this version: python -m tests.upgrade.write unreleased"


@pytest.fixture(params=VERSIONS)
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return unpacked(str(request.param), tmp_path)


def unpacked(version: str, folder: Path) -> Path:
    with tarfile.open(DATA / f"{version}.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return folder


def about(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "about.json").read_text())  # type: ignore[no-any-return]


def records(data: Path) -> Counter[tuple[str, bytes, int, bool]]:
    found = rumq.read(str(data), columns=["topic", "payload", "qos", "retain"], lake="none").to_arrow()
    return Counter(zip(*(found[name].to_pylist() for name in found.column_names), strict=True))


def published() -> Counter[tuple[str, bytes, int, bool]]:
    return Counter((each.topic, each.payload, each.qos, each.retain) for each in messages())


def test_every_record_session_and_retained_message_is_there(folder: Path) -> None:
    broker = Rumqd(folder / "data", *flags_of(folder))
    broker.start()
    try:
        after(broker.address)
    finally:
        broker.end()
    assert broker.named("log.gap", "log.damaged") == []
    assert records(folder / "data") == published() + Counter([(WILL.topic, WILL.payload, WILL.qos, False)])


def test_an_order_of_the_operator_is_in_force(folder: Path) -> None:
    if not (folder / "drained").exists():
        pytest.skip("of a version before orders stayed")
    broker = Rumqd(folder / "drained", *flags_of(folder))
    broker.start()
    try:
        assert is_drained(broker.address)
        assert main(["ask", "undrain", "--data", str(folder / "drained")]) == 0
        assert not is_drained(broker.address)
    finally:
        broker.end()


def test_another_process_reads_it_as_it_is(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert records(folder / "data") == published()
    assert main(["log", "verify", "--data", str(folder / "data")]) == 0, capsys.readouterr().out
    assert main(["doctor", "--data", str(folder / "data")]) == 0, capsys.readouterr().out


def test_a_backup_is_restored(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["restore", str(folder / "backup"), "--data", str(folder / "new")]) == 0, capsys.readouterr()
    assert records(folder / "new") == published()


def test_a_lake_is_sound_and_goes_on(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lake, data = str(folder / "lake"), str(folder / "data")
    assert main(["lake", "verify", lake, "--data", data]) == 0, capsys.readouterr().out
    assert main(["lake", "export", "--to", lake, "--data", data, "--once"]) == 0, capsys.readouterr().out
    both = rumq.read(data, columns=["topic", "payload"], lake=lake).to_arrow()
    assert both.num_rows == len(messages())


def test_its_settings_are_taken(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All keys that the version knew, with its defaults."""
    path = folder / "all.toml"
    path.write_text(about(folder)["settings"])
    assert main(["config", "--config", str(path)]) == 0, capsys.readouterr().err


# Formats that nodes speak with each other, and those without a number: fields are added at the end, none goes.


def samples(version: str, folder: Path) -> Iterator[tuple[str, str, list[str], bytes]]:
    """(format, struct, its fields, one of it) of all that the version wrote."""
    found = about(unpacked(version, folder))
    for format_name, structs in found.get("samples", {}).items():
        for name, raw in structs.items():
            yield format_name, name, found["formats"][format_name][name], bytes.fromhex(raw)


def is_kept(old: Any, new: Any) -> bool:
    """Every value is where it was; more may have come behind it."""
    if isinstance(old, list):
        return (
            isinstance(new, list)
            and len(new) >= len(old)
            and all(is_kept(*pair) for pair in zip(old, new, strict=False))
        )
    if isinstance(old, dict):
        return isinstance(new, dict) and all(key in new and is_kept(old[key], new[key]) for key in old)
    return bool(old == new)


def values_of(raw: bytes, fields: list[str]) -> dict[str, Any]:
    """The value of each field; behind the tag, if there is one."""
    content = msgspec.msgpack.decode(raw)
    if isinstance(content, dict):
        return {name: content[name] for name in fields}
    return dict(zip(fields, content[len(content) - len(fields) :], strict=True))


@pytest.mark.parametrize("version", VERSIONS)
def test_messages_and_entries_of_a_version_are_read(version: str, tmp_path: Path) -> None:
    wrong = []
    for format_name, name, fields, raw in samples(version, tmp_path):
        try:
            struct = formats.read_as(format_name, name)
            read = msgspec.msgpack.encode(msgspec.msgpack.decode(raw, type=struct))
        except (KeyError, msgspec.DecodeError) as fault:
            wrong.append(f"{format_name}, {name}: {fault!r}")
            continue
        if not is_kept(values_of(raw, fields), values_of(read, list(struct.__struct_encode_fields__))):
            wrong.append(f"{format_name}, {name}: {fields} is read as {struct.__struct_encode_fields__}")
    assert wrong == []


def test_notes_of_a_replica_are_read() -> None:
    """Those of the first version that had them, and whole ones of today."""
    first = replica_note.decoded(b'{"promised": 3, "opened": 2, "disk": "d"}\n')
    assert first == replica_note.Note(3, 2, "d")
    whole = replica_note.Whole(4, 2, "t", {"main/g1/p0": (9, "x.seg")})
    voters = (2, 5, ["n1", "n2"], ["n3"])
    note = replica_note.Note(
        3, 2, "d", "pt", "ot", voters, {"main/g1/p0": 7}, 1, 1, 4, {"main/g1/p0": (9, "x.seg")}, True, whole
    )
    assert replica_note.decoded(replica_note.encoded(note)) == note


# Whoever changes a format leaves data of before, and a version that does not know it says so.


def test_a_format_that_changes_has_new_data(tmp_path: Path) -> None:
    written = about(unpacked(NEWEST, tmp_path))["formats"]
    today = json.loads(json.dumps(formats.current()))
    changed = sorted(name for name in {*written, *today} if written.get(name) != today.get(name))
    assert changed == [], LAST_WORD


def test_data_of_a_released_version_never_changes() -> None:
    digests = {version: hashlib.sha256((DATA / f"{version}.tar.xz").read_bytes()).hexdigest() for version in VERSIONS}
    assert {version: digest for version, digest in digests.items() if version != NEWEST} == RELEASED


def contents(data: Path) -> dict[str, bytes]:
    return {str(path.relative_to(data)): path.read_bytes() for path in data.rglob("*") if path.is_file()}


def refused(data: Path) -> str:
    """What `rumqd run` says instead of serving. Nothing is changed but what recovery notes of other partitions."""
    before = contents(data)
    done = subprocess.run(
        run_command("--data", str(data)),
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode != 0, done.stderr
    after_it = contents(data)
    assert {name for name in before if after_it[name] != before[name] and not name.endswith("/MANIFEST")} == set()
    return done.stderr


def test_a_directory_of_a_later_version_is_refused(tmp_path: Path) -> None:
    data = unpacked(NEWEST, tmp_path) / "data"
    (data / "FORMAT").write_text("rumq 2\n")
    assert "its format is 'rumq 2', this version reads 'rumq 1': use the rumq that wrote it" in refused(data)


@pytest.mark.parametrize("stream", ["main", "_state"])
def test_a_segment_of_a_later_version_is_refused(stream: str, tmp_path: Path) -> None:
    data = unpacked(NEWEST, tmp_path) / "data"
    path = min(data.glob(f"{stream}/g1/p0/*.seg"))
    raw = bytearray(path.read_bytes())
    raw[10:12] = (2).to_bytes(2, "little")  # the version that a reader needs
    raw[SEGMENT_HEADER_BYTES - 4 : SEGMENT_HEADER_BYTES] = crc32(raw[: SEGMENT_HEADER_BYTES - 4]).to_bytes(4, "little")
    path.write_bytes(raw)
    assert f"{path} needs a reader of version 2, this is 1: use the rumq that wrote it" in refused(data)
