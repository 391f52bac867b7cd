"""A stream has as many topics as it may have: one more is refused in the words of its publisher's version."""

from collections.abc import Iterator

import pytest

from commitlog.testing.simulated_files import SimulatedFiles
from rumq.session.protocol.control_packets import PACKETS_A_TURN
from tests.commitlog.records import everything
from tests.conformance import wire
from tests.conformance.wire import Kind, Prop, Will
from tests.faults.shard import Client, Shard

QUOTA_EXCEEDED = 0x97


@pytest.fixture
def shard() -> Iterator[Shard]:
    """With room for three topics; those under other/ are another stream's."""
    shard = Shard(SimulatedFiles(), topics_max=3)
    yield shard
    shard.end()


def fill(client: Client) -> None:
    client.say(*[wire.publish(f"t/{n}", b"first", version=client.version) for n in range(3)])


def stored(shard: Shard) -> list[bytes]:
    return [seen.payload for seen in everything(shard.store.partitions[1])[0]]


def answers(client: Client) -> list[tuple[Kind, int, int]]:
    return [(packet.kind, packet.packet_id, packet.code) for packet in client.take()]


def test_mqtt_5_publishers_are_told_and_go_on(shard: Shard) -> None:
    explain = [(Prop.REQUEST_PROBLEM_INFO, 1)]
    client, listener = Client(shard, "p", 5, properties=explain), Client(shard, "l", 5)
    listener.say(wire.subscribe(1, [("#", 0)]))
    fill(client)
    client.say(
        wire.publish("new/1", b"refused", 1, 1),
        wire.publish("t/1", b"known", 1, 2),
        wire.publish("new/2", b"refused", 2, 3),
        wire.publish("new/3", b"refused"),
        wire.publish("other/1", b"another stream's", 1, 4),
        wire.publish("t/2", b"known", 2, 3),  # the packet id was free again
    )
    packets = client.take()
    assert [(packet.kind, packet.packet_id, packet.code) for packet in packets] == [
        (Kind.PUBACK, 1, QUOTA_EXCEEDED),
        (Kind.PUBACK, 2, 0),
        (Kind.PUBREC, 3, QUOTA_EXCEEDED),
        (Kind.PUBACK, 4, 0),
        (Kind.PUBREC, 3, 0),
    ]
    assert "3 topics" in str(packets[0].get(Prop.REASON_STRING))
    assert stored(shard) == [b"first"] * 3 + [b"known"] * 2
    assert sorted(packet.payload for packet in listener.take() if packet.kind == Kind.PUBLISH) == sorted(
        [b"first"] * 3 + [b"known"] * 2 + [b"another stream's"]
    )


@pytest.mark.parametrize("version", [3, 4])
@pytest.mark.parametrize("qos", [1, 2])
def test_an_older_client_is_sent_away_without_an_acknowledgement(shard: Shard, version: int, qos: int) -> None:
    client = Client(shard, "p", version)
    fill(client)
    client.say(wire.publish("new", b"refused", qos, 1, version=version))
    assert client.closed and answers(client) == []
    assert shard.told("client.refused")[0]["reason"] == QUOTA_EXCEEDED
    assert stored(shard) == [b"first"] * 3


@pytest.mark.parametrize("version", [3, 4, 5])
def test_what_asks_for_no_answer_gets_none_and_is_counted(shard: Shard, version: int) -> None:
    client = Client(shard, "p", version)
    fill(client)
    client.say(*[wire.publish(f"new/{n}", b"refused", version=version) for n in range(20)])
    client.say(wire.publish("t/0", b"known", 1, 1, version=version))
    assert not client.closed and answers(client) == [(Kind.PUBACK, 1, 0)]
    told = shard.told("topic.refused")
    assert [event["refused"] for event in told] == [1, 2, 4, 8, 16]
    assert (told[0]["stream"], told[0]["topics_max"], told[0]["client_id"]) == ("main", 3, "p")


def test_an_alias_of_a_topic_that_was_refused_stands_for_it(shard: Shard) -> None:
    client = Client(shard, "p", 5)
    fill(client)
    client.say(
        wire.publish("new", b"refused", 1, 1, properties=[(Prop.TOPIC_ALIAS, 1)]),
        wire.publish("", b"refused", 1, 2, properties=[(Prop.TOPIC_ALIAS, 1)]),
        wire.publish("t/0", b"known", 1, 3, properties=[(Prop.TOPIC_ALIAS, 1)]),
        wire.publish("", b"known", 1, 4, properties=[(Prop.TOPIC_ALIAS, 1)]),
    )
    assert answers(client) == [
        (Kind.PUBACK, 1, QUOTA_EXCEEDED),
        (Kind.PUBACK, 2, QUOTA_EXCEEDED),
        (Kind.PUBACK, 3, 0),
        (Kind.PUBACK, 4, 0),
    ]


def test_a_will_for_one_topic_more_is_counted(shard: Shard) -> None:
    fill(Client(shard, "p", 5))
    Client(shard, "q", 4, will=Will("new", b"gone")).link.lost("the network")
    Client(shard, "r", 4, will=Will("t/1", b"gone")).link.lost("the network")
    shard.settle()
    assert [event["client_id"] for event in shard.told("topic.refused")] == ["q"]
    assert stored(shard) == [b"first"] * 3 + [b"gone"]


def test_a_start_counts_the_topics_that_the_log_knows() -> None:
    files = SimulatedFiles()
    before = Shard(files, topics_max=3)
    fill(Client(before, "p", 5))
    before.end()
    before.store.close()
    after = Shard(files, topics_max=2)  # fewer than there are
    client = Client(after, "p", 5)
    client.say(wire.publish("new", b"refused", 1, 1), wire.publish("t/2", b"known", 1, 2))
    assert answers(client) == [(Kind.PUBACK, 1, QUOTA_EXCEEDED), (Kind.PUBACK, 2, 0)]
    after.end()


def test_a_flood_of_made_up_topics_costs_what_the_stream_allows(shard: Shard) -> None:
    client = Client(shard, "p", 4)
    for n in range(2000):
        client.say(wire.publish(f"made/up/{n}", b"x", version=4))
    assert len(shard.parts.writing.topics.known) == 3
    assert len(shard.store.partitions[1].topic_names) == 3


def test_made_up_topics_are_taken_a_bounded_number_a_turn(shard: Shard) -> None:
    """And none is forgotten: what waits is taken in the turns that follow, before what comes later."""
    client = Client(shard, "p", 5)
    fill(client)
    flood = b"".join(wire.publish(f"made/up/{n}", b"x") for n in range(1000))
    data = flood + wire.publish("t/0", b"known", 1, 1)
    at, turns = 0, 0
    while at < len(data):
        before = shard.parts.writing.topics.refused["main"]
        at = client.link.receive(data, at, len(data))
        refused = shard.parts.writing.topics.refused["main"]
        assert 0 < refused - before <= PACKETS_A_TURN
        assert client.link.paused == (at < len(data))
        shard.settle()
        turns += 1
    assert turns == 4 and refused == 1000
    assert answers(client) == [(Kind.PUBACK, 1, 0)]
