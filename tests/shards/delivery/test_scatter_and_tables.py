"""What clients get of a chunk is the same, packet by packet, whether it is sorted to many groups or goes by tables."""

from typing import Any, NamedTuple

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from commitlog.testing.simulated_files import SimulatedFiles
from router import delivery
from tests.conformance import wire
from tests.conformance.wire import Kind, Packet, Prop
from tests.faults.shard import Client, Shard
from tests.shards.delivery.world import counted, drain, messages

NEVER = 1 << 30
TOPICS = ["a", "b/1", "b/2", "b/3", "c"]
FILTERS = ["a", "b/+", "b/1", "b/2", "#", "c"]


class Who(NamedTuple):
    """options: of each subscription, as in SUBSCRIBE; credit: Receive Maximum, 0 is none"""

    version: int = 5
    filters: tuple[str, ...] = ("a",)
    options: int = 0
    identifier: int = 0
    packet_max: int = 0
    alias_max: int = 0
    credit: int = 0
    lasts: bool = False


class Said(NamedTuple):
    topic: str
    qos: int = 0
    retain: bool = False
    size: int = 1
    expiry: int = 0


class Turn(NamedTuple):
    """publisher: one of the clients; slow: takes nothing until the end of it; leaves: in the turn of the messages"""

    publisher: int
    said: list[Said]
    slow: int = -1
    leaves: int = -1
    seconds: int = 0


def joined(shard: Shard, number: int, who: Who) -> Client:
    limits: list[tuple[int, int]] = []
    if who.version == 5:
        asked = {
            Prop.MAXIMUM_PACKET_SIZE: who.packet_max, Prop.TOPIC_ALIAS_MAXIMUM: who.alias_max,
            Prop.RECEIVE_MAXIMUM: who.credit, Prop.SESSION_EXPIRY: 1_000_000 * who.lasts,
        }  # fmt: skip
        limits = [(name, value) for name, value in asked.items() if value]
    return Client(shard, f"c{number}", who.version, clean=not who.lasts, properties=limits)


def played(groups_min: int, clients: list[Who], turns: list[Turn]) -> tuple[list[list[Packet]], Any]:
    """What each client got in the end, and what was counted as not delivered."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(delivery, "GROUPS_MIN", groups_min)
        shard = Shard(SimulatedFiles())
        here = [joined(shard, number, who) for number, who in enumerate(clients)]
        got: list[list[Packet]] = [[] for _ in clients]
        for client, who in zip(here, clients, strict=True):
            identified = who.version == 5 and who.identifier
            properties = [(Prop.SUBSCRIPTION_ID, who.identifier)] if identified else []
            options = who.options if who.version == 5 else who.options & 3
            asked = [(each, options) for each in who.filters]
            client.say(wire.subscribe(1, asked, properties, version=who.version))
            client.take()
        packet_id = 0
        for turn in turns:
            version = clients[turn.publisher].version
            packets = b""
            for each in turn.said:
                packet_id += 1
                expiry = [(Prop.MESSAGE_EXPIRY, each.expiry)] if each.expiry and version == 5 else []
                payload = b"%d" % packet_id * each.size
                packets += wire.publish(
                    each.topic, payload, each.qos, packet_id if each.qos else 0, retain=each.retain,
                    properties=expiry, version=version,
                )  # fmt: skip
            if turn.slow >= 0:
                here[turn.slow].room = 0
            here[turn.publisher].link.receive(packets, 0, len(packets))
            if turn.leaves not in (-1, turn.publisher):
                here[turn.leaves].link.lost("the network")
            shard.settle()
            shard.after(turn.seconds)
            if turn.slow >= 0:
                drain(here[turn.slow])
            if turn.leaves not in (-1, turn.publisher):
                got[turn.leaves] += messages(here[turn.leaves])
                here[turn.leaves] = joined(shard, turn.leaves, clients[turn.leaves])
            acknowledge(here, got)
        found = counted(shard)
        shard.end()
        return got, found


def acknowledge(here: list[Client], got: list[list[Packet]]) -> None:
    """Until nothing more comes."""
    while True:
        some = [messages(client) for client in here]
        if not any(some):
            return
        for client, packets, all_of_it in zip(here, some, got, strict=True):
            all_of_it += packets
            for each in packets:
                if each.qos == 1:
                    client.say(wire.ack(Kind.PUBACK, each.packet_id))
                elif each.qos == 2:
                    client.say(wire.ack(Kind.PUBREC, each.packet_id), wire.ack(Kind.PUBCOMP, each.packet_id))


WHO = st.builds(
    Who,
    version=st.sampled_from([4, 5, 5]),
    filters=st.lists(st.sampled_from(FILTERS), min_size=1, max_size=2, unique=True).map(tuple),
    options=st.sampled_from([0, 0, 1, 2, 4, 8, 9]),
    identifier=st.sampled_from([0, 0, 0, 7]),
    packet_max=st.sampled_from([0, 0, 0, 60]),
    alias_max=st.sampled_from([0, 0, 0, 2]),
    credit=st.sampled_from([0, 0, 2]),
    lasts=st.booleans(),
)
SAID = st.builds(
    Said,
    topic=st.sampled_from(TOPICS),
    qos=st.sampled_from([0, 0, 1]),
    retain=st.sampled_from([False, False, False, True]),
    size=st.sampled_from([1, 1, 1, 80]),
    expiry=st.sampled_from([0, 0, 0, 0, 30]),
)
CLIENTS = 4
TURN = st.builds(
    Turn,
    publisher=st.integers(0, CLIENTS - 1),
    said=st.lists(SAID, min_size=1, max_size=8),
    slow=st.integers(-1, CLIENTS - 1),
    leaves=st.sampled_from([-1, -1, *range(CLIENTS)]),
    seconds=st.sampled_from([0, 0, 10, 60]),
)
EACH = [Said(topic) for topic in TOPICS]


@settings(max_examples=60, deadline=None)
@given(st.lists(WHO, min_size=CLIENTS, max_size=CLIENTS), st.lists(TURN, min_size=1, max_size=4))
@example([Who(), Who(4, ("b/+",)), Who(5, ("b/2",)), Who()], [Turn(0, EACH), Turn(3, [*EACH, *EACH], slow=0)])
@example(
    [Who(5, ("a", "b/1"), 1, credit=2), Who(4, ("b/+",), 1), Who(5, ("b/2",), lasts=True), Who(4)],
    [Turn(3, [Said(topic, 1) for topic in TOPICS * 2], slow=1, leaves=2), Turn(1, EACH, leaves=2)],
)
@example(
    [Who(5, ("a",), identifier=7), Who(5, ("b/1",), 4), Who(5, ("b/2",), packet_max=60), Who(5, ("c",), 1, lasts=True)],
    [Turn(1, [*EACH, Said("b/2", size=80), Said("c", 1)], leaves=3), Turn(0, EACH)],
)
def test_clients_get_the_same_packets_by_either_way(clients: list[Who], turns: list[Turn]) -> None:
    tables, scattered = (played(groups_min, clients, turns) for groups_min in (NEVER, 1))
    assert scattered == tables
