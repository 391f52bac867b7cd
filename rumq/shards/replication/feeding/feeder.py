"""One follower's copy of one partition: cut to a prefix of the leader's log, caught up from disk, then kept live.

A follower whose outbox is full is not live any more, and is fed from disk until it has caught up again."""
# compiled: hot

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, Protocol

from commitlog.disk.files import Files
from commitlog.errors import LogError
from commitlog.replica.block_reader import read_block, read_opening, saved_names
from commitlog.replica.differences import difference
from commitlog.replica.inventory import SegmentState
from rumq.cluster.replication import messages as m
from rumq.loop.ports import EventSink, ReadPool, Timers
from rumq.net.frames import Raw
from rumq.shards.replication.feeding.copied_partition import CopiedPartition, CopyPiece, Place, Trimmed
from rumq.shards.replication.feeding.piece_frames import Frames, frames_of

BLOCK_BYTES = 1 << 20
UNSYNCED_BYTES_MAX = 8 << 20  # that were sent from disk and are not acknowledged
FEEDS = 2  # the lane of the reader's worker
RETRY_SECONDS = 1.0


class FollowerOutbox(Protocol):
    """The link to a follower. room: bytes until its outbox is full; closed: it has ended"""

    peer: str
    closed: bool

    @property
    def room(self) -> int: ...
    def say(self, message: m.ReplicaMessage, raw: Sequence[Raw] = ()) -> None: ...
    def write(self, frames: Frames) -> None: ...
    def wants_room(self) -> None:
        """Have the feeders go on once there is some."""


class SentBlock(NamedTuple):
    """A block from disk. after: where it ends"""

    after: Place
    size: int


class Feeds(NamedTuple):
    """What all feeders share. epoch: of the term now; compare: has a follower say what it has of a partition"""

    reader: ReadPool
    timers: Timers
    events: EventSink
    epoch: Callable[[], int]
    compare: Callable[[str, str], None]


