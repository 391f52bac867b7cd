"""A flood at a real broker: rates, quotas of retained bytes and of topics hold, and only the client over them waits."""

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.broker_process import Rumqd
from tests.conformance import wire
from tests.conformance.peer import Peer


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rumqd]:
    folder: Path = tmp_path_factory.mktemp("quota")
    broker = Rumqd(folder / "data", "--set", "listener.client_messages_per_second_max=500")
    broker.start()
    yield broker
    broker.end()


def test_who_sends_too_fast_is_read_later_and_loses_nothing(broker: Rumqd) -> None:
    """Twice the burst, and a bit, at once: the acknowledgements of the last come after the bucket filled again."""
    count = 2500
    flood, other = Peer(broker.address, deadline_s=30), Peer(broker.address)
    flood.connect("flood")
    other.connect("other")
    other.subscribe("f")
    flood.send(*(wire.publish("f", b"x" * 200, 0) for _ in range(count)))
    flood.send(wire.PINGREQ)
    assert other.publish("own", b"", 1) in (0, 0x10)
    flood.receive()
    before = broker.cpu_seconds()
    assert len(other.payloads(count)) == count
    assert broker.cpu_seconds() - before < 5


def test_a_replay_is_sent_no_faster_than_it_may_be_and_whole(tmp_path: Path) -> None:
    """Live messages go on beside it."""
    rate, size, count = 1_000_000, 10_000, 400
    broker = Rumqd(tmp_path / "data", "--set", f"listener.client_replay_bytes_per_second_max={rate}")
    broker.start()
    try:
        publisher, reader = Peer(broker.address, deadline_s=30), Peer(broker.address, deadline_s=30)
        publisher.connect("publisher")
        for number in range(count):
            publisher.send(wire.publish("past", b"%d" % number + b"x" * size, 0))
        publisher.publish("past", b"the last", 1)
        reader.connect("reader")
        reader.subscribe("live")
        begun = time.monotonic()
        reader.subscribe("$log/earliest/past")
        first = reader.payloads(1)
        publisher.publish("live", b"now", 1)
        live_after = time.monotonic() - begun
        others = reader.payloads(count + 1)
        passed = time.monotonic() - begun
        at_once = 2 * rate + (1 << 19)  # the burst, and what is read at once
        assert passed > (count * size - at_once) / rate
        before = others.index(b"now") * size
        assert before <= at_once + rate * live_after, "it does not wait for the end of the replay"
        replayed = [payload for payload in [*first, *others] if payload != b"now"]
        assert replayed == [*(b"%d" % number + b"x" * size for number in range(count)), b"the last"]
    finally:
        broker.end()


@pytest.mark.parametrize("shards", [1, 2])
def test_past_its_limit_nothing_more_is_retained_and_the_rest_goes_on(tmp_path: Path, shards: int) -> None:
    config = tmp_path / "config.toml"
    config.write_text(
        "log.retained_bytes_max = 20000\n"
        f"shards.count = {shards}\n"
        '[[stream]]\nname = "main"\nfilters = ["#"]\npartitions = 1\n'
    )
    broker = Rumqd(tmp_path / "data", "--config", str(config))
    broker.start()
    try:
        peers = [Peer(broker.address) for _ in range(4)]
        for number, peer in enumerate(peers):
            peer.connect(f"peer-{number}")
        codes = [peers[n % 4].publish(f"t/{n}", b"x" * 1000, 1 + n % 2, retain=True) for n in range(40)]
        assert {code for code in codes if code} <= {0x97, 0x10}
        assert 15 <= sum(code != 0x97 for code in codes) <= 22
        assert codes[-1] == 0x97
        assert all(peer.publish(f"t/{n}", b"x" * 1000, 1) != 0x97 for n, peer in enumerate(peers))
        old = Peer(broker.address, version=4)
        old.connect("old")
        old.send(wire.publish("t/old", b"x", 1, packet_id=7, retain=True, version=4))
        assert old.rest_until_end() == []
        for n in range(40):
            assert peers[n % 4].publish(f"t/{n}", b"", 1, retain=True) != 0x97
        broker.event("retained.freed")
        assert peers[0].publish("t/again", b"x", 1, retain=True) != 0x97
        assert broker.event("retained.full")["retained_bytes_max"] == 20000
    finally:
        broker.end()


def test_a_user_may_bring_so_many_topics_into_being(tmp_path: Path) -> None:
    users = tmp_path / "users"
    users.touch(mode=0o600)
    for user in ("alice", "bob"):
        subprocess.run(
            [sys.executable, "-m", "rumq", "passwd", str(users), user],
            input="secret\n",
            text=True,
            check=True,
        )
    broker = Rumqd(
        tmp_path / "data", "--set", "auth.user_topics_max=3", "--set", f"auth.password_file={users}",
    )  # fmt: skip
    broker.start()
    try:
        alice, other = Peer(broker.address), Peer(broker.address)
        alice.connect("a", username="alice", password=b"secret")
        other.connect("b", username="bob", password=b"secret")
        codes = [alice.publish(f"made/up/{number}", b"", 1) for number in range(5)]
        assert [code == 0x97 for code in codes] == [False, False, False, True, True]
        assert alice.publish("made/up/0", b"", 1) != 0x97
        assert other.publish("made/up/9", b"", 1) != 0x97
        assert broker.event("topic.refused")["user"] == "alice"
    finally:
        broker.end()
