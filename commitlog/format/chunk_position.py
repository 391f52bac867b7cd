"""The position of a chunk of records in its segment: a lone message has one of its own, so it is C numbers if compiled.

Knows no file."""
# compiled: hot

from __future__ import annotations

from collections.abc import Iterator


class ChunkPosition:
    """flags: of the chunk; late: its greatest ts_delta, µs"""

    __slots__ = ("base_lsn", "base_ts", "count", "flags", "late", "position", "total_len")

    def __init__(
        self, base_lsn: int, position: int, base_ts: int, count: int, total_len: int, flags: int, late: int
    ) -> None:  # fmt: skip
        self.set(base_lsn, position, base_ts, count, total_len, flags, late)

    def set(
        self, base_lsn: int, position: int, base_ts: int, count: int, total_len: int, flags: int, late: int
    ) -> None:  # fmt: skip
        """Once, of one that `__new__` has made: compiled callers need no object for a number."""
        self.base_lsn, self.position, self.base_ts = base_lsn, position, base_ts
        self.count, self.total_len, self.flags, self.late = count, total_len, flags, late

    @property
    def next_lsn(self) -> int:
        return self.base_lsn + self.count

    @property
    def last_ts(self) -> int:
        return self.base_ts + self.late

    def __iter__(self) -> Iterator[int]:
        """As they are in an index."""
        return iter((self.base_lsn, self.position, self.base_ts, self.count, self.total_len, self.flags, self.late))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ChunkPosition) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return f"ChunkPosition{tuple(self)}"
