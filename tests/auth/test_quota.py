"""Buckets against a count of what went through, over a clock that the test turns; and a flood at a real broker."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rumq.session.quota import BURST_SECONDS, Bucket, Quotas, Rate
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
    quotas = Quotas(user=Rate(10), connections_max=2)
    assert [quotas.enter("a"), quotas.enter("a"), quotas.enter("a"), quotas.enter("b")] == [
        True,
        True,
        False,
        True,
    ]
    assert quotas.buckets("a", 0.0)[0] is quotas.buckets("a", 1.0)[0]
    assert quotas.buckets("b", 0.0)[0] is not quotas.buckets("a", 1.0)[0]
    assert quotas.buckets(None, 0.0) == ()
    quotas.leave("a")
    assert quotas.enter("a")
    assert all(quotas.enter(None) for _ in range(9))


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
