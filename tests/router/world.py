"""A router with a real log under it and clients that only count: what the driver does, with nothing of MQTT.

A client takes a message for each credit it has; what it does not take is `Blocked`, as `delivery_window` says it.
Reads from disk and searches wait until the test answers them."""

from __future__ import annotations

from collections import defaultdict, deque
from typing import Any

from commitlog import LogError
from commitlog.chunk import FLAG_QOS, FLAG_RETAIN
from commitlog.testing.simulated_files import SimulatedFiles
from router import commands as c
from router.effects import (
    CatchUpPaused,
    Deliver,
    FindStart,
    Merged,
    ReadCold,
    RecordsLost,
    ReplayStarted,
    Scatter,
)
from router.readers.reader import Reader
from router.readers.subscriber import Subscriber
from router.readers.subscription import DeliveryOptions, Subscription
from router.shard import ShardRouter
from tests.commitlog.records import NOW, frame, opened, write

UNLIMITED = 1 << 30


class Client:
    """got[reader's key][topic]: (partition, lsn) in the order they came. forms: of each of them."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.subscriber = Subscriber(name, shape=5)
        self.credit = UNLIMITED
        self.here = False
        self.got: dict[str, dict[str, list[tuple[int, int]]]] = defaultdict(lambda: defaultdict(list))
        self.forms: list[DeliveryOptions] = []

    def kind_of(self, reader: Reader) -> str:
        if reader.share is not None:
            return reader.share.key
        return "replay" if reader.group.wants.committed_only else "live"


class World:
    """partitions: of the one stream; hot: bytes kept in memory, 0 has nearly everything read from disk"""

    def __init__(self, partitions: int = 1, hot: int = 0) -> None:
        self.store = opened(SimulatedFiles(), durability="process", partitions=partitions, hot=hot)
        self.shard = ShardRouter(self.store.partitions)
        self.clients: dict[Subscriber, Client] = {}
        self.cold: deque[ReadCold] = deque()
        self.searches: deque[FindStart] = deque()
        self.more: deque[Reader] = deque()
        self.gone: list[RecordsLost] = []
        self.retained: list[Any] = []
        self.now = NOW

    def client(self, name: str) -> Client:
        client = Client(name)
        self.clients[client.subscriber] = client
        return client

    # Commands

    def do(self, *commands: c.Command) -> None:
        """Step until nothing more follows, as the driver does within a turn."""
        waiting = list(commands)
        while waiting:
            effects = self.shard.step(waiting)
            waiting = []
            for effect in effects:
                self._carry_out(effect, waiting)

    def publish(self, topics: list[str], *, qos: int, retain: bool = False) -> list[tuple[int, int]]:
        """One turn's messages, one chunk a partition; returns the place of each."""
        batches: dict[int, list[str]] = defaultdict(list)
        for topic in topics:
            batches[self.store.place(topic)].append(topic)
        places: dict[str, deque[tuple[int, int]]] = defaultdict(deque)
        commands = []
        for index, names in batches.items():
            partition = self.store.partitions[index]
            rows, frames = bytearray(), b""
            for at, name in enumerate(names):
                topic_id = partition.topic_ids.get(name.encode())
                if topic_id is None:
                    topic_id = partition.add_topic(name.encode())
                packet = frame(name.encode(), b"x")
                row = bytearray(32)
                row[0:4], row[4:8] = topic_id.to_bytes(4, "little"), len(frames).to_bytes(4, "little")
                row[20:24] = (len(packet) - 1).to_bytes(4, "little")
                row[28] = qos | 4 * retain
                rows += row
                frames += packet
                places[name].append((index, partition.next_lsn + at))
            flags = FLAG_QOS * (qos > 0) | FLAG_RETAIN * retain
            commands.append(c.Appended(index, partition.append(rows, frames, len(names), flags, self.now)))
        self.do(*commands)
        return [places[topic].popleft() for topic in topics]

    def commit(self) -> None:
        for partition in self.store.partitions:
            if not write(partition):
                raise LogError("the simulated disk failed")
            self.do(c.Committed(partition.index, partition.committed_lsn))

    def attach(self, client: Client) -> None:
        client.here = True
        self.do(c.Attach(client.subscriber, client))

    def detach(self, client: Client) -> None:
        client.here = False
        self.do(c.Detach(client.subscriber))

    def subscribe(self, client: Client, topic_filter: str, *, retained: bool = False, **options: Any) -> None:
        self.do(c.AddSubscription(client.subscriber, Subscription(topic_filter, **options), retained))

    def replay(self, client: Client, topic_filter: str, start: str | tuple[str, int] = "earliest") -> None:
        asked = f"$log/x/{topic_filter}"
        self.do(c.Replay(client.subscriber, asked, Subscription(topic_filter, 1), start))

    def share(self, client: Client, name: str, topic_filter: str) -> None:
        asked = f"$share/{name}/{topic_filter}"
        self.do(c.JoinShare(client.subscriber, asked, Subscription(topic_filter, 1)))

    # What waits

    def answer_cold(self) -> None:
        effect = self.cold.popleft()
        chunks = self.store.partitions[effect.partition].cold_read(effect.lsn, 200).run()
        self.do(c.ColdChunks(effect.partition, effect.lsn, list(chunks)))

    def answer_search(self) -> None:
        effect = self.searches.popleft()
        partitions = self.store.partitions
        if effect.topic is not None and effect.offset is not None:
            where = self.store.place(effect.topic.decode())
            found = {where: partitions[where].find_offset(effect.topic, effect.offset).run()}
        else:
            assert effect.ts_us is not None
            found = {p.index: p.find_time(effect.ts_us).run() for p in partitions}
        self.do(c.StartFound(effect.reader, found))

    def answer_more(self) -> None:
        reader = self.more.popleft()
        share = reader.share
        readers = [reader] if share is None else [member.reader for member in share.members.values()]
        for client in self.clients.values():
            mine = [*client.subscriber.readers()]
            mine += [s.members[client.subscriber].reader for s in client.subscriber.shares.values()]
            if client.here and any(r in readers for r in mine):
                self.do(c.Ready(client.subscriber))

    def settle(self) -> None:
        """Everything is committed, everybody here takes everything, nothing waits any more."""
        self.commit()
        for client in self.clients.values():
            client.credit = UNLIMITED
            if client.here:
                self.do(c.Ready(client.subscriber))
        for _ in range(10_000):
            if self.cold:
                self.answer_cold()
            elif self.searches:
                self.answer_search()
            elif self.more:
                self.answer_more()
            else:
                return
        raise AssertionError("the router asks for ever")

    # Effects

    def _carry_out(self, effect: Any, waiting: list[c.Command]) -> None:
        if isinstance(effect, Scatter):
            for part in effect.parts:
                self._carry_out(effect.as_delivery(part), waiting)
        elif isinstance(effect, Deliver):
            for reader in effect.readers:
                if reader.sink is not None:
                    self._offer(effect, reader, waiting)
        elif isinstance(effect, ReadCold):
            self.cold.append(effect)
        elif isinstance(effect, FindStart):
            self.searches.append(effect)
        elif isinstance(effect, CatchUpPaused):
            self.more.append(effect.reader)
        elif isinstance(effect, RecordsLost):
            self.gone.append(effect)
        elif not isinstance(effect, Merged | ReplayStarted):
            self.retained.append(effect)

    def _offer(self, effect: Deliver, reader: Reader, waiting: list[c.Command]) -> None:
        client = reader.sink
        assert isinstance(client, Client) and client.here, "nothing goes to who is not there"
        words = memoryview(effect.chunk.rows).cast("I")
        feed = self.shard.feeds[effect.partition]
        for row in range(effect.first, effect.stop):
            topic_id = words[row * 8]
            form = form_of(effect, row)
            if not form:
                continue
            lsn = effect.chunk.base_lsn + row
            assert lsn < feed.mark(reader.group.wants.committed_only), "nothing is shown before its mark"
            if client.credit == 0:
                waiting.append(c.Blocked(reader, effect.partition, lsn))
                return
            client.credit -= 1
            client.forms.append(effect.group.forms[form - 1])
            topic = feed.partition.topic_names[topic_id].decode()
            client.got[client.kind_of(reader)][topic].append((effect.partition, lsn))


def form_of(effect: Deliver, row: int) -> int:
    """The number of the form in which a row is delivered, plus 1; 0: it is not."""
    if effect.wanted is None:
        return effect.form + 1
    return effect.wanted[effect.places[row] if effect.places is not None else 0]
