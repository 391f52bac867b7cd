"""What passes for a token that may only read, or only publish, and how the rest is refused in each version."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rumq.gateway.access.tokens import Token
from rumq.gateway.relay.role_gate import EARLY_BYTES_MAX, PING, RoleGate
from rumq.mqtt import packets as p
from rumq.mqtt.decode import decode
from rumq.mqtt.encode import encode
from rumq.mqtt.errors import MqttFault, PacketTooLarge
from rumq.mqtt.frames import FrameReader
from rumq.mqtt.reasons import Reason

READER, SENDER = Token("reader", frozenset({"read"})), Token("sender", frozenset({"publish"}))
SUBSCRIBE = p.Subscribe(7, (p.SubscriptionRequest("a/#", 1), p.SubscriptionRequest("b")))
PINGRESP = encode(p.Pingresp(), 4)


class Gate:
    """A gate behind CONNACK, with what it has told."""

    def __init__(self, version: int, token: Token, packet_bytes_max: int = 1 << 20) -> None:
        self.told: list[tuple[str, str]] = []
        self.version = version
        self.gate = RoleGate(version, token, packet_bytes_max, lambda *said: self.told.append(said))
        self.gate.from_broker(encode(p.Connack(), version))

    def say(self, *packets: p.Packet) -> tuple[list[p.Packet], list[p.Packet]]:
        """What the broker gets, and what the client gets."""
        up, down = self.gate.from_client(b"".join(encode(each, self.version) for each in packets))
        return self.packets(up), self.packets(down)

    def packets(self, data: bytes) -> list[p.Packet]:
        reader = FrameReader(version=self.version)
        reader.receive(data)
        found = [decode(frame.first_byte, frame.body, self.version) for frame in reader.frames()]
        assert not reader.buffered_bytes
        return found


@pytest.mark.parametrize("version", [3, 4, 5])
def test_a_message_of_a_token_that_may_not_publish_is_acknowledged_and_goes_nowhere(version: int) -> None:
    gate = Gate(version, READER)
    reason = Reason.NOT_AUTHORIZED if version == 5 else Reason.SUCCESS
    one, two = p.Publish("t", b"x", 1, packet_id=5), p.Publish("t", b"x", 2, packet_id=6)
    up, down = gate.say(p.Publish("t", b"x"), one, two, p.Pubrel(6), p.Pingreq())
    assert down == [p.Puback(5, reason), p.Pubrec(6, reason)]
    assert up == [p.Pingreq(), p.Pingreq(), p.Pingreq(), p.Pubrel(6), p.Pingreq()], "none of the messages"
    assert gate.told == [("publish", "t")] * 3


@pytest.mark.parametrize(("version", "reason"), [(4, 0x80), (5, 0x87)])
def test_a_subscription_of_a_token_that_may_not_read_is_refused(version: int, reason: int) -> None:
    gate = Gate(version, SENDER)
    message = p.Publish("t", b"x", 1, packet_id=5)
    up, down = gate.say(message, SUBSCRIBE)
    assert up == [message, p.Pingreq()]
    assert down == [p.Suback(7, (Reason(reason), Reason(reason)))]
    assert gate.told == [("subscribe", "a/#")]


@pytest.mark.parametrize("version", [3, 4, 5])
def test_everything_else_passes(version: int) -> None:
    sent: list[p.Packet] = [
        SUBSCRIBE,
        p.Unsubscribe(8, ("a/#",)),
        p.Puback(1),
        p.Pubrec(2),
        p.Pubcomp(3),
        p.Pingreq(),
    ]
    assert Gate(version, READER).say(*sent) == (sent, [])
    got = b"".join(encode(each, version) for each in (p.Publish("t", b"x", 1, packet_id=1), p.Puback(4), p.Pingresp()))
    assert Gate(version, READER).gate.from_broker(got) == got


def test_a_message_for_a_token_that_may_not_read_ends_its_connection() -> None:
    """Of a session that had subscriptions before."""
    gate = Gate(5, SENDER)
    with pytest.raises(MqttFault) as caught:
        gate.gate.from_broker(encode(p.Publish("t", b"secret"), 5))
    assert caught.value.reason == Reason.NOT_AUTHORIZED and gate.told == [("read", "")]


def test_the_answers_to_pings_of_our_own_do_not_reach_the_client() -> None:
    gate = Gate(4, READER)
    gate.say(p.Publish("t", b"x"), p.Pingreq())
    assert gate.gate.from_broker(PINGRESP) == b""
    assert gate.gate.from_broker(PINGRESP) == PINGRESP


def test_refusals_before_connack_come_behind_it_and_are_bounded() -> None:
    gate = RoleGate(5, READER, 1 << 20, lambda *said: None)
    message = encode(p.Publish("t", b"x", 1, packet_id=5), 5)
    assert gate.from_client(message) == (PING, b"")
    connack = encode(p.Connack(), 5)
    assert gate.from_broker(connack) == connack + encode(p.Puback(5, Reason.NOT_AUTHORIZED), 5)
    other = RoleGate(5, READER, 1 << 20, lambda *said: None)
    with pytest.raises(MqttFault, match="before CONNACK"):
        other.from_client(message * (EARLY_BYTES_MAX // 4))


def test_a_packet_beyond_the_limit_is_refused_before_it_is_there() -> None:
    with pytest.raises(PacketTooLarge):
        Gate(5, SENDER, 1_000).gate.from_client(encode(p.Publish("t", b"x" * 2_000), 5)[:10])


def test_a_malformed_packet_is_a_fault() -> None:
    with pytest.raises(MqttFault):
        Gate(5, READER).gate.from_client(b"\x36\x00")  # QoS 3


@given(st.lists(st.integers(1, 9), max_size=60), st.sampled_from([4, 5]))
def test_however_the_bytes_arrive_the_same_passes(sizes: list[int], version: int) -> None:
    sent = [
        p.Publish("t", b"x" * 20, 1, packet_id=1), p.Pingreq(), SUBSCRIBE, p.Publish("t", b"y", 2, packet_id=2),
    ]  # fmt: skip
    data = b"".join(encode(each, version) for each in sent)
    for token in (READER, SENDER):
        whole = Gate(version, token)
        up, down = bytearray(), bytearray()
        left = data
        pieces = Gate(version, token)
        for size in [*sizes, len(data)]:
            some, left = left[:size], left[size:]
            more_up, more_down = pieces.gate.from_client(some)
            up += more_up
            down += more_down
        assert (bytes(up), bytes(down)) == whole.gate.from_client(data)
