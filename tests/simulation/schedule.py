"""One schedule: a broker of some shards, clients, and what befalls them, all drawn from one seed.

`run(seed)` plays it to its end and lets the model judge. What differs between schedules is drawn first (`Mood`), so
that some are calm and are judged strictly, and some are rough."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from random import Random
from traceback import format_exception
from typing import NamedTuple

from rumq.net.client_placement import home_of
from tests.simulation.client import Client
from tests.simulation.history import History
from tests.simulation.machine import Build, Machine, Restless
from tests.simulation.model import Broken, judge

TOPICS = ("a", "a/b", "c", "d/e")
FILTERS = ("a", "a/b", "a/#", "+", "#", "c", "d/+", "d/e")
PACK_BYTES_PER_SECOND = 1 << 30
SHARES = ("$share/g/#", "$share/g/a", "$share/h/d/+")


class Kind(NamedTuple):
    """Of a schedule. is_late: shards begin while others are missing; packs: segments are small, and are packed"""

    is_late: bool = False
    packs: bool = False


PLAIN = Kind()


class Wrong(AssertionError):
    """A schedule showed something that no broker may do. seed, kind: show it again"""

    def __init__(self, seed: int, why: str, kind: Kind) -> None:
        super().__init__(seed, why, kind)
        self.seed, self.why, self.kind = seed, why, kind

    def __str__(self) -> str:
        flags = f"{' --late' if self.kind.is_late else ''}{' --packs' if self.kind.packs else ''}"
        again = f"python -m tests.simulation{flags} --seed {self.seed}"
        return f"seed {self.seed}: {self.why}\n  again, step by step: {again}"


@dataclass
class Mood:
    """How often something befalls the broker, out of 100 events; what clients do."""

    kill: int = 0
    kill_inside: int = 0
    power: int = 0
    delay: int = 6
    restart: float = 0.2  # how likely a dead shard is started before an event
    cut: int = 0
    take_over: int = 0
    wills: bool = False
    shares: bool = False
    retained: bool = False
    topics: tuple[str, ...] = TOPICS
    counts: Counter[str] = field(default_factory=Counter)


def drawn(random: Random) -> tuple[Build, Mood, int]:
    """What the broker is made of, how rough it gets, and how many events there are."""
    shards = 2 if random.random() < 0.6 else 3
    durability = "disk" if random.random() < 0.7 else "process"
    build = Build(
        shards, random.choice((1, shards, shards)), durability, random.choice((0.0, 0.005)),
        random.choice((0, 1 << 20)), random.choice((1 << 18, 1 << 18, 2000)), random.choice((1 << 20, 4096)),
    )  # fmt: skip
    mood = Mood()
    if random.random() < 0.6:
        mood.kill = random.choice((2, 5))
        mood.kill_inside = random.choice((0, 5))
        mood.power = 2 if durability == "disk" and random.random() < 0.3 else 0
    if random.random() < 0.6:
        mood.cut = random.choice((3, 8))
    if random.random() < 0.5:
        mood.take_over = 5
    mood.wills = random.random() < 0.4
    mood.shares = random.random() < 0.4
    mood.retained = random.random() < 0.5
    mood.topics = TOPICS[: random.choice((1, 2, 4))]
    return build, mood, random.randrange(25, 50)


def drawn_late(random: Random) -> tuple[Build, Mood, int]:
    """As `drawn`: shards die often, are away for long, and begin without each other."""
    build, mood, events = drawn(random)
    build = replace(build, shards=3, partitions=3, missing_seconds=random.choice((0.0, 0.01, 0.1)))
    mood.kill, mood.cut, mood.restart = 8, 8, random.choice((0.05, 0.1))
    return build, mood, events + 30


def packing(build: Build) -> Build:
    """Of segments that end after a few groups, in which most chunks are small."""
    size = 24_576 if build.durability == "disk" else 8_192
    return replace(build, segment_bytes_max=size, pack_bytes_per_second=PACK_BYTES_PER_SECOND)


class Schedule:
    def __init__(self, seed: int, trace: Callable[[str], None] | None, kind: Kind) -> None:
        self.seed = seed
        self.random = random = Random(seed)
        self._is_late = kind.is_late
        build, self.mood, self.events = drawn_late(random) if kind.is_late else drawn(random)
        build = packing(build) if kind.packs else build
        self.machine = Machine(build, random, trace)
        self.history = History()
        self.history.crashes = self.machine.deaths
        self.machine.tell(f"seed {seed}: {build}, {self.mood}, {self.events} events")
        self.clients = [self._client(number) for number in range(random.randrange(3, 7))]
        self._connections = 0
        self._acts = self._weighed()

    def _client(self, number: int, *, witness: bool = False) -> Client:
        random = self.random
        home = random.randrange(self.machine.build.shards)
        some = 0
        while home_of(client_id := f"{'w' if witness else 'c'}{number}.{some}", self.machine.build.shards) != home:
            some += 1
        if witness:
            return Client(client_id, 5, self.history, self.machine.tell, clean=True, lazy=False, window=0)
        return Client(
            client_id, random.choice((4, 5, 5)), self.history, self.machine.tell, clean=random.random() < 0.35,
            lazy=random.random() < 0.2, window=random.choice((0, 0, 1, 3)),
            aliases_max=2 if number % 3 == 1 else 0, has_few_ids=self._is_late,
        )  # fmt: skip

    # What may happen

    def _weighed(self) -> list[tuple[int, str]]:
        mood = self.mood
        return [
            (40, "publish"), (14, "subscribe"), (2, "unsubscribe"), (2, "disconnect"), (3, "catch_up"),
            (mood.cut, "cut"), (mood.take_over, "take_over"), (mood.delay, "delay"), (mood.kill, "kill"),
            (mood.kill_inside, "kill_inside"), (mood.power, "power"), (3, "wait"),
        ]  # fmt: skip

    def play(self) -> None:
        """raises: AssertionError"""
        random, machine = self.random, self.machine
        machine.settle()
        weights = [weight for weight, _ in self._acts]
        for _ in range(self.events):
            self._now()
            for index, shard in enumerate(machine.shards):
                if shard is None and random.random() < self.mood.restart:
                    machine.start(index)
            client = random.choice(self.clients)
            if client.stream is None:
                self._connect(client)
            elif client.is_up:
                _, act = random.choices(self._acts, weights)[0]
                getattr(self, f"_{act}")(client)
            machine.run(random.choice((0, 1, 2, 4, 8, 16)))
        self._end()

    def _now(self) -> None:
        self.history.step = self.machine.step = self.machine.step + 1

    def _connect(self, client: Client) -> None:
        """By way of any shard that is there; the client's home may be another one."""
        random, machine = self.random, self.machine
        doors = [shard for shard in machine.shards if shard is not None and shard.is_ready]
        if not doors:
            return
        shard = random.choice(doors)
        ours, theirs = machine.network.pair(client.client_id, "accepted")
        theirs.capacity = 1 << 20
        self._connections += 1
        if client.said_goodbye is not None:
            # Its DISCONNECT is on its way still: it may be taken over before it is heard.
            stream, last = client.said_goodbye
            last.was_heard = stream.other.closed
            client.said_goodbye = None
        will, delay = None, 0.0
        if self.mood.wills and client in self.clients and random.random() < 0.5:
            delay = random.choice((0.0, 0.0, 1.0)) if client.version == 5 and not client.clean else 0.0
            will = self.history.message(
                client.client_id, self._connections, random.choice(self.mood.topics), random.choice((1, 2)),
                retain=self.mood.retained and random.random() < 0.3, is_will=True,
            )  # fmt: skip
        clean_start = client.clean or (client.version == 5 and random.random() < 0.05)
        machine.counts["connections"] += 1
        machine.tell(f"{client.client_id} connects through shard {shard.index}, will {will}")
        client.connect(ours, self._connections, clean_start=clean_start, will=will, delay=delay)
        shard.accept(theirs, client.client_id)

    def _publish(self, client: Client) -> None:
        random = self.random
        topic = random.choice(self.mood.topics)
        retain = self.mood.retained and random.random() < 0.4
        client.publish(topic, random.choice((0, 1, 1, 2)), retain=retain)
        self.machine.counts["publishes"] += 1

    def _subscribe(self, client: Client) -> None:
        random = self.random
        topic_filter = random.choice(SHARES if self.mood.shares and random.random() < 0.5 else FILTERS)
        if any(wish.topic_filter == topic_filter for wish in client.wishes()):
            return
        share = topic_filter.startswith("$share/")
        client.subscribe(
            topic_filter, random.choice((0, 1, 1, 2)), no_local=not share and random.random() < 0.1,
            as_published=random.random() < 0.3, handling=random.choice((0, 0, 1, 2)),
        )  # fmt: skip
        self.machine.counts["subscriptions"] += 1

    def _unsubscribe(self, client: Client) -> None:
        wishes = [wish for wish in client.wishes() if wish.granted is not None]
        if wishes:
            self.machine.counts["unsubscriptions"] += 1
            client.unsubscribe(self.random.choice(wishes))

    def _disconnect(self, client: Client) -> None:
        self.machine.counts["disconnects"] += 1
        client.disconnect()

    def _catch_up(self, client: Client) -> None:
        client.catch_up()

    def _cut(self, client: Client) -> None:
        self.machine.counts["cuts"] += 1
        self.machine.tell(f"{client.client_id} is cut off")
        client.cut()

    def _take_over(self, client: Client) -> None:
        self.machine.counts["takeovers"] += 1
        self._connect(client)

    def _delay(self, client: Client) -> None:
        able = [*self.machine.network.moving, *filter(None, self.machine.shards)]
        what = self.random.choice(able)
        self.machine.freeze(what, self.random.randrange(5, 60))

    def _wait(self, client: Client) -> None:
        self.machine.pass_time(self.random.choice((0.01, 0.1, 2.0)))

    def _kill(self, client: Client) -> None:
        self.machine.kill(self.random.randrange(len(self.machine.shards)))

    def _kill_inside(self, client: Client) -> None:
        self.machine.kill_inside(self.random.randrange(len(self.machine.shards)), self.random.randrange(8))

    def _power(self, client: Client) -> None:
        self.machine.lose_power()

    # The end

    def _end(self) -> None:
        """Everybody comes back and takes everything; then a witness reads the whole log, and what is retained."""
        machine = self.machine
        machine.tell("the end begins")
        for shard in machine.shards:
            if shard is not None:
                shard.files.before_call = None
        for number in range(3):
            self._now()
            machine.settle(for_long=number == 1)
            self._now()
            for client in self.clients:
                client.lazy = False
                if client.stream is None:
                    self._connect(client)
                elif client.is_up:
                    client.catch_up()
        machine.settle()
        self._now()
        witness = self._client(0, witness=True)
        self._connect(witness)
        machine.settle()
        witness.subscribe("$log/earliest/#", 0, as_published=True)
        machine.settle()
        log = list(witness.session.deliveries) if witness.session is not None else []
        self._now()
        late = self._client(1, witness=True)
        self._connect(late)
        machine.settle()
        late.subscribe("#", 0)
        machine.settle()
        retained = {d.topic: d.message for d in late.session.deliveries} if late.session is not None else {}
        for client in self.clients:
            if not client.is_up:
                self.history.faults.append(f"{client.client_id} cannot come back")
            for stream, connection in client.given_up:
                if not stream.ended:
                    self.history.faults.append(f"{client.client_id} has connection {connection.number} still")
        judge(self.history, log, retained, machine.build.shards)


def run(seed: int, trace: Callable[[str], None] | None = None, kind: Kind = PLAIN) -> Counter[str]:
    """Play the schedule of a seed; what happened in it, counted. raises: Wrong"""
    schedule = Schedule(seed, trace, kind)
    try:
        schedule.play()
    except (Broken, Restless) as fault:
        raise Wrong(seed, f"{type(fault).__name__}: {fault}", kind) from None
    except Exception as fault:
        raise Wrong(seed, "".join(format_exception(fault)), kind) from None
    return schedule.machine.counts
