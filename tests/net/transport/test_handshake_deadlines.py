"""Deadlines of handshakes, by a clock that is set by hand."""

from collections.abc import Callable

from rumq.net.transport.handshake_deadlines import HandshakeDeadlines


class World:
    """ended: handshakes and why"""

    def __init__(self) -> None:
        self.now = 100.0
        self.timers: list[tuple[float, Callable[[], None]]] = []
        self.ended: list[tuple[str, str]] = []
        self.deadlines: HandshakeDeadlines[str] = HandshakeDeadlines(
            lambda: self.now, lambda seconds, call: self.timers.append((self.now + seconds, call)),
            lambda *ended: self.ended.append(ended), seconds_max=10.0, silent_seconds_max=2.5,
        )  # fmt: skip

    def after(self, seconds: float) -> None:
        self.now += seconds
        due = [timer for timer in self.timers if timer[0] <= self.now]
        self.timers = [timer for timer in self.timers if timer[0] > self.now]
        for _, call in due:
            call()


def test_a_silent_one_ends_soon_and_one_that_has_sent_something_later() -> None:
    world = World()
    world.deadlines.begin("silent")
    world.deadlines.begin("slow")
    world.deadlines.give_time("slow")
    world.after(2.5)
    assert world.ended == [("silent", "silent for 2.5 s")] and len(world.deadlines) == 1
    world.after(7.5)
    assert world.ended[1:] == [("slow", "not open within 10 s")] and len(world.deadlines) == 0


def test_one_that_is_open_has_no_deadline() -> None:
    world = World()
    world.deadlines.begin("open")
    world.deadlines.drop("open")
    world.after(60.0)
    assert world.ended == [] and world.timers == []
