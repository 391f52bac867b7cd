"""The commit log: records, offsets, durability, retention. docs/reference/log-format.md.

The public names of this package. It imports nothing of MQTT or the network, and reads no clock."""

from commitlog.chunk import Chunk, Gap
from commitlog.disk.files import Files, RealFiles
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
from commitlog.log.partition import Partition
from commitlog.log.store import Store, open_store
from commitlog.log.store_layout import OpenOptions, StoreLayout
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
    "OpenOptions",
    "Partition",
    "RealFiles",
    "Store",
    "StoreError",
    "StoreLayout",
    "StreamSpec",
    "open_store",
]
