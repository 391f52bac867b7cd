"""TLS handshakes that drip or stall: one address (IPv6: /64) has a share, and who waits gets in. A6 of issue 22"""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from rumq.net.transport.transport_handshake import (
    SLOW_SECONDS,
    STALLED_SECONDS,
    TransportHandshake,
    TransportHandshakes,
)

COUNT_MAX = 20


class World:
    """Handshakes without sockets, on a clock of the test's."""

    def __init__(self) -> None:
        self.now = 100.0
        self.lost: list[str] = []
        self.timers: list[tuple[float, Callable[[], None]]] = []
        logins = SimpleNamespace(add=lambda _: None, discard=lambda _: None, set_state=lambda *_: None)
        self.pump: Any = SimpleNamespace(pending_logins=logins, read_next_turn=lambda _: None, lost=self.end, turns=0)
        self.handshakes = TransportHandshakes(
            self.pump, later=lambda seconds, call: self.timers.append((self.now + seconds, call)),
            event=lambda name, **fields: None, count_max=COUNT_MAX, clock=lambda: self.now,
        )  # fmt: skip

    def end(self, transport: Any, why: str) -> None:
        self.lost.append(transport.peer)
        transport.link.finish()

    def come(self, peer: str) -> TransportHandshake:
        transport: Any = SimpleNamespace(peer=peer, pump=self.pump, link=None, close=lambda: None)
        made = self.handshakes.start(transport, "tls")
        self.try_step(made)
        return made

    def try_step(self, handshake: TransportHandshake) -> bool:
        """Bytes have come: as `TlsStream` asks, then tells."""
        runs = self.handshakes.may_run(handshake)
        if runs:
            handshake.progress()
        return runs

    def pass_by(self, seconds: float) -> None:
        until = self.now + seconds
        while due := [each for each in self.timers if each[0] <= until]:
            first = min(due, key=lambda each: each[0])
            self.timers.remove(first)
            self.now = max(self.now, first[0])
            first[1]()
        self.now = until

    def runs(self, handshake: TransportHandshake) -> bool:
        return not handshake.closed and self.handshakes.may_run(handshake)


@pytest.fixture
def world() -> World:
    return World()


def test_one_address_has_half_of_them_and_another_comes_in_at_once(world: World) -> None:
    flood = [world.come(f"2001:db8::{n:x}:4000") for n in range(900)]
    assert sum(map(world.runs, flood)) == COUNT_MAX // 2, "of one /64"
    others = [world.come(f"10.0.0.{n}:4000") for n in range(6)]
    assert all(map(world.runs, others)) and not world.lost


def test_who_drips_makes_room_after_a_second_however_steadily(world: World) -> None:
    """900 from each of three addresses hold all; six others are in within a second and a check."""
    flood = [world.come(f"10.9.9.{n % 3}:{n}") for n in range(900)]
    others = [world.come(f"10.0.0.{n}:4000") for n in range(6)]
    assert sum(map(world.runs, flood)) == COUNT_MAX and not any(map(world.runs, others))
    for _ in range(12):
        world.pass_by(0.1)
        for each in flood:
            if world.runs(each):
                each.progress()  # another byte
    assert all(map(world.runs, others)) and world.now <= 100.0 + SLOW_SECONDS + 0.3
    assert not set(world.lost) & {each.transport.peer for each in others}


def test_of_one_address_too_those_that_drip_make_room_for_its_others(world: World) -> None:
    flood = [world.come(f"10.9.9.9:{n}") for n in range(COUNT_MAX // 2)]
    own = world.come("10.9.9.9:5000")
    assert not world.runs(own)
    for _ in range(12):
        world.pass_by(0.1)
        for each in flood:
            if world.runs(each):
                each.progress()
    assert world.runs(own) and len(world.lost) == 1


def test_while_nobody_waits_a_slow_client_has_its_time(world: World) -> None:
    slow = world.come("10.0.0.1:1")
    for _ in range(9):
        world.pass_by(1.0)
        assert world.runs(slow)
        slow.progress()
    world.pass_by(1.1)
    assert slow.closed, "ten seconds in all"


def test_the_one_alone_at_its_address_is_not_the_first_to_go(world: World) -> None:
    honest = world.come("10.0.0.1:1")
    for n in range(60):
        world.come(f"10.9.9.{n % 3}:{n}")
    world.pass_by(STALLED_SECONDS + 0.11)
    assert world.lost and "10.0.0.1:1" not in world.lost[: COUNT_MAX - 1]
    assert world.runs(honest) or world.lost.index("10.0.0.1:1") >= COUNT_MAX - 1


def test_those_that_leave_while_they_wait_are_forgotten(world: World) -> None:
    flood = [world.come(f"10.9.9.9:{n}") for n in range(100)]
    for each in flood:
        each.finish()
    assert not world.handshakes._running_of and not world.handshakes._over and len(world.handshakes) == 0
    assert world.runs(world.come("10.9.9.9:200"))
