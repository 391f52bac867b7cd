"""The ports of a shard: the few services of the turn that its parts share, each as a small Protocol.

How a part takes them: its constructor names each port that it uses, and nothing that holds them all:

    class Counters:
        def __init__(self, clock: Clock, timers: Timers, registry: Registry, *, done: Callable[[Tally], None]) -> None:
            self._clock, self._timers = clock, timers

At most six ports and other parts a constructor; settings follow as keywords. A part that needs one call of another part
takes a `Callable`. A port is kept as the object, never its value: `self._clock.monotonic` is the time of this turn. All
ports exist before the first part is made, so parts may be made in any order their own references allow; only
`rumq.shards.assembly` knows all of them. A test passes a plain object with the members below."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from router.commands import CommandQueue as CommandQueue
from router.effects import Effect
from rumq.session.ports.clock import Clock as Clock

T = TypeVar("T")
Call = Callable[[], None]
ReadDone = Callable[[list[Any] | None, BaseException | None], None]


class LifecycleState(Protocol):
    """is_restored: sessions of an earlier run are here; stop_phase: of the five of a stop, 0: it does not stop"""

    is_restored: bool
    stop_phase: int


class Timers(Protocol):
    """Calls that are made later on the loop; one that raises is reported as `task.failed` and ends nothing else."""

    def later(self, seconds: float, call: Call) -> None:
        """Call in a turn after so many seconds."""

    def next_turn(self, call: Call) -> None:
        """Call when the next turn begins."""

    def after_step(self, call: Call) -> None:
        """Call when the commands that are queued now, and their effects, have been carried out."""


class EventSink(Protocol):
    """Events for the operator, docs/reference/events.md."""

    def tell(self, name: str, /, **fields: Any) -> None:
        """An `exc_info` field adds the exception that is being handled."""


class FaultGuard(Protocol):
    """Confines a fault of ours to the task or the connection that it occurs in."""

    def alone(self, task: str, call: Call) -> None:
        """Call; an exception is reported as `task.failed`."""

    def failed(self, task: str) -> None:
        """Report the exception that is being handled as `task.failed`."""

    def crashed(self, connection: Any) -> None:
        """The exception that is being handled concerns one connection: report it and end that connection."""

    def given_up(self, link: Any, fault: BaseException) -> None:
        """A request of another shard cannot be answered: its link ends, and it asks again over the next one."""


class ReadPool(Protocol):
    """Threads that may wait for a disk; jobs of one lane run in order, lanes run beside each other."""

    def submit(self, job: Callable[[], T], done: Callable[[T, BaseException | None], None], lane: int = 0) -> None:
        """Run `job` on a thread, then `done(result, fault)` on the loop; result is None with a fault."""


class ChunkReader(Protocol):
    """Whole chunks of any partition, from memory, disk or its owner shard."""

    def read(self, index: int, lsn: int, done: ReadDone) -> None:
        """Read from `lsn` on; `done(chunks, fault)` on the loop."""


class Placement(Protocol):
    """Which shard a client id or a share belongs to. index: of this shard"""

    @property
    def index(self) -> int: ...

    def home(self, key: str) -> int:
        """The shard of a client id or of a share's key."""

    def is_here(self, key: str) -> bool: ...


class ShardLinks(Protocol):
    """The links to the other shards; with one shard there are none."""

    def say(self, shard: int, message: Any) -> bool:
        """Send a message of `rumq.shards.bus.messages`; False if that shard has not joined."""

    def say_all(self, message: Any) -> None:
        """Send a message to every shard that is linked."""


class EffectSink(Protocol):
    """Carries out what the router asks for."""

    def carry_out(self, effect: Effect) -> None: ...
