"""What clients do with a broker before its data directory is kept, and what they must find in it later.

`before` runs with the version that writes the data, `after` with the one that reads it. Only MQTT is spoken, by
`tests.conformance`, which shares no code with either. Knows no process and no file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from tests.conformance import wire
from tests.conformance.peer import Address, Peer
from tests.conformance.wire import Kind, Packet, Prop

USER, PASSWORD = "anna", "secret"
FOREVER = (Prop.SESSION_EXPIRY, 0xFFFFFFFF)
UNAVAILABLE = 0x88
READINGS, JOBS, ALARMS = 60, 30, 8
FILLING = "x" * 3000  # so that segments are full and get sealed
HALF_SENT_ID = 77


class Message(NamedTuple):
    topic: str
    payload: bytes
    qos: int
    retain: bool = False
    properties: tuple[tuple[int, Any], ...] = ()


def readings() -> Iterator[Message]:
    for number in range(READINGS):
        more: tuple[tuple[int, Any], ...] = (
            (Prop.USER_PROPERTY, ("number", str(number))), (Prop.CONTENT_TYPE, "text/plain"),
            (Prop.RESPONSE_TOPIC, f"answers/{number}"), (Prop.CORRELATION_DATA, bytes([number, 0, 255])),
        )  # fmt: skip
        yield Message(
            f"plant/{number % 4}/temp",
            f"{number} {FILLING}".encode(),
            number % 3,
            False,
            more if number % 2 else (),
        )


def jobs() -> Iterator[Message]:
    for number in range(JOBS):
        yield Message(f"jobs/{number % 3}", b"job %d" % number, 1)


def alarms() -> Iterator[Message]:
    for number in range(ALARMS):
        yield Message("alarms/0", b"alarm %d" % number, 2)


def states() -> Iterator[Message]:
    for number, payload in (
        (0, b"zero"),
        (1, b"old"),
        (2, b"gone"),
        (1, b"one"),
        (2, b""),
        (3, "grün".encode()),
    ):
        yield Message(f"state/{number}", payload, 1, True)


RETAINED = {"state/0": b"zero", "state/1": b"one", "state/3": "grün".encode()}
ONCE = Message("plant/once", b"once", 2)
WILL = Message("wills/mortal", b"will", 1)


def messages() -> list[Message]:
    """Everything that was published before the end; the will comes at the next start."""
    return [*states(), *readings(), *jobs(), *alarms(), ONCE]


def arrived(address: Address, client_id: str, version: int = 5, **fields: Any) -> Peer:
    """Logged in, with a session that stays."""
    peer = Peer(address, version)
    if version == 5:
        fields = {"properties": [FOREVER, *fields.pop("properties", [])], **fields}
    answer = peer.connect(client_id, clean=False, keep_alive=0, username=USER, password=PASSWORD.encode(), **fields)
    assert answer.code == 0, answer
    return peer


def back(address: Address, client_id: str, version: int = 5, **fields: Any) -> Peer:
    """The same client later; its session is there."""
    peer = arrived(address, client_id, version, **fields)
    assert peer.connack.session_present, client_id
    return peer


def before(address: Address) -> list[Peer]:
    """Publish, subscribe, receive a part. returns: who is connected when the broker is killed"""
    subscribe(address, "watcher", 5, ("plant/#", 1), ("alarms/#", 2))
    subscribe(address, "old", 4, ("plant/+/temp", 1))
    worker = arrived(address, "worker", properties=[(Prop.RECEIVE_MAXIMUM, 10)])
    assert worker.subscribe("$share/g/jobs/#", qos=1) == [1]
    halfway = arrived(address, "halfway", properties=[(Prop.RECEIVE_MAXIMUM, 4)])
    assert halfway.subscribe("alarms/#", qos=2) == [2]
    mortal = arrived(address, "mortal", will=wire.Will(WILL.topic, WILL.payload, WILL.qos))
    publish(address, messages()[:-1])
    first = worker.messages(10, ack=False)  # of two partitions, in whatever order between them
    for packet in taken(first):
        worker.acknowledge(packet)
    worker.leave()
    historian = arrived(address, "historian", properties=[(Prop.RECEIVE_MAXIMUM, 5)])
    assert historian.subscribe("$log/earliest/state/#", qos=1) == [1]
    for packet in historian.messages(2):
        assert packet.topic.startswith("state/")
    historian.leave()
    whole, begun, *_ = halfway.messages(4, ack=False)
    halfway.acknowledge(whole)
    halfway.send(wire.ack(Kind.PUBREC, begun.packet_id))
    assert halfway.expect(Kind.PUBREL).packet_id == begun.packet_id
    giver = arrived(address, "giver")
    giver.send(wire.publish(ONCE.topic, ONCE.payload, ONCE.qos, HALF_SENT_ID, version=5))
    assert giver.expect(Kind.PUBREC).packet_id == HALF_SENT_ID
    return [halfway, mortal, giver]


def subscribe(address: Address, client_id: str, version: int, *filters: tuple[str, int]) -> None:
    peer = arrived(address, client_id, version)
    assert peer.subscribe(*filters) == [qos for _, qos in filters]
    peer.leave()


def publish(address: Address, all_of_them: list[Message]) -> None:
    with Peer(address, 5) as peer:
        assert peer.connect("pump", username=USER, password=PASSWORD.encode()).code == 0
        for each in all_of_them:
            code = peer.publish(each.topic, each.payload, each.qos, retain=each.retain, properties=each.properties)
            assert code in (None, 0, 0x10)  # 0x10: nobody subscribes to it
        peer.leave()


def taken(packets: list[Packet]) -> list[Packet]:
    """Those with the first four jobs."""
    payloads = {each.payload for each in [*jobs()][:4]}
    found = [packet for packet in packets if packet.payload in payloads]
    assert len(found) == 4
    return found


def after(address: Address) -> None:
    """Each client finds its session, and gets what it has not had, once."""
    halfway_goes_on(address)
    with back(address, "giver") as giver:
        giver.send(wire.publish(ONCE.topic, ONCE.payload, 2, HALF_SENT_ID, dup=True, version=5))
        assert giver.expect(Kind.PUBREC).code in (0, 0x10)
        giver.send(wire.ack(Kind.PUBREL, HALF_SENT_ID))
        assert giver.expect(Kind.PUBCOMP).code == 0
    with back(address, "watcher") as watcher:
        found = watcher.messages(READINGS + ALARMS + 1)
        by_topic = {topic: [p.payload for p in found if p.topic == topic] for topic in {p.topic for p in found}}
        assert by_topic == payloads_of([*readings(), *alarms(), ONCE])
        told = {p.payload: p.properties for p in found}
        for each in readings():
            assert set(each.properties) <= set(told[each.payload])
        watcher.expect_silence()
    with back(address, "old", 4) as old:
        found = old.messages(READINGS)
        assert sorted(p.payload for p in found) == sorted(each.payload for each in readings())
        old.expect_silence()
    with back(address, "worker") as worker:
        assert sorted(worker.payloads(JOBS - 4)) == sorted(each.payload for each in [*jobs()][4:])
        worker.expect_silence()
    with back(address, "historian") as historian:
        rest = historian.messages(len([*states()]) - 2)
        assert {p.payload for p in rest} <= {each.payload for each in states()}
        historian.expect_silence()
    with arrived(address, "newcomer") as newcomer:
        newcomer.subscribe("state/#", qos=1)
        found = newcomer.messages(len(RETAINED))
        assert {p.topic: p.payload for p in found} == RETAINED and all(p.retain for p in found)
        newcomer.expect_silence()


def is_drained(address: Address) -> bool:
    with Peer(address, 5) as newcomer:
        code = newcomer.connect("newcomer", username=USER, password=PASSWORD.encode()).code
        assert code in (0, UNAVAILABLE), code
        return code != 0


def halfway_goes_on(address: Address) -> None:
    """It had all of one message of QoS 2, the first half of the next, and two that it answered nothing to."""
    with back(address, "halfway", properties=[(Prop.RECEIVE_MAXIMUM, 4)]) as halfway:
        released = halfway.expect(Kind.PUBREL)
        halfway.send(wire.ack(Kind.PUBCOMP, released.packet_id))
        found = halfway.messages(ALARMS - 2)
        assert [p.payload for p in found] == [each.payload for each in [*alarms()][2:]]
        assert [p.dup for p in found[:2]] == [True, True]
        halfway.expect_silence()


def payloads_of(all_of_them: list[Message]) -> dict[str, list[bytes]]:
    found: dict[str, list[bytes]] = {}
    for each in all_of_them:
        found.setdefault(each.topic, []).append(each.payload)
    return found
