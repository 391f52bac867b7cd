"""The operator ends a client's connection, and its session."""

from rumq.admin.operations import UNKNOWN
from rumq.mqtt.reasons import Reason
from tests.conformance.wire import Kind
from tests.faults.shard import Client, Shard
from tests.shards.admin.world import LASTING, ask_raw, away


def test_a_client_is_disconnected_and_its_session_stays(shard: Shard) -> None:
    client = Client(shard, "c", 5, properties=LASTING)
    assert ask_raw(shard, "disconnect", client="c") == {"disconnected": 1, "dropped": 0}
    (packet,) = client.take()
    assert (packet.kind, packet.code) == (Kind.DISCONNECT, Reason.ADMINISTRATIVE_ACTION) and client.closed
    assert shard.told("client.dismissed") == [{"client_id": "c", "sessions": 1}]
    assert ask_raw(shard, "disconnect", client="c") == {"disconnected": 0, "dropped": 0}
    assert ask_raw(shard, "status")["sessions"] == 1


def test_a_session_is_dropped_with_or_without_its_client(shard: Shard) -> None:
    client = Client(shard, "c", 5, properties=LASTING)
    assert ask_raw(shard, "drop", client="c") == {"disconnected": 1, "dropped": 1}
    assert client.closed and ask_raw(shard, "status")["sessions"] == 0
    away(shard, "t")
    assert ask_raw(shard, "drop", client="away") == {"disconnected": 0, "dropped": 1}
    assert shard.told("session.dropped") == [{"client_id": name, "sessions": 1} for name in ("c", "away")]


def test_a_client_that_there_is_not_is_no_event(shard: Shard) -> None:
    nothing = {"disconnected": 0, "dropped": 0, UNKNOWN: True}
    assert ask_raw(shard, "drop", client="nobody") == ask_raw(shard, "disconnect", client="nobody") == nothing
    assert not shard.told("session.dropped", "client.dismissed")
