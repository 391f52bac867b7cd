"""The table of the packet order, walked both ways: each entry through the real protocol, each case in the table."""

from collections.abc import Callable

import pytest

from rumq.mqtt import packets as p
from rumq.mqtt.encode import encode
from rumq.mqtt.kernels.window import Window
from rumq.mqtt.packet_types import PacketType
from rumq.mqtt.reasons import REASONS_IN, Reason
from rumq.session.connection.packet_order import (
    AUTH_ORDER,
    ORDER,
    SENT_BY_BROKER,
    SENT_BY_CLIENT,
    Action,
    Exchange,
    ExchangeStep,
    OrderRule,
    Refuse,
    State,
)
from tests.conformance.wire import Kind
from tests.session.broker import CHALLENGE, METHOD, WORK, Broker, Wire, by_method, connect, connected

BY_METHOD = {"authentication_method": METHOD}


def auth(reason: int) -> p.Auth:
    return p.Auth(Reason(reason), BY_METHOD)  # type: ignore[arg-type]


def before_connack(*steps: object) -> Wire:
    wire = Wire(Broker(), by_method(steps))
    wire.say(connect(properties=BY_METHOD))
    wire.hears()
    return wire


def behind_connack(*steps: object) -> Wire:
    wire = connected(Broker(), policy=by_method((), steps), properties=BY_METHOD)
    if steps:
        wire.say(auth(0x19))
        wire.hears()
    return wire


def paused() -> Wire:
    wire = connected(Broker())
    wire.link.pause()
    return wire


REACH: dict[State, Callable[[], Wire]] = {
    State.AWAITING_CONNECT: lambda: Wire(Broker()),
    State.VERIFYING: lambda: before_connack(WORK),
    State.CHALLENGED: lambda: before_connack(CHALLENGE),
    State.CONNECTED: lambda: connected(Broker()),
    State.CONNECTED_BY_METHOD: lambda: behind_connack(),
    State.REVERIFYING: lambda: behind_connack(WORK),
    State.RECHALLENGED: lambda: behind_connack(CHALLENGE),
    State.PAUSED: paused,
}
PACKETS: dict[PacketType, p.Packet] = {
    PacketType.CONNECT: connect(),
    PacketType.CONNACK: p.Connack(False, Reason.SUCCESS),
    PacketType.PUBLISH: p.Publish("t", b"x", 1, False, False, 1),
    PacketType.PUBACK: p.Puback(1),
    PacketType.PUBREC: p.Pubrec(1),
    PacketType.PUBREL: p.Pubrel(1),
    PacketType.PUBCOMP: p.Pubcomp(1),
    PacketType.SUBSCRIBE: p.Subscribe(1, (p.SubscriptionRequest("t", 1),)),
    PacketType.SUBACK: p.Suback(1, (Reason.SUCCESS,)),
    PacketType.UNSUBSCRIBE: p.Unsubscribe(1, ("t",)),
    PacketType.UNSUBACK: p.Unsuback(1, (Reason.SUCCESS,)),
    PacketType.PINGREQ: p.Pingreq(),
    PacketType.PINGRESP: p.Pingresp(),
    PacketType.DISCONNECT: p.Disconnect(),
    PacketType.AUTH: auth(0x18),
}


def test_each_state_and_packet_type_is_in_the_table() -> None:
    assert ORDER.keys() == set(State) == REACH.keys()
    assert all(row.keys() == set(PacketType) == PACKETS.keys() for row in ORDER.values())


def test_each_reason_of_auth_is_in_the_table_where_auth_is_accepted() -> None:
    connected_without = State.CONNECTED  # a method: AUTH itself is refused
    accepting = {state for state, row in ORDER.items() if row[PacketType.AUTH] is OrderRule.ACCEPT}
    assert AUTH_ORDER.keys() == accepting and connected_without not in accepting
    assert all(row.keys() == set(REASONS_IN[PacketType.AUTH]) for row in AUTH_ORDER.values())


@pytest.mark.parametrize("state", State, ids=lambda state: state.name)
def test_each_state_is_reached(state: State) -> None:
    assert REACH[state]().link.state is state


def comes_of(wire: Wire, packet: p.Packet, action: Action, shown: str) -> None:
    """Send a packet, and hold what comes of it to the table."""
    events, state = len(wire.broker.events), wire.link.state
    size = len(encode(packet, 5))
    taken = wire.say(packet)
    told = wire.broker.events[events:]
    if action is OrderRule.WAIT:
        assert (taken, told, wire.closed) == (0, [], False)
    elif action is OrderRule.LEAVE:
        assert wire.closed and not told and not wire.hears()
    elif isinstance(action, Refuse):
        [(name, fields)] = told
        assert wire.closed and (name, fields["reason"]) == ("client.refused", Reason.PROTOCOL_ERROR)
        assert fields["why"].startswith(action.why.format(shown))
        answers = {
            State.AWAITING_CONNECT: [],
            State.CHALLENGED: [(Kind.CONNACK, Reason.PROTOCOL_ERROR)],
        }.get(state, [(Kind.DISCONNECT, Reason.PROTOCOL_ERROR)])
        assert [(each.kind, each.code) for each in wire.hears()] == answers
    else:
        assert taken == size and not [fields for name, fields in told if name == "client.refused"]
        assert wire.closed == isinstance(packet, p.Disconnect)


