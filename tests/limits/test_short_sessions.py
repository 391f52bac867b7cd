"""A client id that comes once leaves nothing behind, however its session ended: publishers are held by sessions alone.

Entries are counted, not bytes; `tests/commitlog/names/test_publisher_names.py` has the long form, with a million."""

from collections.abc import Callable

import pytest

from commitlog.log import recovery
from commitlog.log.partition import HOT_TRIM
from commitlog.names.publisher_names import PublisherNames
from commitlog.testing.simulated_files import SimulatedFiles
from tests.conformance import wire
from tests.conformance.wire import Prop, Will
from tests.faults.shard import Client, Shard

KEPT, SESSIONS = 8, 300


def published(shard: Shard, client_id: str, qos: int) -> Client:
    client = Client(shard, client_id, 5)
    client.say(wire.publish("t", b"x", qos, 1))
    return client


def lasting(shard: Shard, client_id: str) -> Client:
    """Its session ends a second after it has left."""
    client = Client(shard, client_id, 5, clean=False, properties=[(Prop.SESSION_EXPIRY, 1)])
    client.say(wire.publish("t", b"x", 1, 1))
    return client


KINDS: dict[str, Callable[[Shard, str], Client]] = {
    "QoS 0": lambda shard, client_id: published(shard, client_id, 0),
    "QoS 1": lambda shard, client_id: published(shard, client_id, 1),
    "QoS 2 without PUBREL": lambda shard, client_id: published(shard, client_id, 2),
    "will": lambda shard, client_id: Client(shard, client_id, 5, will=Will("t", b"gone")),
    "delayed will": lambda shard, client_id: Client(
        shard, client_id, 5, clean=False, will=Will("t", b"gone", properties=[(Prop.WILL_DELAY, 1)]),
        properties=[(Prop.SESSION_EXPIRY, 1)],
    ),
    "ends later": lasting,
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_publishers_that_came_once_are_forgotten(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.setattr(recovery, "PublisherNames", lambda names, end: PublisherNames(names, end, KEPT))
    shard = Shard(SimulatedFiles(), segment_bytes_max=20_000)
    try:
        always = published(shard, "always", 1)
        names = shard.store.partitions[1].publisher_names
        for number in range(SESSIONS):
            client = KINDS[kind](shard, f"{kind}-{number}")
            client.link.lost("the network")
            shard.after(0.1)
        shard.after(5.0)
        always.say(wire.publish("t", b"x", 1, 2))
        shard.after(1.0)
        assert isinstance(names, PublisherNames)
        assert names.next_number > SESSIONS, "all of them have published"
        assert len(names) <= KEPT + 2 * HOT_TRIM
        assert names.known(b"always") == 1
    finally:
        shard.end()
