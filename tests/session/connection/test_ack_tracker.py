"""Acknowledgements leave when every part of their promise is committed, each client's in order."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from rumq.loop.queues import StepQueue
from rumq.mqtt.kernels.wire_state import Wire
from rumq.mqtt.reasons import Reason
from rumq.session.connection.pending_acks import AckTracker, PendingAcks
from rumq.session.flow_control.delivery_window import DeliveryWindow
from rumq.session.ports.clock import TurnClock
from rumq.session.ports.transport import Outbox
from rumq.session.state.session import Session


class Source:
    def __init__(self) -> None:
        self.index = 0
        self.next_lsn = self.committed_lsn = self.pending_bytes = 0


class Sent(Outbox):
    """What left, in order."""

    def __init__(self) -> None:
        self.room, self.refused = 1 << 20, False
        self.pieces: list[bytes] = []

    def write(self, data: Any, owner: object = None) -> None:
        self.pieces.append(bytes(data))


class Client(PendingAcks):
    """releases: how often messages may follow"""

    def __init__(self) -> None:
        self.outbox, session = Sent(), Session("c", None, personal=False)
        super().__init__(SimpleNamespace(journal=None, acks=None), session, Wire(False, 1 << 20, 10, 0), self.outbox)  # type: ignore[arg-type]
        self.flow = DeliveryWindow(self.outbox, session, 10, StepQueue())
        self.releases = 0

    @property
    def sent(self) -> list[bytes]:
        return self.outbox.pieces

    def leave(self) -> None:
        self.flow = None

    def released(self) -> None:
        self.releases += 1


class Link:
    def __init__(self, told: Callable[[Reason], None]) -> None:
        self._told = told

    def dismiss(self, reason: Reason, why: str | None = None) -> None:
        self._told(reason)


class World:
    """Two partitions and the journal."""

    def __init__(self) -> None:
        self.sources = [Source(), Source(), Source()]
        self.flushes = 0
        self.acks = AckTracker(self.sources, self._flush, TurnClock())

    def _flush(self, now_us: int) -> None:
        self.flushes += 1

    def append(self, index: int) -> None:
        self.sources[index].next_lsn += 1

    def commit(self, index: int) -> None:
        self.sources[index].committed_lsn = self.sources[index].next_lsn
        self.acks.release(index)

    def promise(self, client: Client, acks: bytes, parts: int) -> None:
        client.wire.answer(acks)
        self.acks.promise(client, parts)
        assert self.acks.end_step()


def test_an_acknowledgement_waits_for_each_part_of_its_promise() -> None:
    world, client = World(), Client()
    world.append(0)
    world.append(1)
    world.promise(client, b"ack", 0b011)
    assert world.acks.urgent == [True, True, False] and world.flushes == 1
    world.commit(0)
    assert client.sent == []
    world.commit(1)
    assert client.sent == [b"ack"]


def test_what_is_committed_already_leaves_at_once_but_not_before_what_came_first() -> None:
    world, client = World(), Client()
    world.append(0)
    world.promise(client, b"slow", 0b001)
    world.promise(client, b"quick", 0b010)
    assert client.sent == []
    world.commit(0)
    assert client.sent == [b"slow", b"quick"]


def test_messages_wait_for_the_journal_and_later_ones_are_let_go_then() -> None:
    world, client = World(), Client()
    world.append(2)
    world.acks.promise_messages(client, b"messages")
    assert world.acks.end_step() and client.barriers == 1
    world.commit(2)
    assert (client.sent, client.barriers, client.releases) == ([b"messages"], 0, 1)


def test_a_client_that_has_left_gets_nothing_and_a_step_without_promises_costs_no_flush() -> None:
    world, client = World(), Client()
    world.append(0)
    world.promise(client, b"ack", 0b001)
    client.leave()
    world.commit(0)
    assert client.sent == []
    assert not world.acks.end_step() and world.flushes == 1


def test_who_has_waited_too_long_loses_the_connection_and_nothing_is_promised() -> None:
    world, early, late, gone = World(), Client(), Client(), Client()
    dismissed: list[tuple[Client, Reason]] = []
    for client in (early, late, gone):
        client.session.link = Link(lambda reason, client=client: dismissed.append((client, reason)))
    clock = world.acks._clock
    clock.monotonic = 1.0
    world.append(0)
    world.promise(early, b"early", 0b001)
    world.promise(gone, b"gone", 0b001)
    gone.leave()
    clock.monotonic = 5.0
    world.append(1)
    world.promise(late, b"late", 0b010)
    clock.monotonic = 10.9
    assert world.acks.give_up(10.0, "too few") == 0 and not dismissed
    clock.monotonic = 11.0
    assert world.acks.give_up(10.0, "too few") == 1
    assert dismissed == [(early, Reason.SERVER_BUSY)]
    assert early.sent == late.sent == []
