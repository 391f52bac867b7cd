"""The errors of the log, each with cause and remedy. The tree:

LogError
├── StoreError                 the data directory cannot be used
│   ├── DirectoryInUse         another broker holds it
│   ├── FormatTooNew           a later rumq wrote it
│   └── NotWritable            read-only, full, or not ours
├── OffsetTrimmed              retention has removed the record
├── NotInMemory                the record must be read from disk with `cold_read`: no fault
├── Damaged                    bytes on disk differ from what was written
├── CutBelowCommitted          a copy would lose records that were committed
└── LogFailure                 a write or a sync failed: nothing of that group is acknowledged
"""


class LogError(Exception):
    """The root of the log's errors."""


class StoreError(LogError):
    """The data directory cannot be used. path: as given; problem: cause and remedy."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(path, problem)
        self.path, self.problem = path, problem

    def __str__(self) -> str:
        return f"data directory {self.path}: {self.problem}"


class DirectoryInUse(StoreError):
    pass


class FormatTooNew(StoreError):
    pass


class NotWritable(StoreError):
    pass


class OffsetTrimmed(LogError):
    def __init__(self, lsn: int, first_lsn: int) -> None:
        super().__init__(lsn, first_lsn)
        self.lsn, self.first_lsn = lsn, first_lsn

    def __str__(self) -> str:
        return (
            f"lsn {self.lsn} is gone, the log starts at {self.first_lsn}: resume there "
            f"({self.first_lsn - self.lsn} records lost) or keep records longer"
        )


class NotInMemory(LogError):
    """Read it with `Partition.cold_read`, on a thread that may wait."""


class Damaged(LogError):
    """Bytes of a file differ from what was written. where: file and position; what: the check that failed."""

    def __init__(self, where: str, what: str) -> None:
        super().__init__(where, what)
        self.where, self.what = where, what

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


class LogFailure(LogError):
    """A write or sync of a group failed. path: of the partition; problem: cause and remedy."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(path, problem)
        self.path, self.problem = path, problem

    def __str__(self) -> str:
        return f"{self.path}: {self.problem}"


class CutBelowCommitted(LogError):
    """A leader asked a copy to lose committed records: one of the two is not what it should be. Nothing was changed."""

    def __init__(self, path: str, lsn: int, committed_lsn: int) -> None:
        super().__init__(path, lsn, committed_lsn)
        self.path, self.lsn, self.committed_lsn = path, lsn, committed_lsn

    def __str__(self) -> str:
        return (
            f"{self.path}: the leader's log ends at lsn {self.lsn} here, and everything below {self.committed_lsn} was "
            f"committed: keep this copy, stop the leader, and compare the two"
        )
