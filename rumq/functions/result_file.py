"""The messages of one batch, on disk and synced before any is published: a crash publishes the same ones again.

So a function may give another result each time, and still each batch has one."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa

from commitlog import RealFiles
from commitlog.disk.files import replace_file
from rumq.functions.function_rows import as_batch, as_bytes


class ResultFile:
    def __init__(self, folder: Path, partition: str) -> None:
        self._path = folder / f"{partition.replace('/', '-')}.arrow"

    def write(self, number: int, messages: pa.RecordBatch) -> None:
        """number: of the batch. raises: OSError"""
        numbered = messages.replace_schema_metadata({"batch": str(number)})
        replace_file(RealFiles(), os.fspath(self._path), as_bytes(numbered))

    def maybe_read(self, number: int) -> pa.RecordBatch | None:
        """None: there is none of this batch. raises: OSError"""
        try:
            found = as_batch(self._path.read_bytes())
        except (FileNotFoundError, pa.ArrowInvalid, StopIteration):
            return None  # it is replaced as a whole: what cannot be read is not ours
        return found if (found.schema.metadata or {}).get(b"batch") == str(number).encode() else None

    def remove(self) -> None:
        self._path.unlink(missing_ok=True)
