"""One partition of a Fetch: where it stands, and the batches that were made of it so far. It may read files."""

from __future__ import annotations

from collections.abc import Callable

from commitlog import Gap
from rumq.kafka.log.record_batches import BatchWriter, TopicVerdicts
from rumq.kafka.log.served_log import LogPartition
from rumq.kafka.protocol.errors import ErrorCode

PIECE_BYTES = 1 << 20  # of the log, that are read at once
EXAMINED_BYTES_MAX = 8 << 20  # of the log, before others have their turn
ROW_BYTES = 32
Lost = Callable[[str, int, int, str], None]  # partition, from, to, why


class FetchPart:
    """at: the next offset that was not looked at; error: why there is nothing"""

    def __init__(
        self,
        number: int,
        at: int,
        bytes_max: int,
        partition: LogPartition,
        table: TopicVerdicts | None,
        *,
        clears: bool,
    ) -> None:
        self.number, self.at, self.bytes_max = number, at, max(0, bytes_max)
        self.partition = partition
        self.error = ErrorCode.NONE
        self.batches = BatchWriter(table, at, clears=clears)

    @property
    def is_at_end(self) -> bool:
        return self.error != ErrorCode.NONE or self.at >= self.partition.end

    @property
    def is_empty(self) -> bool:
        """Whether it is asked at the end of its partition, and nothing else is to be told."""
        return self.error == ErrorCode.NONE and not self.batches.size and self.at == self.partition.end

    @property
    def is_in_memory(self) -> bool:
        return self.is_at_end or not self.partition.has_in_files(self.at)

    @property
    def is_full(self) -> bool:
        return not self.batches.has_room(self.bytes_max)

    def fill(self, bytes_max: int, examined_max: int, lost: Lost) -> int:
        """Add batches, until there are so many bytes; returns how many bytes of the log were looked at. raises: OSError

        One record fits always, if nothing is there yet."""
        bytes_max = min(bytes_max, self.bytes_max)
        examined = 0
        while not self.is_at_end and examined < examined_max and self.batches.has_room(bytes_max):
            end = self.partition.piece(self.at, PIECE_BYTES)
            if end <= self.at:
                break  # a newer view is needed
            for found in self.partition.chunks(self.at, end):
                if isinstance(found, Gap):
                    lost(self.partition.name, found.base_lsn, found.next_lsn, found.why)
                    self.at = found.next_lsn
                    continue
                self.at = self.batches.add(found, bytes_max)
                examined += len(found.frames) + ROW_BYTES * found.count
                if self.at < found.next_lsn or not self.batches.has_room(bytes_max) or examined >= examined_max:
                    break
            else:
                self.at = max(self.at, end)
        return examined
