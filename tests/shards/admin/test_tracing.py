"""Traces: events for a time, at a bounded rate, of whom they name; no payload, no password."""

import pytest

from rumq.shards.admin import tracing
from rumq.shards.admin.tracing import EVENTS_A_SECOND, LOOK_SECONDS, TraceOrder, describe_packet
from tests.conformance import wire
from tests.faults.shard import Client, Shard
from tests.shards.admin.world import ask, publish


def test_the_rate_is_bounded_and_what_is_beyond_is_counted() -> None:
    trace = TraceOrder("client", "c", 100.0, 0.0)
    assert sum(trace.may_tell(0.0) for _ in range(250)) == EVENTS_A_SECOND
    assert (trace.reported, trace.left_out) == (100, 150)
    assert sum(trace.may_tell(0.5) for _ in range(250)) == EVENTS_A_SECOND / 2
    assert sum(trace.may_tell(90.0) for _ in range(250)) == EVENTS_A_SECOND, "no more than of one second at once"


def test_traces_are_bounded_and_one_that_runs_can_be_made_longer(shard: Shard) -> None:
    for number in range(tracing.TRACES_MAX):
        ask(shard, "trace", kind="client", name=f"c{number}")
    with pytest.raises(ValueError, match="16 traces run already"):
        ask(shard, "trace", kind="client", name="c16")
    ask(shard, "trace", kind="client", name="c0", seconds=120)
    assert len(ask(shard, "traces").traces) == tracing.TRACES_MAX
    ask(shard, "untrace", kind="client", name="c1")
    ask(shard, "trace", kind="client", name="c16")
    shard.after(61.0)
    assert [(row.name, row.seconds) for row in ask(shard, "traces").traces] == [("c0", 59.0)]


def test_a_trace_that_is_begun_again_goes_on_counting(shard: Shard) -> None:
    client = Client(shard, "c", 5)
    ask(shard, "trace", kind="client", name="c", seconds=10)
    publish(shard, client, "t")
    ask(shard, "trace", kind="client", name="c", seconds=60)
    publish(shard, client, "t")
    (row,) = ask(shard, "traces").traces
    assert (row.reported, row.seconds) == (4, 60.0)


def test_a_client_that_comes_later_is_traced_as_well(shard: Shard) -> None:
    ask(shard, "trace", kind="client", name="c")
    client, other = Client(shard, "c", 5), Client(shard, "d", 5)
    shard.after(LOOK_SECONDS)
    publish(shard, client, "t")
    publish(shard, other, "t")
    assert {each["client_id"] for each in shard.told("trace.packet")} == {"c"}
    ask(shard, "untrace", kind="client", name="c")
    assert client.tap is None and ask(shard, "untrace", kind="client", name="c").done == 0


def test_of_a_packet_its_kind_and_size_are_told_and_no_payload_or_password() -> None:
    def told(packet: bytes) -> dict[str, object]:
        return describe_packet(packet[0], packet[2:], 5)

    publish = told(wire.publish("t", b"secret", 1, 7, retain=True))
    assert (publish["packet"], publish["topic"], publish["packet_id"], publish["retain"]) == (
        "PUBLISH",
        "t",
        7,
        True,
    )
    assert told(wire.subscribe(2, [("a", 0), ("b", 1)]))["filters"] == ["a", "b"]
    login = told(wire.connect("c", 5, username="u", password=b"secret"))
    assert login["packet"] == "CONNECT" and "secret" not in str(publish) + str(login)


def test_what_cannot_be_decoded_is_told_with_its_fault() -> None:
    told = describe_packet(0x30, b"\x00\x09t", 5)
    assert told["packet"] == "PUBLISH" and told["bytes"] == 3 and told["fault"]


def test_packets_of_a_traced_client_are_events_without_their_payload(shard: Shard) -> None:
    client = Client(shard, "c", 5)
    assert ask(shard, "trace", kind="client", name="c", seconds=10).done == 1
    publish(shard, client, "secret/topic")
    told = shard.told("trace.packet")
    assert [(each["direction"], each["packet"]) for each in told] == [("in", "PUBLISH"), ("out", "PUBACK")]
    assert told[0]["topic"] == "secret/topic" and "21.5" not in str(told)
    shard.after(11.0)
    publish(shard, client, "t")
    assert len(shard.told("trace.packet")) == 2, "it is over"
    assert shard.told("trace.ended") == [{"kind": "client", "whom": "c", "reported": 2, "left_out": 0}]


def test_messages_of_a_traced_topic_are_events_at_a_bounded_rate(shard: Shard) -> None:
    publisher = Client(shard, "p", 5)
    for partition in shard.store.own:
        partition._hot_bytes_max = 1 << 20  # what is no longer in memory is not read again for a trace
    publish(shard, publisher, "t", "u")
    ask(shard, "trace", kind="topic", name="t", seconds=10)
    publish(shard, publisher, *["t"] * 150, "u")
    shard.after(LOOK_SECONDS)
    told = shard.told("trace.message")
    assert len(told) == EVENTS_A_SECOND and {each["topic"] for each in told} == {"t"}
    assert told[0]["offset"] == 1 and told[0]["payload_bytes"] == 4
    (row,) = ask(shard, "traces").traces
    assert (row.reported, row.left_out) == (100, 50)
    assert ask(shard, "untrace", kind="topic", name="t").done == 1 and ask(shard, "traces").traces == []
