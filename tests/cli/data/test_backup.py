"""A backup made while the broker is written to has everything that was acknowledged before, and opens by itself."""

import json
import os
import shutil
from pathlib import Path

import pytest

from tests.broker_process import Rumqd
from tests.cli.conftest import rumqd
from tests.conformance.peer import Peer
from tests.conformance.wire import Prop
from tests.faults.kill.episode import everything
from tests.faults.kill.traffic import FINAL
from tests.limits.conftest import Dial, Run, data, join, run

__all__ = ["data", "join", "run"]
SMALL = ["--set", "log.segment_bytes_max=65536"]
AS_WRITTEN = ["--set", "log.pack_bytes_per_second=0"]
LASTING = [(Prop.SESSION_EXPIRY, 3600)]


def publish(peer: Peer, first: int, count: int) -> list[bytes]:
    sent = [b"%d" % n + bytes(2000) for n in range(first, first + count)]
    peer.publish_all("t/a", sent, qos=1)
    return sent


def publish_alone(broker: Rumqd, payloads: list[bytes]) -> None:
    """Each waits for the one before: a group of its own."""
    with Peer(broker.address) as peer:
        peer.connect("p")
        for payload in payloads:
            peer.publish("t/a", payload, qos=1)


def read_all(broker: Rumqd) -> list[bytes]:
    with Peer(broker.address) as reader:
        reader.connect("reader")
        reader.publish("t/a", FINAL, qos=1)
        return everything(reader, 1)


def test_a_backup_under_load_opens_and_has_everything(run: Run, join: Dial, tmp_path: Path) -> None:
    broker = run(*SMALL)
    away = join(broker, "away", properties=LASTING)
    away.subscribe("t/a", qos=1)
    away.leave()
    publisher = join(broker, "p")
    sent = publish(publisher, 0, 100)
    publisher.publish("kept", b"retained", qos=1, retain=True)
    copy = tmp_path / "backup"
    done = rumqd("backup", str(copy), "--data", str(broker.data), "--json")
    assert done.status == 0, done.err
    told = json.loads(done.out)
    assert told["partitions"]["main/g1/p0"] >= 101 and told["linked"] > 0
    later = publish(publisher, 100, 50)

    new = tmp_path / "new"
    restored = rumqd("restore", str(copy), "--data", str(new))
    assert restored.status == 0 and "sound" in restored.out, restored
    other = Rumqd(new)
    other.start()
    assert other.named("log.restored") and not other.named("log.recovered")
    try:
        with Peer(other.address) as away:
            assert away.connect("away", clean=False, properties=LASTING).session_present
            assert away.payloads(100) == sent
            away.subscribe("kept")
            assert away.message().payload == b"retained"
        found = read_all(other)
        assert found[:100] == sent
    finally:
        other.end()
    assert read_all(broker)[:150] == sent + later, "the source is as it was"


def test_a_second_backup_copies_only_what_is_new(run: Run, join: Dial, tmp_path: Path) -> None:
    broker = run(*SMALL, *AS_WRITTEN)
    publisher = join(broker, "p")
    publish(publisher, 0, 200)
    copy = tmp_path / "backup"
    first = json.loads(rumqd("backup", str(copy), "--data", str(broker.data), "--json").out)
    sent = publish(publisher, 200, 10)
    second = json.loads(rumqd("backup", str(copy), "--data", str(broker.data), "--json").out)
    assert second["kept"] >= first["linked"] > 0
    assert second["linked"] < first["linked"]
    assert broker.stop() == 0
    new = tmp_path / "new"
    assert rumqd("restore", str(copy), "--data", str(new)).status == 0
    other = Rumqd(new)
    other.start()
    try:
        assert read_all(other)[-10:] == sent
    finally:
        other.end()


def test_a_backup_of_segments_that_were_packed_since_the_last_one_is_whole(
    run: Run, join: Dial, tmp_path: Path
) -> None:
    broker = run(*SMALL, *AS_WRITTEN)
    sent = [b"%d" % n for n in range(80)]
    publish_alone(broker, sent[:60])
    copy = tmp_path / "backup"
    first = json.loads(rumqd("backup", str(copy), "--data", str(broker.data), "--json").out)
    assert broker.stop() == 0
    again = Rumqd(broker.data, *SMALL)
    again.start()
    try:
        publish_alone(again, sent[60:])  # a segment ends, and the packer looks
        packed = again.event("log.packed", number=3)
        assert packed["bytes"] * 8 < packed["bytes_before"]
        second = json.loads(rumqd("backup", str(copy), "--data", str(broker.data), "--json").out)
    finally:
        again.end()
    assert second["linked"] > first["linked"] > 2
    new = tmp_path / "new"
    restored = rumqd("restore", str(copy), "--data", str(new))
    assert restored.status == 0 and "sound" in restored.out, restored
    assert rumqd("log", "verify", "--data", str(new)).status == 0
    other = Rumqd(new)
    other.start()
    try:
        assert not other.named("log.gap") and read_all(other)[:80] == sent
    finally:
        other.end()


