"""Questions to the owners of other partitions: chunks, where a replay begins, what is retained, inbound QoS 2 ids."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from commitlog import Chunk, Gap
from router import commands as c
from router.effects import FindRetained, FindStart
from router.matching.retained import RetainedRecord
from rumq.loop.ports import CommandQueue, ReadDone
from rumq.shards.bus import messages as m
from rumq.shards.bus.remote_partition import RemoteFeeds
from rumq.shards.peers.interest import Interest, OtherShard

StartsFound = Callable[[dict[int, int], list[RetainedRecord]], None]


class QueryClient:
    def __init__(
        self, others: Mapping[int, OtherShard], feeds: RemoteFeeds, commands: CommandQueue, interest: Interest
    ) -> None:
        """others: complete before the first question"""
        self._others, self._feeds, self._commands, self._interest = others, feeds, commands, interest

    @property
    def count(self) -> int:
        """Of the other shards."""
        return len(self._others)

    def read(self, index: int, lsn: int, done: ReadDone) -> None:
        """Read whole chunks of another shard's partition, from `lsn` on."""
        partition = self._feeds.partition(index)

        def answered(answer: m.Chunks, raw: memoryview) -> None:
            partition.first_lsn = answer.first_lsn
            partition.name_topics(answer.topics)
            done(chunks_of(answer, raw), OSError(answer.fault) if answer.fault else None)

        self._others[partition.owner].ask(lambda request: m.ReadFrom(request, index, lsn), answered)

    def find_retained(self, effect: FindRetained) -> None:
        for index, other in self._others.items():
            below = {p.index: effect.below[p.index] for p in other.partitions}
            if below:
                question = partial(
                    m.RetainedQuestion, topic_filter=effect.subscription.topic_filter, below=below,
                    is_met=not self._interest.is_away(index),
                )  # fmt: skip
                other.ask(question, partial(self._retained_found, effect))

    def _retained_found(self, effect: FindRetained, answer: m.SearchAnswer, _: memoryview) -> None:
        if answer.retained:
            self._commands.put(c.RetainedFound(effect.reader, effect.subscription, retained_of(answer)))

    def find_start(self, effect: FindStart, local: Callable[[StartsFound], None] | None, owner: int | None) -> None:
        """Find where a replay begins in every partition, or in the one that `owner` has.

        local: searches this shard's partitions, and calls back with (lsns, retained)"""
        (subscription,) = effect.reader.group.wants.subscriptions
        lsns: dict[int, int] = {}
        retained: list[RetainedRecord] = []
        asked = [other for index, other in self._others.items() if owner is None or index == owner]
        left = len(asked) + (local is not None)

        def found(more: dict[int, int], messages: list[RetainedRecord]) -> None:
            nonlocal left
            lsns.update(more)
            retained.extend(messages)
            left -= 1
            if not left:
                self._feeds.drop_cached()
                self._commands.put(c.StartFound(effect.reader, lsns, retained))

        def answered(answer: m.SearchAnswer, _: memoryview) -> None:
            if answer.more:
                retained.extend(retained_of(answer))
            else:
                found(answer.lsns, retained_of(answer))

        def ask() -> None:
            for other in asked:
                other.ask(
                    lambda n: m.StartQuestion(n, effect.ts_us, effect.topic, effect.offset, effect.retained), answered
                )
            if local is not None:
                local(found)

        if self._interest.confirm([subscription.topic_filter], ask, marks=True):
            ask()

    def find_tags(self, from_lsns: list[int], done: Callable[[int, m.Tags], None]) -> None:
        """Inbound QoS 2 messages of sessions here in others' partitions; `done(shard, tags)` for each shard."""

        def answered(index: int, answer: m.Tags, _: memoryview) -> None:
            done(index, answer)

        for index, other in self._others.items():
            wanted = {p.index: from_lsns[p.index] for p in other.partitions}
            other.ask(partial(m.FindTags, from_lsns=wanted), partial(answered, index))

    def leave_behind(self, index: int, next_lsn: int, each: Callable[[], None]) -> None:
        """Announce that retention is about to remove what is below `next_lsn` of a partition of this shard; `each` is
        called for each other shard once it has counted what its readers lose."""
        for other in self._others.values():
            other.ask(lambda request: m.Leaving(request, index, next_lsn), lambda *_: each())


def chunks_of(answer: m.Chunks, raw: memoryview) -> list[Chunk | Gap]:
    found: list[Chunk | Gap] = []
    at = 0
    for piece in answer.pieces:
        if piece.why:
            found.append(Gap(piece.base_lsn, piece.next_lsn, piece.why))
            continue
        rows = bytes(raw[at : at + piece.rows_len])
        at += piece.rows_len
        frames = bytes(raw[at : at + piece.frames_len])
        at += piece.frames_len
        count = piece.next_lsn - piece.base_lsn
        found.append(Chunk(piece.base_lsn, count, piece.base_ts, piece.flags, rows, frames))
    return found


def retained_of(answer: m.SearchAnswer) -> list[RetainedRecord]:
    return [RetainedRecord(r.topic, r.partition, r.lsn, r.base_ts, r.row, r.frame) for r in answer.retained]
