"""What a reader that is behind reads next, and the records that it loses: to retention, damage or a limit."""
# compiled: warm

from __future__ import annotations

from commitlog import Chunk, Gap
from router.effects import Effect, ReadCold, RecordsLost
from router.matching.feed import Feed, FilteredRange
from router.readers.reader import Reader
from router.readers.shared_group import SharedGroup


def next_rows(
    reader: Reader, feed: Feed, backlog_records_max: int, effects: list[Effect]
) -> tuple[Chunk, int, int] | None:
    """What the reader reads next: (chunk, first row, row after the last); None: it is live, or must wait."""
    index = feed.index
    while True:
        if reader.waiting >> index & 1:
            return None
        lsn = reader.cursors[index]
        limit = feed.mark(reader.group.committed_only)
        if lsn > limit:  # its start is known before it is committed
            wait_until_shown(reader, feed)
            return None
        if lsn == limit:
            reader.group.live[index].add(reader)
            return None
        if lsn < feed.partition.first_lsn:
            lose(reader, index, lsn, min(feed.partition.first_lsn, limit), "retention", effects)
            continue
        wants = reader.group.wants
        # Another shard's reader is no client: what it does not forward, clients there would miss unnoticed.
        if backlog_records_max and limit - lsn > backlog_records_max and not (wants.committed_only or wants.is_shard):
            lose(reader, index, lsn, limit - backlog_records_max, "backlog_records_max", effects)
            continue
        chunk = feed.maybe_chunk(lsn)
        if chunk is None:
            wait_for_chunk(reader, feed, lsn, effects)
            return None
        if isinstance(chunk, Chunk):
            return chunk, lsn - chunk.base_lsn, min(chunk.count, limit - chunk.base_lsn)
        if isinstance(chunk, Gap):  # damage that recovery found
            lose(reader, index, lsn, min(chunk.next_lsn, limit), "damaged", effects)
        else:
            reader.cursors[index] = min(chunk.next_lsn, limit)


def chunk_returned(
    share: SharedGroup, feed: Feed, lsn: int, effects: list[Effect]
) -> Chunk | Gap | FilteredRange | None:
    """What holds the first lsn of a range that came back to a shared group; None: the group must wait for it."""
    is_waiting = share.reader.waiting >> feed.index & 1
    if share.is_here and share.is_behind(feed.index, lsn) and lsn >= feed.mark(False):
        # Members in another shard have had later ones, and this one met the owner of the partition just now.
        if not is_waiting:
            wait_until_shown(share.reader, feed)
        return None
    chunk = feed.maybe_chunk(lsn) if share.is_here else feed.read_chunk(lsn)
    if chunk is None and not is_waiting:
        wait_for_chunk(share.reader, feed, lsn, effects)
    return chunk


def wait_until_shown(reader: Reader, feed: Feed) -> None:
    """The reader goes on once more records are known here."""
    reader.waiting |= 1 << feed.index
    feed.ahead.append(reader)


def wait_for_chunk(reader: Reader, feed: Feed, lsn: int, effects: list[Effect]) -> None:
    """The reader goes on once the chunk of the lsn is in memory; who comes first has it read."""
    reader.waiting |= 1 << feed.index
    if lsn not in feed.waiters:
        effects.append(ReadCold(feed.index, lsn))
    feed.waiters.setdefault(lsn, []).append(reader)


def lose(reader: Reader, index: int, lsn: int, next_lsn: int, why: str, effects: list[Effect]) -> None:
    """Move a reader's cursor past records that it will not get, and report those not reported before."""
    reader.cursors[index] = next_lsn
    if reader.skipped is None:
        reader.skipped = {}
    # What a socket gave back may stand before what was lost already, and told.
    first, stop = reader.skipped.get(index, (lsn, lsn))
    for begin, end in ((lsn, min(first, next_lsn)), (max(lsn, stop), next_lsn)):
        if begin < end:
            effects.append(RecordsLost(reader, index, begin, end, why))
    if first <= next_lsn and lsn <= stop:
        lsn, next_lsn = min(lsn, first), max(next_lsn, stop)
    reader.skipped[index] = lsn, next_lsn
