"""The ports of a shard, turned by hand: for tests of its parts."""

from collections.abc import Callable
from typing import Any

import msgspec

from router.commands import Command
from rumq.net.frames import Raw, decode
from rumq.session.ports.clock import TurnClock
from rumq.session.ports.transport import Transport
from rumq.shards.bus import messages as m

_decoder: msgspec.msgpack.Decoder[m.AnyMessage] = msgspec.msgpack.Decoder(m.AnyMessage)


def decoded(frame: Raw) -> tuple[m.AnyMessage, memoryview]:
    """A whole frame of a link, and its raw bytes."""
    return decode(_decoder, memoryview(frame)[4:])


class Hand(TurnClock):
    """Clock, timers, commands, events and placement. said: messages to other shards, in order"""

    def __init__(self, index: int = 0, count: int = 3) -> None:
        self.index, self.count = index, count
        super().__init__(0, 1000.0)
        self.items: list[Command] = []
        self.events: list[tuple[str, dict[str, Any]]] = []
        self.said: list[tuple[int, Any]] = []
        self.away: set[int] = set()  # shards that cannot be told anything
        self._steps: list[Callable[[], None]] = []
        self.waiting: list[tuple[float, Callable[[], None]]] = []

    def put(self, command: Command) -> None:
        self.items.append(command)

    def tell(self, name: str, /, **fields: Any) -> None:
        self.events.append((name, fields))

    def later(self, seconds: float, call: Callable[[], None]) -> None:
        self.waiting.append((seconds, call))

    def next_turn(self, call: Callable[[], None]) -> None:
        self.waiting.append((0.0, call))

    def after_step(self, call: Callable[[], None]) -> None:
        self._steps.append(call)

    def step(self) -> None:
        """The commands have been carried out."""
        steps, self._steps = self._steps, []
        for call in steps:
            call()

    def home(self, key: str) -> int:
        """The digit at a key's end."""
        return int(key[-1]) % self.count

    def is_here(self, key: str) -> bool:
        return self.home(key) == self.index

    def say(self, shard: int, message: m.AnyMessage) -> bool:
        if shard in self.away:
            return False
        self.said.append((shard, message))
        return True

    def say_all(self, message: m.AnyMessage) -> None:
        self.said.append((-1, message))


class LinkEnd(Transport):
    """The far end of a link: keeps what was written. room: bytes until it is full"""

    peer = "shard 9"

    def __init__(self, room: int = 1 << 20) -> None:
        self.room, self.refused = room, False
        self.written = bytearray()
        self.bytes_out = 0
        self.is_closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += data

    def waits(self) -> bool:
        return False

    def close(self) -> None:
        self.is_closed = True


class Other:
    """Another shard that answers when the test says so."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.link = None
        self.partitions: list[Any] = []
        self.asked: list[tuple[Any, Callable[[Any, memoryview], None]]] = []
        self.has_begun = False

    def begin(self) -> None:
        self.has_begun = True

    def ask(self, question: Callable[[int], Any], answered: Callable[[Any, memoryview], None]) -> None:
        self.asked.append((question(len(self.asked) + 1), answered))

    def answer(self, message: Any) -> Any:
        """Answer the oldest question, which is returned."""
        question, answered = self.asked.pop(0)
        answered(message, memoryview(b""))
        return question
