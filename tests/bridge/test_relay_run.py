"""Runs do what the relay does packet by packet: the same bytes, however they arrive, leave the same bytes and state."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rumq.bridge import relay as relay_module
from rumq.bridge import two_way_relay
from rumq.bridge.counts import IN, OUT, RelayCounts
from rumq.bridge.relay import DOUBTFUL, VIA, PacketRelay, TargetLimits
from rumq.bridge.side import LOCAL, OTHER, REMOTE, SIDES
from rumq.bridge.topic_rules import TopicMap, parse_rule
from rumq.bridge.two_way_relay import QOS_0_BYTES_MAX, TwoWayRelay
from rumq.errors import ClientError
from rumq.mqtt.decode import decode
from rumq.mqtt.encode import encode
from rumq.mqtt.frames import FrameReader
from rumq.mqtt.packets import Packet, Puback, Pubcomp, Publish, Pubrec, Pubrel
from rumq.mqtt.properties import Properties
from rumq.mqtt.reasons import Reason
from tests.kernel_forms import forms

RULES = tuple(map(parse_rule, ("up/# both 2 here/ there/", "# both 2", "x both 1 long/ l/")))
DIRECTION = {LOCAL: OUT, REMOTE: IN}
TOPICS = ("other/y", "here/up/1", "there/up/1", "up/2", "t", "long/x", "l/x", "ü/☃", "$SYS/x")
kernels = pytest.mark.parametrize("kernel", forms("rumq.bridge.kernels.relay_run"))


class Wire:
    """What was sent to one side."""

    def __init__(self, version: int) -> None:
        self._version = version
        self.sent = bytearray()
        self.waiting = 0  # bytes that were not taken by the socket

    @property
    def unsent_bytes(self) -> int:
        return self.waiting + len(self.sent)

    def send(self, packet: Packet) -> None:
        self.sent += encode(packet, self._version)

    def send_packets(self, encoded: bytes) -> None:
        self.sent += encoded


class Bridge:
    """A two-way relay, and all that can be seen of it."""

    def __init__(
        self, limits: dict[str, TargetLimits], ids: dict[str, str], *, by_runs: bool, is_paced: bool = False
    ) -> None:
        self.limits = limits
        self.wires = {side: Wire(limits[side].version) for side in SIDES}
        self.counts = {side: RelayCounts() for side in SIDES}
        self.refused: list[Any] = []
        self.relays = {
            side: PacketRelay(
                TopicMap(RULES, DIRECTION[side]), ids[side], limits[OTHER[side]], self.counts[side],
                lambda *why: self.refused.append(why),
            )
            for side in SIDES
        }  # fmt: skip
        self.relay = TwoWayRelay(self.relays, {**self.wires}, by_runs=by_runs, is_paced=is_paced)
        self.ended = ""

    def receive(self, side: str, chunk: bytes) -> None:
        if self.ended:
            return
        try:
            self.relay.receive(side, chunk)
        except ClientError as fault:
            self.ended = str(fault)

    def seen(self) -> Any:
        in_flight = {side: [self._held(side, each) for each in self.relays[side].ids_in_flight()] for side in SIDES}
        return (
            {side: bytes(wire.sent) for side, wire in self.wires.items()}, in_flight,
            {side: each.figures() for side, each in self.counts.items()}, self.refused, self.ended,
            {side: each.take_again() for side, each in self.relays.items()},
        )  # fmt: skip

    def _held(self, side: str, packet_id: int) -> Any:
        held = self.relays[side].maybe_held(packet_id)
        assert held is not None
        version = self.limits[OTHER[side]].version
        message = encode(relay_module.message_of(held, version), version) if held.packet is not None else None
        return packet_id, held.qos, held.payload_bytes, held.is_answered, message


def bridge_of(
    kernel: Any, limits: dict[str, TargetLimits], ids: dict[str, str], *, by_runs: bool = True, is_paced: bool = False
) -> Bridge:
    with pytest.MonkeyPatch.context() as patch:
        for name in ("RelayRun", "InFlightMessages"):
            patch.setattr(relay_module, name, getattr(kernel, name))
        return Bridge(limits, ids, by_runs=by_runs, is_paced=is_paced)


PAIRS = st.sampled_from(
    [(VIA, "a"), (VIA, "b"), (VIA, "c"), (VIA, ""), ("k", "v"), ("rumq-vi", "a"), ("rumq-qos", "1"), ("", "")]
)
PROPERTIES = st.fixed_dictionaries(
    {},
    optional={
        "message_expiry_interval": st.just(9), "content_type": st.just("text/ü"), "response_topic": st.just("r/t"),
        "payload_format_indicator": st.just(1), "correlation_data": st.sampled_from([b"", bytes(150)]),
        "user_properties": st.lists(PAIRS, min_size=1, max_size=3),
    },
)  # fmt: skip
IDS = st.integers(1, 8)


@st.composite
def publishes(draw: st.DrawFn) -> Publish:
    qos = draw(st.integers(0, 2))
    properties = draw(st.one_of(st.just({}), PROPERTIES))
    order = draw(st.permutations(sorted(properties)))
    return Publish(
        draw(st.sampled_from(TOPICS)), bytes(draw(st.sampled_from((0, 1, 1, 16, 100, 130, 20_000)))), qos,
        draw(st.booleans()), qos > 0 and draw(st.booleans()), draw(IDS) if qos else None,
        Properties(**{name: properties[name] for name in order}),  # type: ignore[typeddict-item]
    )  # fmt: skip


def answer(kind: type[Puback | Pubrec | Pubrel | Pubcomp], packet_id: int, reason: Reason) -> Packet:
    if kind in (Pubrel, Pubcomp) and reason != Reason.SUCCESS:
        reason = Reason.PACKET_IDENTIFIER_NOT_FOUND
    return kind(packet_id, reason)


USUAL = [Reason.SUCCESS] * 6
REASONS = [*USUAL, Reason.NO_MATCHING_SUBSCRIBERS, Reason.NOT_AUTHORIZED, Reason.QUOTA_EXCEEDED]
ANSWERS = st.builds(
    answer, st.sampled_from([Puback, Pubrec, Puback, Pubrec, Pubrel, Pubcomp]), IDS, st.sampled_from(REASONS)
)
UNUSUAL = [
    bytes.fromhex("3018000174132600016b00017602000000092600016b00017878"),  # user properties apart
    bytes.fromhex("30070001740323000178"),  # a topic alias
    *(bytes.fromhex(each) for each in ("3006000174020b0378", "d000", "400400010000", "4003000110")),
]  # fmt: skip
FAULTS = [
    bytes.fromhex(each)
    for each in (
        "e000", "30020000", "3206000174000000", "3606000174000100", "3804000174", "3084000001740078", "40020000",
        "3009000174050900ff0000", "30ffffffff01", "4203000100", "60020001",
        "3205000174", "3003000474", "30060001740226ff", "300400017405", "30050001748000",
    )
]  # fmt: skip
SIDE = st.sampled_from(SIDES)
# Of two packets to one side, one is relayed from it; cut: bytes that arrive with it, in percent of what is on its way.
STEPS = st.lists(
    st.tuples(
        SIDE, st.one_of(publishes(), ANSWERS, ANSWERS, publishes(), st.sampled_from(UNUSUAL)), st.integers(0, 100)
    ),
    max_size=40,
)
LIMITS = st.one_of(
    st.just(TargetLimits("b")), st.just(TargetLimits(version=4)),
    st.builds(
        TargetLimits, st.sampled_from(["", "b"]), st.sampled_from([2**28 + 4, *range(24, 40)]), st.integers(0, 2),
        st.booleans(), st.booleans(), receive_maximum=st.sampled_from([1, 2, 3, 65_535]),
    ),
    st.builds(TargetLimits, st.just("b"), receive_maximum=st.integers(1, 4)),
)  # fmt: skip


@kernels
@given(
    limits=st.tuples(LIMITS, LIMITS),
    ids=st.tuples(st.sampled_from(["", "a"]), st.sampled_from(["", "b"])),
    room=st.sampled_from([2**20, 2**20, 100, 60, 30, 0]),
    steps=STEPS,
    fault=st.sampled_from([b"", *FAULTS]),
)
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_runs_leave_the_bytes_and_the_state_of_single_packets(
    kernel: Any, limits: Any, ids: Any, room: int, steps: list[tuple[str, Packet | bytes, int]], fault: bytes
) -> None:
    """room: bytes that QoS 0 has"""
    sides = dict(zip(SIDES, limits, strict=True)), dict(zip(SIDES, ids, strict=True))
    runs, oracle = (bridge_of(kernel, *sides, by_runs=by_runs) for by_runs in (True, False))
    version = {side: each.version for side, each in sides[0].items()}
    for each in (runs, oracle):
        for wire in each.wires.values():
            wire.waiting = QOS_0_BYTES_MAX - room - len(wire.sent)
    on_way = dict.fromkeys(SIDES, b"")

    def arrive(side: str, size: int) -> None:
        chunk, on_way[side] = on_way[side][:size], on_way[side][size:]
        for each in (runs, oracle):
            each.receive(side, chunk)

    for side, packet, percent in steps:
        on_way[side] += packet if isinstance(packet, bytes) else encode(packet, version[side])
        arrive(side, len(on_way[side]) * percent // 100)
    for side in SIDES:
        on_way[side] += fault
        arrive(side, len(on_way[side]))
    assert runs.seen() == oracle.seen()


@kernels
def test_ordinary_packets_are_relayed_without_being_decoded(kernel: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    bridge = bridge_of(kernel, {LOCAL: TargetLimits("a"), REMOTE: TargetLimits("b")}, {LOCAL: "a", REMOTE: "b"})

    def message(packet_id: int, qos: int, **properties: Any) -> bytes:
        made = Publish("up/1", b"x", qos, packet_id=packet_id if qos else None, properties=Properties(**properties))
        return encode(made, 5)

    taken: list[Packet] = []
    monkeypatch.setattr(bridge.relay, "take", lambda side, packet: taken.append(packet))
    via = [("k", "v"), (VIA, "c")]
    raised = [("k", "v"), ("rumq-qos", "1")]  # of QoS 1, between rumq brokers
    bridge.receive(LOCAL, message(0, 0) + message(1, 1) + message(2, 2, user_properties=via, message_expiry_interval=7))
    bridge.receive(REMOTE, encode(Puback(1, Reason.NO_MATCHING_SUBSCRIBERS), 5) + encode(Pubrec(2), 5))
    bridge.receive(LOCAL, encode(Pubrel(2), 5))
    bridge.receive(REMOTE, encode(Pubcomp(2), 5))
    bridge.receive(LOCAL, message(3, 2, content_type="c", user_properties=raised))
    bridge.receive(REMOTE, encode(Pubrec(3), 5))
    bridge.receive(LOCAL, encode(Pubrel(3), 5))
    bridge.receive(REMOTE, encode(Pubcomp(3), 5))
    assert taken == []
    answers = (Puback(1), Pubrec(2), Pubcomp(2), Pubrec(3), Pubcomp(3))
    assert bytes(bridge.wires[LOCAL].sent) == b"".join(encode(each, 5) for each in answers)
    assert bridge.counts[LOCAL].messages == 4 and bridge.counts[LOCAL].bytes == 4


@kernels
@pytest.mark.parametrize("qos", [1, 2])
def test_what_comes_again_to_a_target_that_lost_its_session_is_marked(kernel: Any, qos: int) -> None:
    limits = {LOCAL: TargetLimits("a"), REMOTE: TargetLimits("b", was_lost=True)}
    bridge = bridge_of(kernel, limits, {LOCAL: "a", REMOTE: "b"})
    again = Publish("up/1", b"x", qos, dup=True, packet_id=1)
    bridge.receive(LOCAL, encode(again, 5) + encode(Publish("up/1", b"y", qos, packet_id=2), 5))
    assert bytes(bridge.wires[REMOTE].sent).count(DOUBTFUL.encode()) == 1 == bridge.counts[LOCAL].doubtful


@kernels
def test_a_packet_of_many_pieces_is_relayed_once_it_is_whole(kernel: Any) -> None:
    bridge = bridge_of(kernel, dict.fromkeys(SIDES, TargetLimits()), {LOCAL: "a", REMOTE: ""})
    large = encode(Publish("up/1", bytes(3 * 2**20), 1, packet_id=1), 5)
    for _ in range(2):
        before = len(bridge.wires[REMOTE].sent)
        for at in range(0, len(large), 2**18):
            bridge.receive(LOCAL, large[at : at + 2**18])
        way = len(encode(Publish("t", b"", properties=Properties(user_properties=[(VIA, "a")])), 5)) - 6
        assert len(bridge.wires[REMOTE].sent) - before == len(large) + way
        bridge.receive(REMOTE, encode(Puback(1), 5))
    assert bridge.counts[LOCAL].messages == 2


@kernels
@pytest.mark.parametrize("size", [20, 200, 20_000])
def test_a_packet_may_be_as_large_as_the_target_takes_and_no_larger(kernel: Any, size: int) -> None:
    message = encode(Publish("up/1", bytes(size), 1, packet_id=1), 5)
    for short in (0, 1):
        limits = TargetLimits(packet_bytes_max=len(message) - short)
        bridge = bridge_of(kernel, dict.fromkeys(SIDES, limits), dict.fromkeys(SIDES, ""))
        bridge.receive(LOCAL, message)
        assert bytes(bridge.wires[REMOTE].sent) == (b"" if short else message)
        assert len(bridge.refused) == short


@kernels
def test_an_answer_that_comes_twice_counts_once(kernel: Any) -> None:
    """Behind one that is still to come."""
    bridge = bridge_of(kernel, dict.fromkeys(SIDES, TargetLimits()), dict.fromkeys(SIDES, ""))
    for packet_id in (1, 2):
        bridge.receive(LOCAL, encode(Publish("up/1", b"x", 1, packet_id=packet_id), 5))
    bridge.receive(REMOTE, encode(Puback(2), 5) * 2)
    assert not bridge.wires[LOCAL].sent and bridge.counts[LOCAL].messages == 1
    bridge.receive(REMOTE, encode(Puback(1), 5))
    assert bytes(bridge.wires[LOCAL].sent) == encode(Puback(1), 5) + encode(Puback(2), 5)
    assert bridge.counts[LOCAL].messages == 2


@kernels
def test_more_topics_than_are_remembered_are_relayed_all_the_same(kernel: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relay_module, "TOPICS_MAX", 10)
    bridge = bridge_of(kernel, dict.fromkeys(SIDES, TargetLimits()), dict.fromkeys(SIDES, ""))
    packets = [encode(Publish(f"up/{n % 25}", b"x", 0), 5) for n in range(100)]
    bridge.receive(LOCAL, b"".join(packets))
    assert bytes(bridge.wires[REMOTE].sent) == b"".join(packets)


def test_what_waits_for_a_bandwidth_is_counted_as_the_memory_it_takes() -> None:
    """Reading stops by this count, and messages need not have payloads."""
    bridge = Bridge({side: TargetLimits() for side in SIDES}, dict.fromkeys(SIDES, ""), by_runs=False)
    relay = TwoWayRelay(bridge.relays, {**bridge.wires}, is_paced=True)
    topic, pairs = "t" * 20_000, [("k", "v" * 10_000)]
    for packet_id in range(1, 101):
        relay.take(REMOTE, Publish(topic, b"", 1, packet_id=packet_id, properties=Properties(user_properties=pairs)))
    assert relay.paced_bytes[REMOTE] >= 100 * 30_000
    for _ in range(100):
        relay.move_paced(REMOTE)
    assert relay.paced_bytes[REMOTE] == 0


@pytest.mark.parametrize("qos", [0, 1, 2])
@pytest.mark.parametrize("piece", [1_000_003, 2**18])
def test_a_packet_that_the_target_does_not_take_is_not_collected(qos: int, piece: int) -> None:
    """A broker may send 256 MiB, and say so a byte at a time."""
    limits = {side: TargetLimits(packet_bytes_max=2**20) for side in SIDES}
    bridge = Bridge(limits, dict.fromkeys(SIDES, ""), by_runs=True)
    packet_id = 9 if qos else None
    large = encode(Publish("t", bytes(2**23), qos, packet_id=packet_id), 5)
    small = encode(Publish("t", b"small", 1, packet_id=10), 5)
    raw = small + large + small.replace(b"\x00\x0a", b"\x00\x0b")
    most = 0
    for at in range(0, len(raw), piece):
        bridge.receive(REMOTE, raw[at : at + piece])
        most = max(most, len(bridge.relay._unfinished[REMOTE]))
    assert most <= piece and not bridge.ended
    assert [(reason, topic) for topic, reason, _ in bridge.refused] == [(Reason.PACKET_TOO_LARGE, "t")]
    assert bridge.counts[REMOTE].refused == {Reason.PACKET_TOO_LARGE.text: 1}
    assert bytes(bridge.wires[LOCAL].sent).count(b"small") == 2
    bridge.receive(LOCAL, encode(Puback(10), 5) + encode(Puback(11), 5))
    answered = [encode(Puback(10), 5), encode((Puback, Puback, Pubrec)[qos](9), 5), encode(Puback(11), 5)]
    assert bridge.wires[REMOTE].sent == b"".join(answered if qos else answered[::2])


def test_a_large_packet_that_is_no_message_ends_the_link() -> None:
    bridge = Bridge(
        {side: TargetLimits(packet_bytes_max=2**20) for side in SIDES}, dict.fromkeys(SIDES, ""), by_runs=True
    )
    bridge.receive(REMOTE, b"\x90\xff\xff\xff\x7f")
    assert "268435455" in bridge.ended


class Counting:
    """A target that counts as MQTT 5.0, 4.9 asks, and a source of 3.1.1 that cannot be told how many it takes: all that
    it has leaves at once, and PUBREL behind it. found: what the target was sent, in order, without PUBRELs"""

    def __init__(self, bridge: Bridge, receive_maximum: int) -> None:
        self.bridge, self.receive_maximum = bridge, receive_maximum
        self.found: list[Publish] = []
        self._on_way: dict[int, Packet] = {}
        self.answers: list[Packet] = []  # of the target, that are still to come
        self._seen = dict.fromkeys(SIDES, 0)
        self._released: list[int] = []  # PUBREL by the source

    def sent(self, side: str) -> list[Packet]:
        """To a side, since the last time."""
        raw = bytes(self.bridge.wires[side].sent[self._seen[side] :])
        self._seen[side] += len(raw)
        reader, version = FrameReader(version=4 if side == REMOTE else 5), 4 if side == REMOTE else 5
        reader.receive(raw)
        return [decode(*frame, version) for frame in reader.frames()]

    def take(self) -> None:
        """What the target was sent."""
        for packet in self.sent(LOCAL):
            if isinstance(packet, Publish):
                self.found.append(packet)
                if packet.packet_id is not None:
                    self._on_way[packet.packet_id] = packet
                    assert len(self._on_way) <= self.receive_maximum, "a rumq hangs up at more"
                    self.answers.append((Puback if packet.qos == 1 else Pubrec)(packet.packet_id))
            elif isinstance(packet, Pubrel):
                self._released.append(packet.packet_id)
                self.answers.append(Pubcomp(packet.packet_id))

    def go_on(self) -> bool:
        """One answer of the target, and what the source says to it; False: none is left."""
        while self.bridge.relay._is_paced and self.bridge.relay.has_paced(REMOTE):
            self.bridge.relay.move_paced(REMOTE)
        self.take()
        if not self.answers:
            return False
        answer = self.answers.pop(0)
        if not isinstance(answer, Pubrec):
            del self._on_way[answer.packet_id]  # type: ignore[attr-defined]
        self.bridge.receive(LOCAL, encode(answer, 5))
        for packet in self.sent(REMOTE):
            if isinstance(packet, Pubrec):
                self.bridge.receive(REMOTE, encode(Pubrel(packet.packet_id), 4))
        return True


@kernels
@pytest.mark.parametrize("by_runs", [True, False])
@pytest.mark.parametrize("is_paced", [True, False])
@pytest.mark.parametrize("qos", [(1,), (2,), (0, 1, 2), (2, 2, 0)])
@pytest.mark.parametrize("piece", [1, 7, 10**6])
def test_the_target_has_no_more_on_its_way_than_it_takes(
    kernel: Any, by_runs: bool, is_paced: bool, qos: tuple[int, ...], piece: int
) -> None:
    """A source of MQTT 3.1.1 cannot be told how many, and a rumq hangs up at more: again and again at the same ones.
    Messages of QoS 2 count until PUBREL, which comes behind all that the source has sent meanwhile."""
    limits = {side: TargetLimits(receive_maximum=3, version=4 if side == REMOTE else 5) for side in SIDES}
    bridge = bridge_of(kernel, limits, dict.fromkeys(SIDES, ""), by_runs=by_runs, is_paced=is_paced)
    levels = [qos[n % len(qos)] for n in range(30)]
    raw = b"".join(
        encode(Publish(f"t{n}", b"", level, packet_id=n + 1 if level else None), 4) for n, level in enumerate(levels)
    )
    counting = Counting(bridge, 3)
    for at in range(0, len(raw), piece):
        bridge.receive(REMOTE, raw[at : at + piece])
        counting.take()
    while counting.go_on():
        assert not bridge.ended
    assert [each.topic for each in counting.found] == [f"t{n}" for n in range(30)]
    assert counting._released == [n + 1 for n, level in enumerate(levels) if level == 2], "in the order of PUBREC"
    assert not counting._on_way and not bridge.relay.is_full(REMOTE) and bridge.relay.paced_bytes[REMOTE] == 0


def test_a_message_that_is_on_its_way_comes_again_before_those_that_wait() -> None:
    """And its PUBREL behind it: the target would take it for a new one."""
    limits = {side: TargetLimits(receive_maximum=1) for side in SIDES}
    bridge = Bridge(limits, dict.fromkeys(SIDES, ""), by_runs=True)
    for packet in (Publish("a", b"", 2, packet_id=1), Publish("b", b"", 2, packet_id=2)):
        bridge.receive(REMOTE, encode(packet, 5))
    bridge.receive(LOCAL, encode(Pubrec(1), 5))
    again = Publish("a", b"", 2, dup=True, packet_id=1)
    bridge.receive(REMOTE, encode(again, 5) + encode(Pubrel(1), 5))
    sent = b"".join(encode(each, 5) for each in (Publish("a", b"", 2, packet_id=1), again, Pubrel(1)))
    assert bytes(bridge.wires[LOCAL].sent) == sent


@pytest.mark.parametrize("is_paced", [True, False])
def test_what_is_held_before_pubrel_is_bounded(is_paced: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the target can make room by itself, it is waited for; a source that never sends PUBREL ends the link."""
    monkeypatch.setattr(two_way_relay, "HELD_BYTES_MAX", 2**14)
    monkeypatch.setattr(two_way_relay, "KEPT_BYTES_MAX", 2**16)
    limits = {side: TargetLimits(receive_maximum=2) for side in SIDES}
    bridge = Bridge(limits, dict.fromkeys(SIDES, ""), by_runs=True, is_paced=is_paced)
    relay = bridge.relay

    def send(first: int, count: int) -> None:
        for packet_id in range(first, first + count):
            bridge.receive(REMOTE, encode(Publish("t", bytes(1_000), 2, packet_id=packet_id), 5))
            while is_paced and relay.has_paced(REMOTE):
                relay.move_paced(REMOTE)

    send(1, 4)
    assert relay.is_full(REMOTE) and not relay.may_read_on(REMOTE), "two answers are to come"
    bridge.receive(LOCAL, encode(Pubrec(1), 5))
    assert relay.may_read_on(REMOTE), "one may be behind PUBREL"
    send(5, 16)
    assert not relay.may_read_on(REMOTE) and relay.paced_bytes[REMOTE] <= 2**14 + 1_300 + 10_000 * is_paced
    bridge.receive(LOCAL, encode(Pubrec(2), 5))
    assert relay.may_read_on(REMOTE), "nothing else helps"
    send(21, 1_000)
    assert "before PUBREL" in bridge.ended and relay.paced_bytes[REMOTE] <= 2**16 + 1_300
