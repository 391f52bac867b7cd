"""One session in detail: subscriptions by kind, in flight, limits, what holds it; no list has more than 200 rows."""

import pytest

from rumq.admin.operations import NotFound
from rumq.session.flow_control.rate_limits import Bucket, Rate
from rumq.shards.admin.queries import client_detail
from rumq.shards.admin.queries.client_detail import ROWS_MAX, bucket_row, sessions_of
from tests.conformance import wire
from tests.faults.shard import Client, Shard
from tests.shards.admin.world import LASTING, ask, counted_of, publish


def test_what_is_told_of_a_session_is_bounded(shard: Shard) -> None:
    client = Client(shard, "c", 5, properties=LASTING)
    filters = [(f"t/{number}", 1) for number in range(ROWS_MAX + 5)]
    client.say(wire.subscribe(1, [*filters, ("t/#", 1), ("$share/g/t/1", 1)]))
    for _ in filters:
        shard.settle()  # a long one takes its turns
    publish(shard, Client(shard, "p", 5), *(f"t/{number}" for number in range(ROWS_MAX + 5)))
    for number in range(ROWS_MAX + 5):
        counted_of(shard).drop_counters.count("expired", "c", f"t/{number}", 1)
    found = ask(shard, "client", client="c")
    assert len(found.client.subscriptions) == ROWS_MAX + 7
    assert len(found.subscriptions) == len(found.in_flight) == len(found.undelivered) == ROWS_MAX


def test_subscriptions_are_told_by_kind(shard: Shard) -> None:
    publish(shard, Client(shard, "p", 5), "t")
    client = Client(shard, "c", 5, properties=LASTING)
    client.say(wire.subscribe(1, [("a", 0), ("$log/earliest/t", 1), ("$share/g/s", 2)]))
    found = ask(shard, "client", client="c")
    rows = [(row.filter, row.kind, row.qos, row.behind_records) for row in found.subscriptions]
    assert rows[0] == ("a", "live", 0, 0) and rows[-1] == ("$share/g/s", "shared", 2, None)
    assert [row[1] for row in rows] == ["live", "replay", "shared"]


def test_what_a_message_at_qos_2_waits_for_is_told(shard: Shard) -> None:
    client = Client(shard, "c", 5, properties=LASTING)
    client.say(wire.subscribe(1, [("t", 2)]))
    publisher = Client(shard, "p", 5)
    publisher.say(wire.publish("t", b"1", 2, 1))
    publisher.say(wire.ack(wire.Kind.PUBREL, 1))
    (row,) = ask(shard, "client", client="c").in_flight
    assert (row.waits_for, row.lsn) == ("PUBREC", 0)
    client.say(wire.ack(wire.Kind.PUBREC, row.packet_id))
    assert [row.waits_for for row in ask(shard, "client", client="c").in_flight] == ["PUBCOMP"]


def test_the_topic_of_what_is_in_flight_is_told_as_long_as_it_is_in_memory(shard: Shard) -> None:
    client = Client(shard, "c", 5, properties=LASTING)
    client.say(wire.subscribe(1, [("a/#", 1)]))
    publish(shard, Client(shard, "p", 5), "a/1", "else", "a/2")
    rows = ask(shard, "client", client="c").in_flight
    assert [(row.lsn, row.topic) for row in rows] == [(0, "a/1"), (2, "a/2")]


def test_its_will_and_how_long_its_session_lasts_are_told(shard: Shard) -> None:
    Client(
        shard, "c", 5, properties=LASTING,
        will=wire.Will("gone/c", b"offline", 1, True, properties=[(wire.Prop.WILL_DELAY, 30)]),
    )  # fmt: skip
    found = ask(shard, "client", client="c")
    (will,) = found.will
    assert (will.topic, will.qos, will.retain, will.bytes) == ("gone/c", 1, True, 7)
    assert will.delay_seconds == 30
    assert found.expiry_interval_seconds == 1_000_000


def test_a_session_is_found_by_its_whole_client_id(shard: Shard) -> None:
    Client(shard, "c", 5)
    Client(shard, "cc", 5)
    assert [session.client_id for session in sessions_of(counted_of(shard).registry, "c")] == ["c"]
    assert sessions_of(counted_of(shard).registry, "d") == []


