"""Records, offsets, durability, retention: the log that every topic is. docs/log-format.md.

The floor's face. Knows no MQTT, no network, no task, no thread, no clock."""

from commitlog.chunk import Chunk, Gap
from commitlog.errors import (
    Damaged,
    DirectoryInUse,
    FormatTooNew,
    LogError,
    LogFailure,
    NotInMemory,
    NotWritable,
    OffsetTrimmed,
    StoreError,
)
from commitlog.files import Files, RealFiles
from commitlog.partition import Partition
from commitlog.store import Store, open_store
from commitlog.streams import StreamSpec

__all__ = [
    "Chunk",
    "Damaged",
    "DirectoryInUse",
    "Files",
    "FormatTooNew",
    "Gap",
    "LogError",
    "LogFailure",
    "NotInMemory",
    "NotWritable",
    "OffsetTrimmed",
    "Partition",
    "RealFiles",
    "Store",
    "StoreError",
    "StreamSpec",
    "open_store",
]
