"""Redelivery: what was in flight when a client left is sent again, in order, from the log. MQTT 5.0, 4.4."""

import select
from collections.abc import Iterator
from typing import Any

import pytest

from commitlog.testing.simulated_files import SimulatedFiles
from tests.conformance import wire
from tests.conformance.wire import Kind, Packet, Prop
from tests.faults.shard import Client, Shard
from tests.shards.delivery.world import LASTING, counted, messages, permit, ruled, session_of, subscribed


@pytest.fixture
def shard() -> Iterator[Shard]:
    made = Shard(SimulatedFiles(), segment_bytes_max=1 << 16)
    yield made
    made.end()


def left(shard: Shard, *packets: bytes, options: int = 2, filters: tuple[str, ...] = ("t",)) -> list[Packet]:
    """A client gets these messages, acknowledges none, and its connection is lost. Returns what it got."""
    reader = subscribed(shard, "r", *filters, options=options, **LASTING)
    publisher = Client(shard, "p", 5)
    for packet in packets:
        publisher.say(packet)
    got = messages(reader)
    reader.link.lost("the network")
    shard.settle()
    return got


def back(shard: Shard, version: int = 5, **properties: Any) -> Client:
    more = [*LASTING["properties"], *properties.pop("more", [])]
    return Client(shard, "r", version, clean=False, properties=more if version == 5 else [])


def numbered(count: int, qos: int = 1, size: int = 1) -> list[bytes]:
    return [wire.publish("t", b"%d" % n + bytes(size), qos, 1 + n) for n in range(count)]


@pytest.mark.parametrize("qos", [1, 2])
def test_the_same_messages_come_again_with_dup_and_the_same_packet_ids(shard: Shard, qos: int) -> None:
    """MQTT-4.4.0-1, MQTT-4.6.0-1"""
    before = left(shard, *numbered(5, qos))
    assert len(before) == 5 and not any(each.dup for each in before)
    again = messages(back(shard))
    assert [(each.packet_id, each.payload, each.qos) for each in again] == [
        (each.packet_id, each.payload, each.qos) for each in before
    ]
    assert all(each.dup for each in again)


def test_what_is_new_comes_after_them(shard: Shard) -> None:
    left(shard, *numbered(3))
    Client(shard, "p", 5).say(wire.publish("t", b"new", 1, 9))
    again = messages(back(shard))
    assert [each.dup for each in again] == [True, True, True, False] and again[-1].payload == b"new"


def test_a_client_that_takes_fewer_at_once_gets_them_in_pieces(shard: Shard) -> None:
    before = left(shard, *numbered(5))
    reader = back(shard, more=[(Prop.RECEIVE_MAXIMUM, 2)])
    got = []
    while some := messages(reader):
        assert len(some) <= 2
        got += some
        reader.say(*[wire.ack(Kind.PUBACK, each.packet_id) for each in some])
    assert [each.packet_id for each in got] == [each.packet_id for each in before]


@pytest.mark.parametrize(("qos", "kind"), [(1, Kind.PUBACK), (2, Kind.PUBREC)])
def test_what_the_client_answers_before_it_comes_again_does_not_come_again(shard: Shard, qos: int, kind: Kind) -> None:
    """It had the message on its last connection; its slot of the window has no QoS to send it with any more."""
    first, second, third = (each.packet_id for each in left(shard, *numbered(3, qos)))
    reader = back(shard, more=[(Prop.RECEIVE_MAXIMUM, 1)])
    assert [each.packet_id for each in messages(reader)] == [first]
    for answered, then in ((second, []), (first, [third])):
        reader.say(wire.ack(kind, answered))
        if qos == 2:
            reader.say(wire.ack(Kind.PUBCOMP, answered))
        assert [(each.packet_id, each.qos, each.dup) for each in messages(reader)] == [(n, qos, True) for n in then]


@pytest.mark.parametrize(("qos", "kind"), [(1, Kind.PUBACK), (2, Kind.PUBREC)])
@pytest.mark.parametrize("receive_maximum", [1, 2])
def test_answers_out_of_order_never_let_more_go_out_than_the_client_takes(
    shard: Shard, qos: int, kind: Kind, receive_maximum: int
) -> None:
    """MQTT-3.3.4-9: an answer to what has not come again on this connection makes no room on it."""
    ids = [each.packet_id for each in left(shard, *numbered(6, qos))]
    reader = back(shard, more=[(Prop.RECEIVE_MAXIMUM, receive_maximum)])
    outstanding = [each.packet_id for each in messages(reader)]
    for answered in (ids[5], ids[4], ids[0]):
        assert outstanding == ids[:receive_maximum]
        ids.remove(answered)
        reader.say(wire.ack(kind, answered))
        if qos == 2:
            reader.say(wire.ack(Kind.PUBCOMP, answered))
        outstanding = [n for n in outstanding if n != answered]
        outstanding += [each.packet_id for each in messages(reader)]
    assert outstanding == ids[:receive_maximum]


