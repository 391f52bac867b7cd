"""Plays a transcript: each line that begins with ">" is told to a router's `step`, and each effect becomes a line.

    A claim in words, up to the first empty line. "With ..." in a line of its own says what the router is given.

    > ann comes                     her session has a client (it leaves with "leaves"; "ends without p0:0" it had not
                                  acknowledged that)
    > ann subscribes a/+ qos 1      and: no-local, as-published, id 7, with retained
    > ann replays a/+ from earliest
    > ann shares g a/+ qos 1
    > publish a/1 a/2 qos 1 retain  one batch of one turn, a message for each topic
    > commit                        everything so far is safe
    > ann takes nothing from p0:3   her reader had no room for it, nor for what follows
    > ann is ready
    > read p0:0                     what was asked of the disk, or of another shard
    > shard 2 comes               and: wants a/+, wants a/+ no more, has 2 members of $share/g/a,
                                  gives back $share/g/a p0:0-2, has done $share/g/a p0:0-2
    > p1 arrives 5 a/1 a/2          records of another shard's partition, from lsn 5 on
    > p1 moves live 7 committed 6

Several commands, with ";" between them, are one step; after "70 times: " each is one."""

import re
from itertools import pairwise
from typing import Any

from commitlog import Chunk, NotInMemory
from commitlog.chunk import FLAG_QOS, FLAG_RETAIN
from commitlog.testing.simulated_files import SimulatedFiles
from router import commands as c
from router.readers.reader import Reader
from router.readers.subscriber import Subscriber
from router.readers.subscription import Subscription
from router.shard import ShardRouter
from tests.commitlog.records import NOW, frame, opened, write
from tests.scenarios.teller import Teller

ROW_RETAIN = 4
PLACE = re.compile(r"p(\d+):(\d+)(?:-(\d+))?")


class Elsewhere:
    """A partition of another shard, of which this one knows what it is told."""

    is_mirrored = True
    stream, generation = "main", 1
    next_lsn = first_lsn = 0

    def __init__(self, number: int) -> None:
        self.index = self.number = number
        self.topic_names: list[bytes] = []

    def topic(self, name: bytes) -> int:
        if name not in self.topic_names:
            self.topic_names.append(name)
        return self.topic_names.index(name)

    def read(self, lsn: int, bytes_max: int = 1) -> list[Any]:
        raise NotInMemory(lsn)


class Sink:
    def __init__(self, name: str) -> None:
        self.name = name


