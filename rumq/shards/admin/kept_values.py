"""Values that other processes of this node have the session journal keep: what Kafka's consumer groups have committed,
and which sessions of bridges are new.

The journal is replicated, and read by the next leader before anybody is served, so what was answered here is there. A
value is answered once the journal is committed up to it. Of those who ask only the last one that has taken the values
over is heard: docs/decisions/0073-kafka-groups-follow-shard-0.md. Each kind of values has holders of its own. It knows
nothing of what the values mean."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import NamedTuple

import msgspec

from rumq.admin.socket.kept_values import (
    PAGE_BYTES_MAX,
    AnyQuestion,
    Confirm,
    KeepValues,
    KeptQuestion,
    KeptReply,
    OfBridges,
    ReadPage,
    TakeOver,
)
from rumq.loop.read_gate import ReadGate
from rumq.session.journal.entries import KeptValue
from rumq.shards.admin.listings.listings import Answer, Done
from rumq.shards.admin.queries.parts import AdminLoop
from rumq.shards.recovery.journal_writer import JournalWriter
from rumq.shards.write_path.group_commit import GroupCommit

WRITTEN_SECONDS_MAX = 5.0  # less than whoever asks waits
NOT_RECOVERED = "the shard has not recovered yet: ask again in a moment"
NOT_WRITTEN = f"it is not committed after {WRITTEN_SECONDS_MAX:g} s, and may be yet"
TAKEN_OVER = "another process has taken the values over"
RESERVED = "a name is the shard's own, or of another kind"
Later = Callable[[Done], None]


class ValueKind(NamedTuple):
    """prefix: of the names in the journal; holders: the name under which is kept how many holders there have been"""

    prefix: bytes
    holders: bytes


KAFKA = ValueKind(b"", b"holders")  # names of Kafka's are MessagePack arrays, and begin otherwise than all others
BRIDGES = ValueKind(b"bridges/", b"bridges")
KINDS = (KAFKA, BRIDGES)


def kind_of(name: bytes) -> ValueKind:
    """name: as in the journal"""
    return BRIDGES if name.startswith(BRIDGES.prefix) else KAFKA


def is_of(kind: ValueKind, name: bytes) -> bool:
    """Whether holders of this kind may write it. name: as they call it"""
    kept_as = kind.prefix + name
    return kind_of(kept_as) is kind and all(kept_as != each.holders for each in KINDS)


class KeptValues:
    """values: as they are written, perhaps not committed yet: a snapshot of the journal has no older ones"""

    def __init__(self, loop: AdminLoop, journal: JournalWriter, commit: GroupCommit, reads: ReadGate) -> None:
        """reads: is open while no other leader can have taken office"""
        self._loop, self._journal, self._commit, self._reads = loop, journal, commit, reads
        self.values: dict[bytes, bytes] = {}
        self._holders = dict.fromkeys(KINDS, 0)  # who holds them in this run; 0: nobody
        self._unwritten: list[tuple[list[KeptValue], Callable[[str], None]]] = []

    def answer(self, question: Answer) -> Later:
        """question: an `AnyQuestion` as JSON has it. raises: ValueError"""
        asked: AnyQuestion = msgspec.convert(question, AnyQuestion)
        if isinstance(asked, OfBridges):
            return partial(self._answer, BRIDGES, asked.asked)
        return partial(self._answer, KAFKA, asked)

    def _answer(self, kind: ValueKind, asked: KeptQuestion, done: Done) -> None:
        if not self._loop.lifecycle.is_restored:
            reply(done, KeptReply(NOT_RECOVERED))
        elif isinstance(asked, TakeOver):
            self._take_over(kind, done)
        elif not self._holders[kind] or asked.holder != self._holders[kind]:
            reply(done, KeptReply(TAKEN_OVER))
        elif isinstance(asked, ReadPage):
            reply(done, self._page(kind, asked))
        elif isinstance(asked, KeepValues) and not all(is_of(kind, name) for name, _ in asked.values):
            reply(done, KeptReply(RESERVED))
        elif isinstance(asked, KeepValues):
            values = [KeptValue(kind.prefix + name, value) for name, value in asked.values]
            self._write(values, lambda why: reply(done, KeptReply(why)))
        else:
            assert isinstance(asked, Confirm)
            self._reads.when_open(lambda: reply(done, KeptReply()))

    def _take_over(self, kind: ValueKind, done: Done) -> None:
        known = int.from_bytes(self.values.get(kind.holders, b""), "big")
        holder = self._holders[kind] = 1 + max(self._holders[kind], known)
        # What was written before is committed with it.
        noted = KeptValue(kind.holders, holder.to_bytes(8, "big"))
        self._write([noted], lambda why: reply(done, KeptReply(why, holder)))

    def _page(self, kind: ValueKind, asked: ReadPage) -> KeptReply:
        found: list[tuple[bytes, bytes]] = []
        size = 0
        counters = {each.holders for each in KINDS}
        names = [name for name in self.values if name not in counters and kind_of(name) is kind]
        for name in names[asked.first :]:
            found.append((name.removeprefix(kind.prefix), self.values[name]))
            size += len(name) + len(self.values[name])
            if size >= PAGE_BYTES_MAX:
                break
        return KeptReply(values=found, left=max(0, len(names) - asked.first - len(found)))

    def _write(self, values: list[KeptValue], ended: Callable[[str], None]) -> None:
        self._unwritten.append((values, ended))
        if len(self._unwritten) == 1:
            self._loop.timers.next_turn(self._write_all)  # between turns nobody would wake the writer

    def _write_all(self) -> None:
        unwritten, self._unwritten = self._unwritten, []
        values = [each for some, _ in unwritten for each in some]
        for each in values:
            self._put(each)
        lsn = self._journal.write_standing(values, self._loop.clock.now_us)
        self._commit.urgent(self._journal.partition.index)
        for _, ended in unwritten:
            once = Once(ended)
            self._journal.when_committed(lsn, partial(once, ""))
            self._loop.timers.later(WRITTEN_SECONDS_MAX, partial(once, NOT_WRITTEN))

    def _put(self, kept: KeptValue) -> None:
        if kept.value:
            self.values[kept.name] = kept.value
        else:
            self.values.pop(kept.name, None)

    # For the journal

    def restore(self, kept: Mapping[bytes, bytes]) -> None:
        """What an earlier run or leader left."""
        self.values = dict(kept)

    def all(self) -> Iterator[KeptValue]:
        """For a snapshot of the journal, which is written over many turns: each as it is when it is taken.

        What is written meanwhile may be missing: it has an entry of its own."""
        names = list(self.values)
        return (KeptValue(name, self.values[name]) for name in names if name in self.values)


class Once:
    """Calls back the first time only."""

    __slots__ = ("_call",)

    def __init__(self, call: Callable[[str], None]) -> None:
        self._call: Callable[[str], None] | None = call

    def __call__(self, why: str) -> None:
        call, self._call = self._call, None
        if call is not None:
            call(why)


def reply(done: Done, said: KeptReply) -> None:
    done(msgspec.structs.asdict(said))