def test_the_identifiers_are_those_of_the_subscription_as_it_is_now(shard: Shard) -> None:
    """MQTT-3.10.4-5: what is in flight is completed after an UNSUBSCRIBE, too."""
    reader = Client(shard, "r", 5, **LASTING)
    reader.say(wire.subscribe(1, [("t", 1)], [(Prop.SUBSCRIPTION_ID, 7)]))
    Client(shard, "p", 5).say(*numbered(1))
    assert messages(reader)[0].get(Prop.SUBSCRIPTION_ID) == 7
    reader.link.lost("the network")
    reader = back(shard)
    assert [(each.dup, each.get(Prop.SUBSCRIPTION_ID)) for each in messages(reader)] == [(True, 7)]
    reader.say(wire.unsubscribe(2, ["t"]))
    reader.link.lost("the network")
    assert [(each.dup, each.get(Prop.SUBSCRIPTION_ID)) for each in messages(back(shard))] == [(True, None)]


def test_a_member_of_a_shared_group_gets_again_what_it_had(shard: Shard) -> None:
    before = left(shard, *numbered(3), filters=("$share/g/t",))
    again = messages(back(shard))
    assert [each.packet_id for each in again] == [each.packet_id for each in before] and len(again) == 3


def test_a_retained_message_comes_again_with_its_flag(shard: Shard) -> None:
    Client(shard, "p", 5).say(wire.publish("t", b"x", 1, 1, retain=True))
    reader = Client(shard, "r", 5, **LASTING)
    reader.say(wire.subscribe(1, [("t", 1)]))
    assert [each.retain for each in messages(reader)] == [True]
    reader.link.lost("the network")
    assert [(each.dup, each.retain) for each in messages(back(shard))] == [(True, True)]


def test_an_older_client_gets_no_properties(shard: Shard) -> None:
    left(shard, wire.publish("t", b"x", 1, 1, properties=[(Prop.CONTENT_TYPE, "text")]))
    (message,) = messages(back(shard, version=4))
    assert (message.payload, message.dup) == (b"x", True)


# What cannot be sent again


def undelivered(shard: Shard, why: str, topic: str, records: int) -> None:
    assert counted(shard) == {(why, "r", topic): records}
    session = session_of(shard, "r")
    assert session.window is not None and session.window.in_flight == 0, "its packet ids are free again"


def test_what_retention_took_is_counted_and_no_longer_in_flight(shard: Shard) -> None:
    left(shard, *numbered(8, size=20_000))
    main = shard.store.partitions[1]
    shard.after(1.0)
    removal = main.take_oldest(len(main.sealed(None)))  # type: ignore[attr-defined]
    assert removal is not None
    shard.parts.operation.removal.carry_out(main, removal, "retention")  # type: ignore[arg-type]
    shard.settle()
    gone = main.first_lsn
    assert 0 < gone < 8
    reader = back(shard)
    again = messages(reader)
    assert [each.payload[:1] for each in again] == [b"%d" % n for n in range(gone, 8)]
    reader.say(*[wire.ack(Kind.PUBACK, each.packet_id) for each in again])
    undelivered(shard, "retention", "#", gone)


def test_what_has_expired_is_counted(shard: Shard) -> None:
    left(shard, wire.publish("t", b"x", 1, 1, properties=[(Prop.MESSAGE_EXPIRY, 10)]))
    shard.after(11.0)
    assert messages(back(shard)) == []
    undelivered(shard, "expired", "t", 1)


def test_what_is_larger_than_the_client_takes_now_is_counted(shard: Shard) -> None:
    left(shard, *numbered(1, size=500))
    assert messages(back(shard, more=[(Prop.MAXIMUM_PACKET_SIZE, 100)])) == []
    undelivered(shard, "over_limit", "t", 1)


def test_what_it_may_not_receive_any_more_is_counted(shard: Shard) -> None:
    policy = ruled(shard, "#")
    left(shard, *numbered(1))
    permit(policy, "other/#")
    assert messages(back(shard)) == []
    undelivered(shard, "no_permission", "t", 1)


class Unsettled(Client):
    """Turns are made after what it says until a thread reads for it, which is not waited for."""

    def say(self, *packets: bytes) -> None:
        data = b"".join(packets)
        self.link.receive(data, 0, len(data))
        turn, workers = self.shard.parts.turn, self.shard.parts.writing.workers
        for _ in range(20):
            turn.begin_turn()
            turn.end_turn()
            if workers.reader.pending:
                return
            if workers.writer.pending:
                select.select([workers.writer.fd], [], [])
                workers.writer.finish()


def test_a_client_that_leaves_while_its_messages_are_being_read_has_them_the_next_time(shard: Shard) -> None:
    left(shard, *numbered(3, size=20_000))
    shard.after(5.0)
    again = Shard(shard.files.after_kill(), seed=1, now_us=shard.now_us)  # nothing is in memory
    client = Unsettled(again, "r", 5, **LASTING)
    assert again.parts.writing.workers.reader.pending
    client.link.lost("the network")
    again.settle()
    assert messages(client) == []
    assert [each.payload[:1] for each in messages(back(again))] == [b"0", b"1", b"2"] and counted(again) == {}
    again.end()
