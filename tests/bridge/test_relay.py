"""Each message once at the target, in order, wherever the bridge, a connection or a broker ends."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rumq.bridge.counts import OUT, RelayCounts
from rumq.bridge.relay import DOUBTFUL, VIA, Moves, PacketRelay, TargetLimits
from rumq.bridge.topic_rules import TopicMap, TopicRule
from rumq.mqtt.encode import encode
from rumq.mqtt.packets import Packet, Puback, Pubcomp, Publish, Pubrec, Pubrel
from rumq.mqtt.properties import Properties
from rumq.mqtt.reasons import Reason

IDS = 6  # so few that an id soon comes again
RULES = TopicMap([TopicRule("#", OUT, 2, remote_prefix="edge/")], OUT)


@dataclass
class Source:
    """The side of a broker that delivers, of a session that survives everything. MQTT 5.0, 4.3.3 and 4.4."""

    waiting: list[bytes]
    qos: int
    in_flight: dict[int, bytes | None] = field(default_factory=dict)  # packet id -> payload, None: released
    last_id: int = 0

    def resume(self) -> list[Packet]:
        return [
            Pubrel(packet_id) if payload is None else Publish("t", payload, self.qos, dup=True, packet_id=packet_id)
            for packet_id, payload in self.in_flight.items()
        ]

    def deliver(self, window: int) -> list[Packet]:
        if not self.waiting or len(self.in_flight) >= min(window, IDS):
            return []
        self.last_id = next(
            each for step in range(1, IDS + 1) if (each := (self.last_id + step - 1) % IDS + 1) not in self.in_flight
        )
        payload = self.in_flight[self.last_id] = self.waiting.pop(0)
        assert payload is not None
        return [Publish("t", payload, self.qos, packet_id=self.last_id)]

    def take(self, packet: Packet) -> list[Packet]:
        if isinstance(packet, Pubrec):
            assert self.in_flight[packet.packet_id] is not None, "a PUBREC behind PUBREL"
            self.in_flight[packet.packet_id] = None
            return [Pubrel(packet.packet_id)]
        assert isinstance(packet, Pubcomp | Puback)
        payload = self.in_flight.pop(packet.packet_id)
        assert (payload is None) == isinstance(packet, Pubcomp), "an answer to a message that is another one"
        return []


@dataclass
class Store:
    """The side of a broker that takes messages, with a session that survives everything but `forget`."""

    log: list[bytes] = field(default_factory=list)
    ids: set[int] = field(default_factory=set)

    def take(self, packet: Packet) -> list[Packet]:
        if isinstance(packet, Publish):
            assert packet.packet_id is not None and packet.topic == "edge/t"
            if packet.qos == 1:
                self.log.append(packet.payload)
                return [Puback(packet.packet_id)]
            if packet.packet_id not in self.ids:
                self.ids.add(packet.packet_id)
                self.log.append(packet.payload)
            return [Pubrec(packet.packet_id)]
        assert isinstance(packet, Pubrel)
        known = packet.packet_id in self.ids
        self.ids.discard(packet.packet_id)
        return [Pubcomp(packet.packet_id, Reason.SUCCESS if known else Reason.PACKET_IDENTIFIER_NOT_FOUND)]


class Run:
    """Source, bridge and target, with what is on the wires between them."""

    def __init__(self, count: int, qos: int = 2, window: int = 4) -> None:
        self.sent = [b"%d" % number for number in range(count)]
        self.source, self.store, self.window = Source(list(self.sent), qos), Store(), window
        self.counts = RelayCounts()
        self.connect()

    def connect(self, *, was_lost: bool = False) -> None:
        """As after the end of whatever: what was on the wires is gone, and so is the relay."""
        self.relay = PacketRelay(RULES, "a", TargetLimits("b", was_lost=was_lost), self.counts)
        self.from_source: list[Packet] = self.source.resume()
        self.to_source: list[Packet] = []
        self.to_target: list[Packet] = []
        self.from_target: list[Packet] = []

    def move(self, moves: Moves) -> None:
        self.to_source += moves.to_source
        self.to_target += moves.to_target

    def step(self, action: int) -> None:
        if action == 0:
            self.from_source += self.source.deliver(self.window)
        elif action == 1 and self.from_source:
            packet = self.from_source.pop(0)
            self.move(self.relay.publish(packet) if isinstance(packet, Publish) else self.relay.pubrel(packet))
        elif action == 2 and self.to_target:
            self.from_target += self.store.take(self.to_target.pop(0))
        elif action == 3 and self.from_target:
            self.move(self.relay.answer(self.from_target.pop(0)))
        elif action == 4 and self.to_source:
            self.from_source += self.source.take(self.to_source.pop(0))
        elif action == 5:
            self.connect()

    def finish(self) -> None:
        for _ in range(200 * len(self.sent) + 100):
            for action in range(5):
                self.step(action)
            if not (self.source.waiting or self.source.in_flight):
                return
        raise AssertionError("stuck")


@given(actions=st.lists(st.integers(0, 5), max_size=150), count=st.integers(1, 30))
@settings(max_examples=300)
def test_each_is_stored_once_and_in_order(actions: list[int], count: int) -> None:
    run = Run(count)
    for action in actions:
        run.step(action)
    run.finish()
    assert run.store.log == run.sent
    assert not run.store.ids, "every id is free again"


@given(actions=st.lists(st.integers(0, 5), max_size=100), count=st.integers(1, 20))
def test_qos_1_is_at_least_once(actions: list[int], count: int) -> None:
    run = Run(count, qos=1)
    for action in actions:
        run.step(action)
    run.finish()
    assert list(dict.fromkeys(run.store.log)) == run.sent


@given(actions=st.lists(st.integers(0, 5), max_size=60), more=st.lists(st.integers(0, 4), max_size=30))
def test_a_target_that_lost_its_session_has_each_at_least_once_and_each_doubtful_one_is_counted(
    actions: list[int], more: list[int]
) -> None:
    run = Run(20)
    for action in actions:
        run.step(action)
    run.store.ids.clear()
    run.connect(was_lost=True)
    for action in more:
        run.step(action)
    run.finish()
    assert list(dict.fromkeys(run.store.log)) == run.sent
    assert len(run.store.log) - len(run.sent) <= run.counts.doubtful


@given(actions=st.lists(st.integers(0, 5), max_size=60))
def test_ids_of_a_source_that_lost_its_session_are_released_before_they_come_again(actions: list[int]) -> None:
    """What `Bridge` does then; without it a message would be taken for one of the session before."""
    run = Run(20)
    for action in actions:
        run.step(action)
    before = list(run.store.log)
    for packet_id in range(1, IDS + 1):
        run.store.take(Pubrel(packet_id))
    later = [b"later %d" % number for number in range(10)]
    run.source = Source(list(later), 2)
    run.connect()
    run.finish()
    assert run.store.log == before + later


# --- one packet


def publish(topic: str = "t", qos: int = 2, dup: bool = False, **properties: object) -> Publish:
    return Publish(topic, b"x", qos, dup=dup, packet_id=7 if qos else None, properties=Properties(**properties))  # type: ignore[typeddict-item]


TARGET = TargetLimits("b")


def relay(
    target: TargetLimits = TARGET, source_id: str = "a", rules: TopicMap = RULES
) -> tuple[PacketRelay, RelayCounts]:
    counts = RelayCounts()
    return PacketRelay(rules, source_id, target, counts), counts


def test_a_message_has_the_way_it_came() -> None:
    made, _ = relay()
    (message,) = made.publish(publish(user_properties=[(VIA, "z"), ("k", "v")], subscription_identifiers=[4])).to_target
    assert isinstance(message, Publish)
    assert message.properties == {"user_properties": [(VIA, "z"), ("k", "v"), (VIA, "a")]}


def test_what_has_been_at_the_target_does_not_go_there_again_and_is_answered() -> None:
    made, counts = relay()
    moves = made.publish(publish(user_properties=[(VIA, "b")]))
    assert moves == Moves([Pubrec(7)], []) and counts.looped == 1
    assert made.publish(publish(qos=1, user_properties=[(VIA, "b")])).to_source == [Puback(7)]
    assert made.publish(publish(qos=0, user_properties=[(VIA, "b")])) == Moves([], [])


def test_a_message_that_comes_again_for_a_target_without_its_session_is_marked() -> None:
    made, counts = relay(TargetLimits("b", was_lost=True))
    (message,) = made.publish(publish(dup=True)).to_target
    assert isinstance(message, Publish) and (DOUBTFUL, "1") in message.properties["user_properties"]
    assert counts.doubtful == 1
    (fresh,) = made.publish(publish()).to_target
    assert isinstance(fresh, Publish) and (DOUBTFUL, "1") not in fresh.properties["user_properties"]


@pytest.mark.parametrize("reason", [Reason.NOT_AUTHORIZED, Reason.PACKET_TOO_LARGE, Reason.TOPIC_NAME_INVALID])
def test_what_the_target_refuses_for_good_is_counted_and_does_not_block(reason: Reason) -> None:
    made, counts = relay()
    made.publish(publish())
    assert made.answer(Pubrec(7, reason)).to_source == [Pubrec(7)]
    assert counts.refused == {reason.text: 1} and counts.messages == 0
    assert made.pubrel(Pubrel(7)).to_target == [Pubrel(7)], "the target says that it does not know the id"


@pytest.mark.parametrize("reason", [Reason.QUOTA_EXCEEDED, Reason.UNSPECIFIED_ERROR])
def test_what_the_target_refuses_for_now_is_sent_again(reason: Reason) -> None:
    made, counts = relay()
    made.publish(publish(dup=True))
    assert made.answer(Pubrec(7, reason)) == Moves([], [])
    (again,) = made.take_again()
    assert isinstance(again, Publish) and again.packet_id == 7 and not again.dup
    assert made.take_again() == []
    assert made.answer(Pubrec(7)).to_source == [Pubrec(7)] and counts.messages == 1 and not counts.refused


def test_an_id_that_is_in_use_at_the_target_is_there() -> None:
    made, counts = relay()
    made.publish(publish())
    assert made.answer(Pubrec(7, Reason.PACKET_IDENTIFIER_IN_USE)).to_source == [Pubrec(7)]
    assert counts.messages == 1


def test_answers_leave_in_the_order_of_the_messages() -> None:
    made, _ = relay()
    for packet_id in (3, 4, 5):
        made.publish(Publish("t", b"x", 2, packet_id=packet_id))
    assert made.answer(Pubrec(4)).to_source == []
    looped = Properties(user_properties=[(VIA, "b")])
    assert made.publish(Publish("t", b"x", 1, packet_id=6, properties=looped)).to_source == []
    assert made.answer(Pubrec(3)).to_source == [Pubrec(3), Pubrec(4)]
    assert made.answer(Pubrec(5)).to_source == [Pubrec(5), Puback(6)]


def test_a_target_without_qos_2_gets_qos_1() -> None:
    made, _ = relay(TargetLimits(qos_max=1))
    (message,) = made.publish(publish()).to_target
    assert isinstance(message, Publish) and message.qos == 1
    assert made.answer(Puback(7)).to_source == [Pubrec(7)]
    assert made.pubrel(Pubrel(7)) == Moves([Pubcomp(7)], [])


def test_a_message_larger_than_the_target_takes_is_refused_here() -> None:
    made, counts = relay(TargetLimits(packet_bytes_max=40))
    assert made.publish(publish(user_properties=[("k", "v" * 40)])) == Moves([Pubrec(7)], [])
    assert counts.refused == {Reason.PACKET_TOO_LARGE.text: 1}


def test_no_other_topic_is_relayed() -> None:
    """A session may still have a filter of earlier settings, or a broker may send what was not asked for."""
    made, counts = relay(rules=TopicMap([TopicRule("plant/#", OUT, 2)], OUT))
    assert made.publish(publish("other")) == Moves([Pubrec(7)], [])
    assert counts.unmapped == 1


def test_a_target_that_keeps_no_retained_messages_gets_them_as_others() -> None:
    made, _ = relay(TargetLimits(takes_retained=False))
    (message,) = made.publish(Publish("t", b"x", 0, retain=True)).to_target
    assert isinstance(message, Publish) and not message.retain


def test_names_of_topics_are_remembered_in_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rumq.bridge.relay.TOPICS_BYTES_MAX", 10_000)
    made, _ = relay()
    run = made.run(made)
    for number in range(50):
        packet = encode(publish(f"{number:04}{'x' * 996}", 1), 5)
        assert run.relay(bytearray(packet), 0, len(packet), 0)[0] == len(packet)
    names = made._names
    assert sum(len(name) + len(to) for name, to in names.items()) <= 10_000 + 3_000


def test_a_message_that_is_no_packet_any_more_with_the_way_it_came_is_refused_here(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """268,435,455 bytes are the most that MQTT can say: one by one of those would end the bridge again and again."""

    def too_large(*_: object) -> bytes:
        raise ValueError("too large")

    monkeypatch.setattr("rumq.bridge.relay.encode", too_large)
    monkeypatch.setattr("rumq.bridge.relay.LARGE_BYTES", 10_000)
    made, counts = relay()
    assert made.publish(publish()).to_target
    made, counts = relay()
    message = Publish("t", bytes(10_000), 1, packet_id=7)
    assert made.publish(message) == Moves([Puback(7)], []) and counts.refused.total() == 1
