"""A machine with the shards of one broker on it: time, disk, network, and who of all that goes on next.

Everything that happens by chance is drawn from the one `Random` that is given."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from commitlog import StreamSpec
from commitlog.log.store import check_format, hold
from commitlog.testing.simulated_files import SimulatedFiles
from tests.commitlog.records import DEAD, NOW
from tests.simulation.network import Door, Network, Poller, Stream
from tests.simulation.shard import Killed, Shard, Worker, close_all

STEP_SECONDS = 0.0005
ROUNDS_MAX = 6400  # of a machine that comes to rest: a packet has up to 20,000 filters, of which a turn takes 4
# Nothing is sent for so long: at rest. Marks (50 ms) are in both, the second has checkpoints and wills too.
REST_SECONDS = (0.006, 0.06)
LONG_REST_SECONDS = (0.006, 0.06, 0.3, 1.1)


class Restless(AssertionError):
    """It goes on for ever."""


@dataclass(frozen=True)
class Build:
    """What one simulated broker is made of."""

    shards: int
    partitions: int
    durability: Any
    linger_seconds: float
    hot_bytes_max: int
    capacity: int  # of a stream socket, bytes
    segment_bytes_max: int
    missing_seconds: float | None = None  # as of `ShardContext`
    pack_bytes_per_second: int = 0


class Machine:
    """shards: None where one is dead. trace: what happened, if it is wanted"""

    def __init__(self, build: Build, random: Random, trace: Callable[[str], None] | None) -> None:
        self.build, self.random, self.trace = build, random, trace
        self.counts: Counter[str] = Counter()
        self.step = 0
        self.now_us, self.monotonic = NOW, 1000.0
        self.network = Network()
        self.network.capacity = build.capacity
        self.streams = [StreamSpec("main", ("#",), build.partitions, build.durability, build.segment_bytes_max)]
        self.state = StreamSpec("_state", (), 1, build.durability, 1 << 16, 86_400)
        self.boots = 0
        self.frozen: dict[Any, int] = {}  # stream or shard -> the step in which it goes on
        self.deaths: list[int] = []  # the steps in which a shard died
        self._starts = 0
        self.terms: dict[int, int] = {}  # by shard, of one that a cluster leads: the epoch of its term
        self.shards: list[Shard | None] = [None] * build.shards
        self._boot(SimulatedFiles())

    def _boot(self, files: SimulatedFiles) -> None:
        """The machine is on, and the supervisor holds the directory."""
        self.boots += 1
        self.files = files
        hold(files, "data", DEAD)
        check_format(files, "data")
        self.doors = [Door(self.network.next_fd()) for _ in self.shards]

    def tell(self, *what: object) -> None:
        if self.trace is not None:
            self.trace(" ".join(map(str, what)))

    # Shards

    def start(self, index: int) -> None:
        self._starts += 1
        self.tell(f"shard {index} starts")
        poller = Poller(self.network)
        files = self.files.beside()
        files.choose = self.random.randrange

        def event(name: str, **fields: Any) -> None:
            self.counts[name] += 1
            if name in ("client.crashed", "shard.link_failed", "task.failed"):
                raise AssertionError(f"shard {index}: {name}") from fault_of(fields)
            if self.trace is not None:
                self.tell(f"  shard {index} says {name}", *(f"{k}={v}" for k, v in fields.items()))

        try:
            self.shards[index] = Shard(
                index, self.build.shards, self.streams, self.state, files, self.network, self.doors, poller,
                clock=lambda: (self.now_us, self.monotonic), seed=self._starts * 1000, event=event,
                boot_id=self.boots.to_bytes(16, "little"), linger_seconds=self.build.linger_seconds,
                hot_bytes_max=self.build.hot_bytes_max, missing_seconds=self.build.missing_seconds,
                pack_bytes_per_second=self.build.pack_bytes_per_second, term=self.terms.get(index),
            )  # fmt: skip
        except Killed:
            self.deaths.append(self.step)
            close_all(self.network, self.doors[index], poller)

    def kill(self, index: int) -> None:
        """kill -9"""
        shard, self.shards[index] = self.shards[index], None
        if shard is not None:
            self.tell(f"shard {index} is killed")
            self.counts["kills"] += 1
            self.deaths.append(self.step)
            close_all(self.network, self.doors[index], shard.poller)

    def image(self, index: int) -> dict[str, bytes]:
        """The files of a shard as they are now, by path."""
        return {path: self.files.content(path) for path in self._paths_of(index)}

    def set_back(self, index: int, image: dict[str, bytes]) -> None:
        """The shard, which is dead, has its files as they were."""
        self.tell(f"shard {index} is set back")
        for path in set(self._paths_of(index)) - set(image):
            self.files.remove(path)
        for path, content in image.items():
            self.files.put(path, content)

    def _paths_of(self, index: int) -> list[str]:
        mine = [f"main/g1/p{n}" for n in range(index, self.build.partitions, self.build.shards)]
        folders = [f"data/{each}" for each in [*mine, f"_state/g1/p{index}"]]
        return [f"{folder}/{name}" for folder in folders for name in self.files.names(folder)]

    def kill_inside(self, index: int, calls: int) -> None:
        """kill -9 before so many more calls that change the disk."""
        shard = self.shards[index]
        if shard is None:
            return
        left = calls

        def before_call() -> None:
            nonlocal left
            if not left:
                raise Killed
            left -= 1

        self.tell(f"shard {index} will be killed after {calls} calls of the disk")
        shard.files.before_call = before_call

    def lose_power(self) -> None:
        self.tell("power loss")
        self.counts["power losses"] += 1
        for index in range(len(self.shards)):
            self.kill(index)
        for door in self.doors:
            for _, stream, *_ in door.waiting:
                stream.close()
        self._boot(self.files.after_power_loss(self.random.randrange))

    # What goes on

    def run(self, steps: int) -> None:
        """So many things happen, one after the other, whichever they are."""
        for _ in range(steps):
            self.step += 1
            self.pass_time(STEP_SECONDS * self.random.random())
            able = self._able()
            if able:
                self._go_on(able[self.random.randrange(len(able))])

    def pass_time(self, seconds: float) -> None:
        self.monotonic += seconds
        self.now_us += round(seconds * 1e6)

    def _able(self) -> list[Any]:
        able: list[Any] = list(self.network.moving)
        for shard in self.shards:
            if shard is not None:
                if shard.is_busy or shard.poller.told or shard.due <= self.monotonic:
                    able.append(shard)
                able += [worker for worker in shard.workers if worker.jobs]
        if self.frozen:
            self.frozen = {what: until for what, until in self.frozen.items() if until > self.step}
            able = [what for what in able if what not in self.frozen]
        return able

    def _go_on(self, what: Any) -> None:
        if type(what) is Stream:
            size = len(what.coming)
            if size > 1 and self.random.random() < 0.2:
                size = self.random.randrange(1, size)
            self.counts["deliveries"] += 1
            what.arrive(size)
            return
        shard = what if type(what) is Shard else self._shard_of(what)
        try:
            if type(what) is Worker:
                what.run()
            else:
                what.turn()
        except Killed:
            self.counts["kills inside"] += 1
            self.kill(shard.index)

    def _shard_of(self, worker: Worker) -> Shard:
        return next(shard for shard in self.shards if shard is not None and worker in shard.workers)

    def freeze(self, what: Any, steps: int) -> None:
        """Nothing happens there for a while."""
        self.counts["delays"] += 1
        self.frozen[what] = self.step + steps

    def settle(self, *, for_long: bool = False) -> None:
        """Let everything go on, all shards up, until nothing more comes of it. raises: Restless"""
        self.frozen = {}
        rest = LONG_REST_SECONDS if for_long else REST_SECONDS
        quiet = rounds = 0
        while quiet < len(rest):
            rounds += 1
            if rounds > ROUNDS_MAX:
                raise Restless("the machine does not come to rest")
            for index, shard in enumerate(self.shards):
                if shard is None:
                    self.start(index)
            moved = self._drain()
            quiet = 0 if moved or not all(shard and shard.is_ready for shard in self.shards) else quiet + 1
            if quiet < len(rest):
                self.pass_time(rest[quiet])

    def _drain(self) -> bool:
        """Everything that can go on now does; whether anything was sent."""
        moved = False
        for _ in range(ROUNDS_MAX):
            able = self._able()
            if not able:
                return moved
            for what in able:
                if type(what) is Stream:
                    if what in self.network.moving:
                        moved = True
                        what.arrive(len(what.coming))
                elif type(what) is Worker:
                    if what.jobs and any(s is not None and what in s.workers for s in self.shards):
                        self._go_on(what)
                elif what in self.shards:
                    self._go_on(what)
        raise Restless("the machine does not come to rest")


def fault_of(fields: dict[str, Any]) -> BaseException | None:
    import sys

    return sys.exc_info()[1] if fields.get("exc_info") else None