CASES = [
    (state, packet_type)
    for state, row in ORDER.items()
    for packet_type in row
    if not (packet_type == PacketType.AUTH and state in AUTH_ORDER)
]


@pytest.mark.parametrize(("state", "packet_type"), CASES)
def test_each_entry_holds(state: State, packet_type: PacketType) -> None:
    comes_of(REACH[state](), PACKETS[packet_type], ORDER[state][packet_type], packet_type.name)


@pytest.mark.parametrize(("state", "reason"), [(state, reason) for state, row in AUTH_ORDER.items() for reason in row])
def test_each_entry_for_auth_holds(state: State, reason: Reason) -> None:
    if state is State.CONNECTED_BY_METHOD and AUTH_ORDER[state][reason] is OrderRule.ACCEPT:
        wire = behind_connack(CHALLENGE)  # which has sent it
        assert wire.link.state is State.RECHALLENGED
        return
    comes_of(REACH[state](), auth(reason), AUTH_ORDER[state][reason], f"AUTH 0x{reason:02X}")


def test_an_unasked_auth_does_not_stand_in_for_what_a_thread_finds_out() -> None:
    wire = behind_connack(WORK)
    wire.say(auth(0x18))
    assert wire.closed and wire.broker.told("client.refused")[0]["why"] == "AUTH 0x18 that nothing was asked for"


# QoS

STATES = {
    Exchange.AWAITS_PUBACK: 1,
    Exchange.AWAITS_PUBREC: 2,
    Exchange.AWAITS_PUBCOMP: 3,
}
ACKS: dict[int, type[p.Puback] | type[p.Pubrec] | type[p.Pubrel] | type[p.Pubcomp]] = {
    PacketType.PUBACK: p.Puback,
    PacketType.PUBREC: p.Pubrec,
    PacketType.PUBREL: p.Pubrel,
    PacketType.PUBCOMP: p.Pubcomp,
}
LONG = {"user_properties": [("a", "b")]}  # which leaves it to the ordinary decoder


def test_the_exchanges_are_in_the_tables() -> None:
    answers = {PacketType.PUBACK, PacketType.PUBREC, PacketType.PUBCOMP}
    assert SENT_BY_BROKER.keys() | SENT_BY_CLIENT.keys() == set(Exchange)
    assert all(row.keys() == answers for row in SENT_BY_BROKER.values())
    assert all(row.keys() == {PacketType.PUBLISH, PacketType.PUBREL} for row in SENT_BY_CLIENT.values())


@pytest.mark.parametrize("properties", [{}, LONG], ids=["short", "long"])
@pytest.mark.parametrize("exchange", SENT_BY_BROKER, ids=lambda each: each.name)
@pytest.mark.parametrize("packet_type", [PacketType.PUBACK, PacketType.PUBREC, PacketType.PUBCOMP])
def test_answers_to_a_message_of_the_broker(
    exchange: Exchange, packet_type: PacketType, properties: dict[str, object]
) -> None:
    wire = connected(Broker())
    window = Window(10)
    if exchange is not Exchange.NONE:
        window.put(0, bytes([STATES[exchange]]), (5).to_bytes(8, "little"), (64).to_bytes(4, "little"))
    wire.link.wire.window = window
    wire.say(ACKS[packet_type](1, Reason.SUCCESS, properties))  # type: ignore[arg-type]
    step = SENT_BY_BROKER[exchange][packet_type]
    assert window.state_of(1) == STATES.get(step.to, 0)
    assert answered(wire) == step.answer


@pytest.mark.parametrize("properties", [{}, LONG], ids=["short", "long"])
@pytest.mark.parametrize("exchange", SENT_BY_CLIENT, ids=lambda each: each.name)
@pytest.mark.parametrize("packet_type", [PacketType.PUBLISH, PacketType.PUBREL])
def test_a_message_of_qos_2_of_the_client(
    exchange: Exchange, packet_type: PacketType, properties: dict[str, object]
) -> None:
    wire = connected(Broker())
    publish, release = p.Publish("t", b"x", 2, False, False, 1), p.Pubrel(1, Reason.SUCCESS, properties)  # type: ignore[arg-type]
    if exchange is Exchange.AWAITS_PUBREL:
        wire.say(publish)
        wire.hears()
    wire.say(publish if packet_type == PacketType.PUBLISH else release)
    step: ExchangeStep = SENT_BY_CLIENT[exchange][packet_type]
    assert answered(wire) == step.answer
    first_wants_release = exchange is Exchange.AWAITS_PUBREL or packet_type == PacketType.PUBLISH
    assert wire.broker.batches[0].count == first_wants_release, "stored once"
    wire.say(p.Pubrel(1))
    known = answered(wire) == (PacketType.PUBCOMP, Reason.SUCCESS)
    assert known == (step.to is Exchange.AWAITS_PUBREL)


def answered(wire: Wire) -> tuple[PacketType, Reason] | None:
    packets = [(PacketType(each.kind), Reason(each.code)) for each in wire.hears()]
    assert len(packets) <= 1
    return packets[0] if packets else None
