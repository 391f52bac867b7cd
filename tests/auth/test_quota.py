"""Buckets against a count of what went through, over a clock that the test turns; and a flood at a real broker."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rumq.session.flow_control.rate_limits import BURST_SECONDS, Bucket, Quotas, Rate, Rates
from rumq.session.flow_control.replay_throttle import ReplayThrottle
from tests.broker_process import Rumqd
from tests.conformance import wire
from tests.conformance.peer import Peer


@given(st.lists(st.tuples(st.integers(0, 500), st.floats(0, 3)), max_size=60), st.integers(1, 200))
def test_who_waits_as_told_never_sends_faster(sends: list[tuple[int, float]], rate: int) -> None:
    bucket, now, sent, largest = Bucket(Rate(rate), 0.0), 0.0, 0, 0
    for count, pause in sends:
        wait = bucket.spend(count, 0, now)
        sent, largest = sent + count, max(largest, count)
        assert sent <= rate * (now + BURST_SECONDS) + largest + 1e-6
        now += max(wait, 0.0) + pause


def test_a_bucket_of_bytes() -> None:
    bucket = Bucket(Rate(0, 100), 0.0)
    assert bucket.spend(1000, 200, 0.0) <= 0
    assert bucket.spend(1, 50, 0.0) == 0.5
    assert bucket.spend(1, 0, 0.5) <= 0


def test_users_share_a_bucket_and_their_number_is_bounded() -> None:
    quotas = Quotas(Rates(user=Rate(10)), connections_max=2)
    assert [quotas.enter("a"), quotas.enter("a"), quotas.enter("a"), quotas.enter("b")] == [
        True,
        True,
        False,
        True,
    ]
    assert quotas.sending.buckets("a", 0.0)[0] is quotas.sending.buckets("a", 1.0)[0]
    assert quotas.sending.buckets("b", 0.0)[0] is not quotas.sending.buckets("a", 1.0)[0]
    assert quotas.sending.buckets(None, 0.0) == ()
    quotas.leave("a")
    assert quotas.enter("a")
    assert all(quotas.enter(None) for _ in range(9))


def test_a_user_s_topics_are_counted_over_its_connections() -> None:
    quotas = Quotas(topics_max=2)
    assert quotas.may_add_topic("a") and quotas.may_add_topic(None)
    for _ in range(2):
        quotas.added_topic("a")
    quotas.enter("a")
    quotas.leave("a")
    assert not quotas.may_add_topic("a")
    assert quotas.may_add_topic("b")
    for _ in range(9):
        quotas.added_topic(None)
    assert quotas.may_add_topic(None)
    quotas.become(Quotas(topics_max=3))
    assert quotas.may_add_topic("a")


def test_a_meter_stops_a_replay_until_its_slowest_bucket_has_filled() -> None:
    now, calls, waits = 0.0, [], []
    buckets = (Bucket(Rate(0, 100), 0.0), Bucket(Rate(0, 50), 0.0))

    def later(seconds: float, call: Callable[[], None]) -> None:
        waits.append((seconds, call))

    meter = ReplayThrottle(buckets, lambda: now, later, lambda: calls.append(now))
    meter.spend(1, 100)
    assert not meter.is_spent
    meter.spend(1, 100)
    assert meter.is_spent
    meter.spend(1, 50)  # what was on its way
    [(seconds, call)] = waits
    assert seconds == 2.0
    now = 2.0
    call()
    assert calls == [2.0] and not meter.is_spent


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
        others = reader.payloads(count + 1)
        passed = time.monotonic() - begun
        assert passed > (count * size - (2 * rate + (1 << 19))) / rate, "the burst, and what is read at once"
        assert b"now" in others[:-50], "it does not wait for the end of the replay"
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