def test_a_limit_is_told_as_of_now_and_what_has_none_as_null() -> None:
    bucket = Bucket(Rate(messages=10), 1000.0)
    bucket.spend(25, 7, 1000.0)
    row = bucket_row(bucket, 1000.3)
    assert row.messages == pytest.approx(-2.0) and row.bytes is None


def test_a_client_in_detail_has_subscriptions_places_and_what_is_in_flight(shard: Shard) -> None:
    client = Client(shard, "c", 5, properties=LASTING)
    client.say(wire.subscribe(1, [("t/#", 1)]))
    publish(shard, Client(shard, "p", 5), "t/1", "t/2")
    shard.parts.operation.consumers.begin()
    found = ask(shard, "client", client="c")
    assert found.found and found.client.bytes_in > 0 and found.client.bytes_out > 0
    assert [(row.filter, row.kind, row.qos, row.behind_records) for row in found.subscriptions] == [
        ("t/#", "live", 1, 0)
    ]
    assert [(row.packet_id, row.waits_for) for row in found.in_flight] == [(1, "PUBACK"), (2, "PUBACK")]
    client.say(wire.disconnect())
    publish(shard, Client(shard, "q", 5), "t/3")
    away = ask(shard, "client", client="c")
    assert not away.client.connected and away.expires_seconds == 1_000_000
    assert away.subscriptions[0].behind_records == 1
    with pytest.raises(NotFound, match="no client 'nobody'"):
        ask(shard, "client", client="nobody")


def test_what_holds_a_session_is_told(shard: Shard) -> None:
    """Why a consumer is behind: nothing, acknowledgements, its socket, a quota, or it is away."""
    receive_maximum_2 = [*LASTING, (wire.Prop.RECEIVE_MAXIMUM, 2)]
    client = Client(shard, "c", 5, properties=receive_maximum_2)
    client.say(wire.subscribe(1, [("t/#", 1)]))

    def held() -> tuple[str, int | None]:
        row = ask(shard, "client", client="c").client
        return row.held_by, row.in_flight_max

    assert held() == ("", None)
    publish(shard, Client(shard, "p", 5), "t/1", "t/2", "t/3")
    assert held() == ("acknowledgements", 2)
    link = sessions_of(counted_of(shard).registry, "c")[0].link
    room, link.flow.outbox.room = link.flow.outbox.room, 0
    assert held()[0] == "socket"
    link.flow.outbox.room = room
    link.buckets = (Bucket(Rate(messages=1), shard.monotonic),)
    link.buckets[0].spend(100, 0, shard.monotonic)
    assert held()[0] == "quota"
    link.buckets = ()
    for number in (1, 2):
        client.say(wire.ack(wire.Kind.PUBACK, number))
    assert held()[0] == ""
    client.say(wire.disconnect())
    assert held()[0] == "connection"


def test_subscribers_of_a_topic_are_found_by_each_kind_of_subscription(shard: Shard) -> None:
    publish(shard, Client(shard, "p", 5), "plant/7/temp")
    for name, wanted in (("b", "plant/#"), ("a", "plant/+/temp"), ("c", "mill/#"), ("d", "$share/g/plant/#")):
        Client(shard, name, 5, properties=LASTING).say(wire.subscribe(1, [(wanted, 1)]))
    gone = Client(shard, "e", 5, properties=LASTING)
    gone.say(wire.subscribe(1, [("plant/7/temp", 0), ("#", 2)]))
    gone.say(wire.disconnect())
    found = ask(shard, "subscribers", topic="plant/7/temp").subscribers
    assert [(row.client_id, row.filter, row.qos, row.connected, row.kind) for row in found] == [
        ("a", "plant/+/temp", 1, True, "live"),
        ("b", "plant/#", 1, True, "live"),
        ("d", "$share/g/plant/#", 1, True, "shared"),
        ("e", "plant/7/temp", 0, False, "live"),
        ("e", "#", 2, False, "live"),
    ]
    assert ask(shard, "subscribers", topic="$SYS/x").subscribers == [], "wildcards do not match it"


def test_subscribers_are_paged_over_several_turns(shard: Shard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_detail, "SESSIONS_A_TURN", 2)
    for name in "dbace":
        Client(shard, name, 5).say(wire.subscribe(1, [("t", 0)]))
    page = ask(shard, "subscribers", topic="t", limit=2, offset=1)
    assert [row.client_id for row in page.subscribers] == ["b", "c"] and page.left_out == 3
