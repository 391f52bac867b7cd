"""What somebody removed, cut short or flipped in a data directory is told at the start and by the doctor, at once.

Attack: a careless hand, or a disk, takes a part of the directory; nobody says so and sessions are gone."""

import os
import shutil
from pathlib import Path

import pytest

from commitlog.chunk import HEADER_BYTES, maybe_header
from commitlog.format.segment import SEGMENT_HEADER_BYTES, decode_segment_header
from tests.broker_process import Event, Rumqd
from tests.cli.conftest import rumqd
from tests.conformance.peer import Peer

AS_WRITTEN = [  # a chunk a message in every segment, also in one that was sealed long enough ago to be packed
    "--set", "log.segment_bytes_max=65536", "--set", "log.scrub_bytes_per_second=0",
    "--set", "log.pack_bytes_per_second=0",
]  # fmt: skip


def filled(data: Path, count: int = 40) -> None:
    broker = Rumqd(data, *AS_WRITTEN)
    broker.start()
    try:
        with Peer(broker.address) as publisher:
            publisher.connect("p")
            publisher.publish_all("t/a", [bytes(5000)] * count, qos=1)
    finally:
        broker.stop()


def started(data: Path, *names: str) -> list[Event]:
    """What one start tells under these names."""
    broker = Rumqd(data, *AS_WRITTEN)
    broker.start()
    broker.stop()
    return broker.named(*names)


def test_a_directory_that_is_whole_is_told_of_nothing(tmp_path: Path) -> None:
    data = tmp_path / "data"
    filled(data)
    assert started(data, "log.missing", "log.gap") == []
    assert rumqd("doctor", "--data", str(data), "--quick").status == 0


@pytest.mark.parametrize("knows", [True, False])
def test_sessions_that_were_removed_are_missed_once(tmp_path: Path, knows: bool) -> None:
    data, copy, new = tmp_path / "data", tmp_path / "copy", tmp_path / "new"
    filled(data)
    assert rumqd("backup", str(copy), "--data", str(data)).status == 0
    assert rumqd("restore", str(copy), "--data", str(new)).status == 0
    shutil.rmtree(new / "_state")
    if not knows:
        os.unlink(new / "PARTITIONS")  # a directory of before
    said = rumqd("doctor", "--data", str(new), "--quick")
    assert said.status == 1 and "_state/g1/p0 is missing: it contained persistent sessions" in said.out
    (missed,) = started(new, "log.missing")
    assert missed["level"] == "error" and missed["path"] == f"{new}/_state/g1/p0" and "sessions" in missed["why"]
    assert started(new, "log.missing") == []


def test_a_stream_that_was_removed_is_missed(tmp_path: Path) -> None:
    data = tmp_path / "data"
    filled(data)
    shutil.rmtree(data / "main")
    (missed,) = started(data, "log.missing")
    assert "records of stream main" in missed["why"]


def test_a_sealed_segment_that_is_cut_short_is_told_with_what_is_lost(tmp_path: Path) -> None:
    data = tmp_path / "data"
    filled(data)
    first = min((data / "main/g1/p0").glob("*.seg"))
    os.truncate(first, first.stat().st_size - 20_000)
    said = rumqd("doctor", "--data", str(data), "--quick")
    assert said.status == 1 and str(first) in said.out and "was sealed with" in said.out
    (gap,) = started(data, "log.gap")
    assert str(first) in gap["why"] and 0 < gap["first_lsn"] < gap["next_lsn"] < 40
    assert len(started(data, "log.gap")) == 1, "as long as it is so"


def test_the_doctor_says_of_flipped_padding_what_is_true(tmp_path: Path) -> None:
    data = tmp_path / "data"
    filled(data)
    first = min((data / "main/g1/p0").glob("*.seg"))
    raw = bytearray(first.read_bytes())
    position = SEGMENT_HEADER_BYTES
    salt = decode_segment_header(bytes(raw[:SEGMENT_HEADER_BYTES]), str(first)).salt
    while (header := maybe_header(bytes(raw[position : position + HEADER_BYTES]), salt)) is not None:
        behind = position + HEADER_BYTES + header.body_len
        position += header.total_len
        if behind < position:
            raw[behind] ^= 1
            break
    first.write_bytes(raw)
    said = rumqd("doctor", "--data", str(data))
    assert "the padding of a chunk is not zero" in said.out
    assert "rebuilds it" not in said.out and "smartctl" in said.out