class Player:
    def __init__(self, given: str) -> None:
        """given: what the router is given, in words"""
        found = re.search(r"(\d+) partitions", given)
        count = int(found[1]) if found else 1
        hot = 0 if "nothing in memory" in given else 1 << 20
        self.store = opened(SimulatedFiles(), durability="process", partitions=count, hot=hot)
        self.partitions: list[Any] = list(self.store.partitions)
        for number in map(int, re.findall(r"p(\d+) of another shard", given)):
            self.partitions[number] = Elsewhere(number)
        away = re.findall(r"the home of (\S+) elsewhere", given)
        self.shard = ShardRouter(self.partitions, is_home=lambda key: key not in away)
        self.subscribers: dict[str, Subscriber] = {}
        self._teller = Teller(self.partitions, self.subscribers)
        self._committed = [0] * count
        self._former: dict[tuple[str, str], Reader] = {}  # of members of a share that have left: name, filter

    def step(self, line: str) -> list[str]:
        """The effects of one step, in words."""
        many = re.match(r"(\d+) times: ", line)
        if many is not None:
            return [
                told for _ in range(int(many[1])) for one in line[many.end() :].split(";") for told in self.step(one)
            ]
        commands: list[Any] = []
        for one in line.split(";"):
            commands += self._commands(one.split())
        return [self._teller.told(effect) for effect in self.shard.step(commands)]

    # Commands

    def _commands(self, words: list[str]) -> list[Any]:
        first, *rest = words
        if first == "publish":
            return self._publish(rest)
        if first == "commit":
            return self._commit()
        if first == "read":
            return [self._read(rest)]
        if first == "shard":
            return self._of_shard(f"shard {rest[0]}", rest[1:])
        if rest[0] == "arrives":
            return [self._arrived(int(first[1:]), int(rest[1]), rest[2:])]
        if rest[0] == "moves":
            return [c.RemoteWatermark(int(first[1:]), int(rest[2]), int(rest[4]))]
        return [self._of_client(first, rest)]

    def _of_client(self, name: str, words: list[str]) -> Any:
        who = self.subscribers.setdefault(name, Subscriber(name, 5))
        verb, *rest = words
        if verb == "comes":
            return c.Attach(who, Sink(name))
        if verb == "leaves":
            return c.Detach(who)
        if verb == "ends":
            unacknowledged = [(s.members[who].reader.number, part, lsn) for s in who.shares.values()
                              for part, lsn, _ in places(rest)]  # fmt: skip
            for asked, share in who.shares.items():
                self._former[name, asked] = share.members[who].reader
            return c.End(who, unacknowledged)
        if verb == "is":
            return c.Ready(who)
        if verb == "subscribes":
            return c.AddSubscription(who, subscription(rest[0], rest[1:]), "retained" in rest)
        if verb == "unsubscribes":
            return c.RemoveSubscription(who, rest[0])
        if verb == "replays":
            start: Any = rest[2] if rest[2] != "offset" else ("offset", int(rest[3]))
            return c.Replay(who, f"$log/{rest[2]}/{rest[0]}", subscription(rest[0], ["qos", "1"]), start)
        if verb == "shares":
            self._former.pop((name, f"$share/{rest[0]}/{rest[1]}"), None)
            return c.JoinShare(who, f"$share/{rest[0]}/{rest[1]}", subscription(rest[1], rest[2:]))
        if verb == "finds":
            lsns = {part: lsn for part, lsn, _ in places(rest)}
            for feed in self.shard.feeds:  # as the driver does: the replay may want what was left out
                if feed.partition.is_mirrored:
                    feed.drop_cached()
            return c.StartFound(who.replays[rest[0]], lsns)
        assert verb == "takes", words
        ((part, lsn, _),) = places(rest)
        former = self._former.get((name, rest[-1]))
        return c.Blocked(former or self._reader(who, rest[-1]), part, lsn)

    @staticmethod
    def _reader(who: Subscriber, asked: str) -> Reader:
        if asked in who.shares:
            return who.shares[asked].members[who].reader
        reader = who.replays.get(asked) or who.late.get(asked) or who.main
        assert reader is not None
        return reader

    def _publish(self, words: list[str]) -> list[Any]:
        topics, qos, retain = [], 0, False
        while words:
            word = words.pop(0)
            if word == "qos":
                qos = int(words.pop(0))
            elif word == "retain":
                retain = True
            else:
                topics.append(word)
        batches: dict[int, list[str]] = {}
        for topic in topics:
            batches.setdefault(self.store.place(topic), []).append(topic)
        commands = []
        for index, names in batches.items():
            partition = self.partitions[index]
            ids = []
            for name in map(str.encode, names):
                known = partition.topic_ids.get(name)
                ids.append(partition.add_topic(name) if known is None else known)
            rows, frames = records(names, ids, qos, retain)
            chunk = partition.append(rows, frames, len(names), flags(qos, retain), NOW)
            commands.append(c.Appended(index, chunk))
        return commands

    def _commit(self) -> list[Any]:
        moved = []
        for partition in self.store.partitions:
            if self.partitions[partition.index] is partition and write(partition):
                if partition.committed_lsn > self._committed[partition.index]:
                    moved.append(c.Committed(partition.index, partition.committed_lsn))
                self._committed[partition.index] = partition.committed_lsn
        return moved

    def _read(self, words: list[str]) -> Any:
        ((part, lsn, _),) = places(words)
        if isinstance(self.partitions[part], Elsewhere):
            return c.ColdChunks(part, lsn, [self._chunk(part, lsn, words[1:])])
        return c.ColdChunks(part, lsn, list(self.partitions[part].cold_read(lsn, 1 << 16).run()[:8]))

    def _chunk(self, part: int, lsn: int, names: list[str]) -> Chunk:
        ids = [self.partitions[part].topic(name.encode()) for name in names]
        rows, frames = records(names, ids, 1, False)
        return Chunk(lsn, len(names), NOW, FLAG_QOS, bytes(rows), frames)

    def _arrived(self, part: int, lsn: int, names: list[str]) -> Any:
        return c.RemoteChunk(part, self._chunk(part, lsn, names))

    def _of_shard(self, name: str, words: list[str]) -> list[Any]:
        who = self.subscribers.setdefault(name, Subscriber(name, None, is_shard=True))
        verb, *rest = words
        if verb == "comes":
            own = [p.index for p in self.partitions if not p.is_mirrored]
            return [c.Attach(who, Sink(name)), c.SubscribeShard(who, [], own, dict.fromkeys(own, 0))]
        if verb == "wants":
            return [(c.NoInterest if rest[1:] else lambda s, f: c.SubscribeShard(s, f, []))(who, rest[:1])]
        sharer = self.subscribers.setdefault(f"{name} shares", Subscriber(name, None, is_shard=True))
        sharer.sink = sharer.sink or Sink(name)
        if verb == "has" and rest[0] != "done":
            weight, key = int(rest[0]), rest[-1]
            return [c.ShareNews(sharer, "weight", key, key.split("/", 2)[2], weight, [])]
        if verb == "dies":
            return [c.ShareAway(sharer)]
        if verb == "returns":
            members = {key: (key.split("/", 2)[2], 1) for key in rest if key.startswith("$share/")}
            return [c.ShareMembers(sharer, Sink(name), members, {}, True)]
        if verb == "hands":  # the home, to us
            return [c.SharePart(rest[0], places(rest))]
        what = {"gives": "back", "refuses": "early", "has": "done", "is": "ready"}[verb]
        key = next(word for word in rest if word.startswith("$share/"))
        return [c.ShareNews(sharer, what, key, "", 0, places(rest))]


def subscription(topic_filter: str, words: list[str]) -> Subscription:
    after = dict(pairwise(words))
    return Subscription(
        topic_filter,
        int(after.get("qos", 0)),
        "no-local" in words,
        "as-published" in words,
        int(after.get("id", 0)),
    )


def places(words: list[str]) -> list[tuple[int, int, int]]:
    found = [PLACE.fullmatch(word.rstrip(",")) for word in words]
    return [(int(m[1]), int(m[2]), int(m[3] or 0)) for m in found if m is not None]


def records(names: list[str], ids: list[int], qos: int, retain: bool) -> tuple[bytearray, bytes]:
    rows, frames = bytearray(), b""
    for name, topic_id in zip(names, ids, strict=True):
        packet = frame(name.encode(), b"x")
        row = bytearray(32)
        row[0:4], row[4:8] = topic_id.to_bytes(4, "little"), len(frames).to_bytes(4, "little")
        row[20:24] = (len(packet) - 1).to_bytes(4, "little")
        row[28] = qos | ROW_RETAIN * retain
        rows += row
        frames += packet
    return rows, frames


def flags(qos: int, retain: bool) -> int:
    return FLAG_QOS * (qos > 0) | FLAG_RETAIN * retain
