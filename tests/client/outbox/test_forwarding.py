"""Each message once at a broker that keeps sessions, in order, wherever connections and processes end."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rumq.client.outbox.forwarding import IDS, WINDOW_MAX, Forwarding, maybe_place, packet_id_of
from rumq.mqtt.packets import Packet, Puback, Pubcomp, Pubrec, Pubrel
from rumq.mqtt.reasons import Reason


@dataclass
class Broker:
    """QoS 2 as MQTT 5.0, 4.3.3 has it. log: places of messages in the order they were stored; ids: of the session"""

    log: list[int] = field(default_factory=list)
    ids: set[int] = field(default_factory=set)
    is_present: bool = False

    def publish(self, place: int, packet_id: int) -> Packet:
        if packet_id not in self.ids:
            self.ids.add(packet_id)
            self.log.append(place)
        return Pubrec(packet_id)

    def release(self, packet_id: int) -> Packet:
        known = packet_id in self.ids
        self.ids.discard(packet_id)
        return Pubcomp(packet_id, Reason.SUCCESS if known else Reason.PACKET_IDENTIFIER_NOT_FOUND)


class Run:
    """A process with a file that has `stored` and `release`; packets of both directions wait on the wire."""

    def __init__(self, broker: Broker, count: int) -> None:
        self.broker, self.count = broker, count
        self.file = (0, 0)
        self.start()

    def start(self) -> None:
        """As after kill -9: the file counts."""
        self.state = Forwarding(*self.file, self.count)
        self.up: list[tuple[int, Packet | None]] = []  # (place, None) is a PUBLISH
        self.down: list[Packet] = []

    def connect(self, window: int) -> None:
        self.up, self.down = [], []
        self.state.connected(session_present=self.broker.is_present, window=window, qos=2)
        self.broker.is_present = True
        self.send(self.state.old_packets())

    def send(self, packets: list[Packet]) -> None:
        self.up += [(-1, packet) for packet in packets]

    def step(self, action: int) -> None:
        """One of: send, the broker takes one, we take one, note, lose the connection, be killed."""
        state = self.state
        if action == 0:
            if state.room() and state.sent < self.count:
                self.up.append((state.sent, None))
                state.note_sent()
        elif action == 1 and self.up:
            place, packet = self.up.pop(0)
            if packet is None:
                self.down.append(self.broker.publish(place, packet_id_of(place)))
            else:
                assert isinstance(packet, Pubrel)
                self.down.append(self.broker.release(packet.packet_id))
        elif action == 2 and self.down:
            self.send(state.receive(self.down.pop(0)))
        elif action == 3 and state.received > state.stored:
            self.file = (state.received, state.release)
            self.send(state.noted(state.received))
        elif action == 4:
            state.lost()
            self.connect(4)
        elif action == 5:
            self.start()
            self.connect(4)

    def finish(self) -> None:
        for _ in range(100 * self.count):
            for action in (0, 1, 2, 3):
                self.step(action)
            if self.file[0] == self.count and not self.up and not self.down:
                return
        raise AssertionError(f"stuck at {self.file} of {self.count}")


@given(actions=st.lists(st.integers(0, 5), max_size=120), count=st.integers(1, 30))
@settings(max_examples=300)
def test_each_is_stored_once_and_in_order(actions: list[int], count: int) -> None:
    run = Run(Broker(), count)
    run.connect(4)
    for action in actions:
        run.step(action)
    run.finish()
    assert run.broker.log == list(range(count))
    assert not run.broker.ids, "every id is free again"


@given(actions=st.lists(st.integers(0, 4), max_size=60), drop=st.integers(1, 40))
def test_what_is_dropped_takes_nothing_with_it(actions: list[int], drop: int) -> None:
    run = Run(Broker(), 40)
    run.connect(4)
    for action in actions:
        run.step(action)
    run.send(run.state.dropped(drop))
    run.file = (max(drop, run.file[0]), run.state.release)
    run.finish()
    log = run.broker.log
    assert log == sorted(set(log)) and set(range(drop, 40)) <= set(log)


def test_a_message_that_is_released_before_the_file_knows_is_stored_twice_by_the_next_process() -> None:
    """Why PUBREL waits for the file: this is what the order prevents."""
    run = Run(Broker(), 1)
    run.connect(4)
    for action in (0, 1, 2):
        run.step(action)
    run.send([Pubrel(packet_id_of(0))])  # too early
    run.step(1)
    run.step(5)
    run.finish()
    assert run.broker.log == [0, 0]


def test_a_session_that_is_lost_leaves_a_doubt_that_is_counted() -> None:
    state = Forwarding(10, 8, 13)
    assert state.connected(session_present=True, window=9, qos=2) == 0
    assert state.old_packets() == [Pubrel(packet_id_of(8)), Pubrel(packet_id_of(9))]
    assert state.room() == 0
    assert state.connected(session_present=False, window=9, qos=2) == 3
    assert state.old_packets() == [] and state.room() == 9


def test_qos_1_is_at_least_once() -> None:
    state = Forwarding(0, 0, 2)
    state.connected(session_present=False, window=9, qos=1)
    state.note_sent()
    state.receive(Puback(packet_id_of(0)))
    assert state.received == 1 and state.noted(1) == [] and state.room() == 9


@pytest.mark.parametrize(
    ("reason", "goes_on"),
    [(Reason.NOT_AUTHORIZED, True), (Reason.QUOTA_EXCEEDED, False), (Reason.PACKET_IDENTIFIER_IN_USE, True)],
)
def test_a_refusal_that_stays_is_counted_and_one_that_may_pass_is_tried_again(reason: Reason, goes_on: bool) -> None:
    state = Forwarding(0, 0, 9)
    state.connected(session_present=False, window=9, qos=2)
    for _ in range(2):
        state.note_sent()
    state.receive(Pubrec(packet_id_of(0), reason))
    assert (state.received == 1) is goes_on
    assert len(state.refusals) == (reason == Reason.NOT_AUTHORIZED)
    assert not state.waits_to_send_again
    state.receive(Pubrec(packet_id_of(1)))
    assert state.waits_to_send_again is not goes_on
    if not goes_on:
        assert state.room() == 0 and state.take_again() == [0]
        state.receive(Pubrec(packet_id_of(0)))
        assert state.received == 2


def test_no_more_is_on_its_way_than_ids_allow() -> None:
    state = Forwarding(0, 0, 0)
    state.connected(session_present=False, window=65_535, qos=2)
    assert state.room() == WINDOW_MAX


@pytest.mark.parametrize("place", [0, 1, IDS - 1, IDS, 10 * IDS + 7])
def test_a_place_follows_from_its_id(place: int) -> None:
    assert 32_768 <= packet_id_of(place) <= 65_535
    assert maybe_place(packet_id_of(place), max(0, place - 5), place + 1) == place
    assert maybe_place(packet_id_of(place), place + 1, place + IDS) is None