class Feeder:
    """is_live: it gets what is written as it is written"""

    def __init__(self, source: CopiedPartition, link: FollowerOutbox, feeds: Feeds) -> None:
        self._source, self._link, self._feeds = source, link, feeds
        self._files: Files = source.partition.files
        self.is_live = False
        self._wants_names = False
        self._is_lagging = False  # True while the follower is fed from disk
        self._is_reading = False
        self._round = 0  # number of the feeding: results of reads for an earlier one are dropped
        self._place: Place = ("", 0)  # where the next piece begins
        self._salt = 0  # of the file that the place is in, once it is read from disk; 0: not known
        self._sent: deque[SentBlock] = deque()
        self._unsynced_bytes = 0

    def begin(self, theirs: Sequence[m.SegmentInfo]) -> None:
        """The follower has these segments: make them a prefix of the log, then send the rest."""
        source = self._source
        self._stop()
        ours = source.segments()
        have = [SegmentState(s.name, s.base_lsn, s.end_lsn, s.stop, s.is_done, s.salt) for s in theirs]
        found = difference(ours, have)
        first_lsn = source.partition.first_lsn
        cut = m.Cut(
            self._feeds.epoch(), source.key, found.drop, found.name, found.end_lsn, found.stop, first_lsn, found.salt,
            found.refill, found.refill_lsn,
        )  # fmt: skip
        self._link.say(cut)
        if found.send_index < len(ours):
            segment = ours[found.send_index]
            self._place, self._salt = (segment.name, found.position), segment.salt
        else:
            self._place, self._salt = ((ours[-1].name, ours[-1].stop), ours[-1].salt) if ours else (("", 0), 0)
        # A copy that begins anew behind records that are removed: their topics keep their numbers.
        self._wants_names = first_lsn > 0 and self._place[1] == 0 and len(found.drop) == len(theirs)
        self._lag(True)
        self.go_on()

    def compare(self) -> None:
        """Ask the follower anew what it has; its answer leads to `begin`."""
        self._stop()
        self._feeds.compare(self._link.peer, self._source.key)

    def stop(self) -> None:
        """Its link has ended, or what was told counts no more."""
        self._stop()

    def _stop(self) -> None:
        self._round += 1
        self.is_live = self._is_reading = False
        self._lag(False)
        self._sent.clear()
        self._unsynced_bytes = 0

    def _lag(self, lags: bool) -> None:
        self._source.lagging += lags - self._is_lagging
        self._is_lagging = lags

    # Live

    def told(self, frames: Frames, after: Place) -> None:
        """What was written since, as frames that all followers share."""
        if not self.is_live:
            return
        if self._link.room < frames.size:
            self.is_live = False
            self._salt = self._source.salt_of(self._place[0])
            self._lag(True)
            self._link.wants_room()
            return
        self._link.write(frames)
        self._place = after

    def trimmed(self, trim: Trimmed) -> None:
        if self.is_live or self._is_lagging:
            self._link.say(m.TrimCopy(self._feeds.epoch(), self._source.key, trim.first_lsn))

    # From disk

    def go_on(self) -> None:
        """Send what can be sent now."""
        if not self._is_lagging or self._is_reading or self._link.closed:
            return
        if self._link.room <= 0:
            self._link.wants_room()
            return
        pieces = None if self._wants_names else self._source.maybe_behind(self._place)
        if pieces is not None:
            self._send_rest(pieces)
        elif self._unsynced_bytes < UNSYNCED_BYTES_MAX:
            self._read()

    def _send_rest(self, pieces: list[CopyPiece]) -> None:
        for piece in pieces:
            if self._link.room <= 0:
                self._link.wants_room()
                return
            self._link.write(frames_of([piece], self._feeds.epoch(), self._source.key))
            self._place = piece.after
            self._salt = self._source.salt_of(piece.after[0])
        self._lag(False)
        self.is_live = True

    def _read(self) -> None:
        source, (name, position) = self._source, self._place
        if source.is_irregular:
            return
        if self._wants_names:
            self._is_reading = True
            read_names = partial(saved_names, self._files, source.partition.directory)
            self._feeds.reader.submit(read_names, partial(self._has_names, self._round), FEEDS)
            return
        ours = source.segments()
        at = next((at for at, segment in enumerate(ours) if segment.name == name), -1)
        if at < 0 and name:
            self.compare()  # retention has removed it
            return
        if at >= 0 and position and self._salt not in (0, ours[at].salt):
            self.compare()  # it was packed
            return
        if at >= 0 and position and position >= ours[at].stop:
            at, position = at + 1, 0
        elif at < 0:
            at = 0
        if at >= len(ours):
            return  # what follows is being written
        segment = ours[at]
        path = source.path_of(segment.name)
        block = partial(read_block, self._files, path, position, segment.stop, BLOCK_BYTES, segment.salt)
        job = block if position else partial(opening, self._files, path, segment.salt)
        self._is_reading = True
        self._feeds.reader.submit(job, partial(self._has_read, self._round, segment, position), FEEDS)

    def _has_names(self, number: int, names: bytes | None, fault: BaseException | None) -> None:
        if number != self._round or self._link.closed:
            return
        self._is_reading = False
        if fault is not None or names is None:
            self._failed(fault)
            return
        self._wants_names = False
        self._link.say(m.Names(self._feeds.epoch(), self._source.key), [names])
        self.go_on()

    def _has_read(
        self, number: int, segment: SegmentState, position: int, found: tuple[bytes, int] | None,
        fault: BaseException | None,
    ) -> None:  # fmt: skip
        if number != self._round or self._link.closed:
            return
        self._is_reading = False
        if fault is not None or found is None:
            self._failed(fault)
            return
        data, stop = found
        epoch, key = self._feeds.epoch(), self._source.key
        if position:
            self._link.say(m.Write(epoch, key, segment.name, position), [data])
        else:
            self._link.say(m.Open(epoch, key, segment.name, segment.base_lsn), [data])
        self._place, self._salt = (segment.name, stop), segment.salt
        self._sent.append(SentBlock(self._place, len(data)))
        self._unsynced_bytes += len(data)
        self.go_on()

    def _failed(self, fault: BaseException | None) -> None:
        if isinstance(fault, FileNotFoundError):
            self.compare()  # retention has removed it, or a packed file is in its place
            return
        if not isinstance(fault, OSError | LogError):
            assert fault is not None
            raise fault
        self._feeds.events.tell("cluster.feed_failed", node=self._link.peer, partition=self._source.key, why=str(fault))
        self._is_reading = True  # until then
        self._feeds.timers.later(RETRY_SECONDS, partial(self._retry, self._round))

    def _retry(self, number: int) -> None:
        if number == self._round and not self._link.closed:
            self.compare()

    def synced(self, name: str, stop: int) -> None:
        """The follower has synced up to there."""
        count = 0
        for at, one in enumerate(self._sent):
            if one.after[0] == name:
                count = at
                if one.after[1] > stop:
                    break
                count += 1
        for _ in range(count):
            self._unsynced_bytes -= self._sent.popleft().size
        self.go_on()


def opening(files: Files, path: str, salt: int) -> tuple[bytes, int]:
    """A segment's header, and the position behind it. salt: of the file that is meant"""
    data = read_opening(files, path, salt)
    return data, len(data)