def test_an_unfinished_backup_is_not_restored(run: Run, join: Dial, tmp_path: Path) -> None:
    broker = run()
    publish(join(broker, "p"), 0, 3)
    copy = tmp_path / "backup"
    assert rumqd("backup", str(copy), "--data", str(broker.data)).status == 0
    (copy / "BACKUP").unlink()
    refused = rumqd("restore", str(copy), "--data", str(tmp_path / "new"))
    assert refused.status == 3 and "no finished backup" in refused.err


def test_a_directory_with_something_in_it_is_not_restored_into(run: Run, tmp_path: Path) -> None:
    broker = run()
    copy = tmp_path / "backup"
    assert rumqd("backup", str(copy), "--data", str(broker.data)).status == 0
    refused = rumqd("restore", str(copy), "--data", str(broker.data))
    assert refused.status == 3 and "not empty" in refused.err
    refused = rumqd("backup", str(broker.data), "--data", str(broker.data))
    assert refused.status == 3


def test_damage_in_a_backup_is_told_at_the_restore(run: Run, join: Dial, tmp_path: Path) -> None:
    broker = run()
    publish(join(broker, "p"), 0, 20)
    assert broker.stop() == 0
    copy = tmp_path / "backup"
    assert rumqd("backup", str(copy), "--data", str(broker.data)).status == 0
    (segment,) = (copy / "main/g1/p0").glob("*.seg")
    shutil.copy(segment, tmp_path / "whole")
    os.unlink(segment)  # it may be a link to the source's
    content = bytearray((tmp_path / "whole").read_bytes())
    content[6000] ^= 1
    segment.write_bytes(content)
    told = rumqd("restore", str(copy), "--data", str(tmp_path / "new"))
    assert told.status == 1 and "damaged" in told.out


# The doctor


def test_the_doctor_has_nothing_to_say_of_a_healthy_directory(run: Run, join: Dial) -> None:
    broker = run()
    publish(join(broker, "p"), 0, 20)
    told = rumqd("doctor", "--data", str(broker.data))
    assert told.status == 0 and "a broker holds it (pid" in told.out and "nothing is wrong" in told.out
    broker.kill()
    assert rumqd("doctor", "--data", str(broker.data)).status == 0


@pytest.mark.parametrize("byte", [4100, 6000])
def test_the_doctor_names_damage_and_the_way_out(run: Run, join: Dial, byte: int) -> None:
    broker = run()
    publish(join(broker, "p"), 0, 20)
    assert broker.stop() == 0
    (segment,) = (broker.data / "main/g1/p0").glob("*.seg")
    content = bytearray(segment.read_bytes())
    content[byte] ^= 1
    segment.write_bytes(content)
    told = rumqd("doctor", "--data", str(broker.data))
    assert told.status == 1
    assert "main/g1/p0" in told.out and "records" in told.out and "backup" in told.out
    assert rumqd("doctor", "--quick", "--data", str(broker.data)).status == 0


def test_the_doctor_tells_what_is_no_data_directory(tmp_path: Path) -> None:
    assert rumqd("doctor", "--data", str(tmp_path / "none")).status == 1
    (tmp_path / "holiday.jpg").write_bytes(b"")
    told = rumqd("doctor", "--data", str(tmp_path))
    assert told.status == 1 and "no FORMAT" in told.out


def test_the_doctor_tells_a_newer_format(run: Run) -> None:
    broker = run()
    assert broker.stop() == 0
    (broker.data / "FORMAT").write_text("rumq 9\n")
    told = rumqd("doctor", "--data", str(broker.data))
    assert told.status == 1 and "'rumq 9'" in told.out


def test_a_kill_after_a_restore_is_told_as_a_kill(run: Run, join: Dial, tmp_path: Path) -> None:
    broker = run()
    publish(join(broker, "p"), 0, 3)
    assert rumqd("backup", str(tmp_path / "copy"), "--data", str(broker.data)).status == 0
    new = tmp_path / "new"
    assert rumqd("restore", str(tmp_path / "copy"), "--data", str(new)).status == 0
    other = Rumqd(new)
    other.start()
    publish(join(other, "p"), 3, 1)
    other.kill()
    other.start()
    assert other.named("log.recovered") and not other.named("log.restored")
    assert other.stop() == 0
