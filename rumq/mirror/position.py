"""Where a mirror stands in one partition, on disk before anything of it is published.

A batch that was begun is repeated with the same records after a crash: the target recognizes what it has."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from commitlog import RealFiles
from commitlog.disk.files import replace_file
from rumq.errors import RumqError


@dataclass(frozen=True)
class MirrorPosition:
    """Batch number `batch` has the records start..end. done: the target has acknowledged all of them

    rules: what makes messages of records; a batch is not repeated with others"""

    batch: int
    start: int
    end: int
    done: bool
    rules: str


class PositionFile:
    """raises: OSError; RumqError for a file that is damaged"""

    def __init__(self, folder: Path, partition: str) -> None:
        self._path = folder / f"{partition.replace('/', '-')}.json"

    def maybe_read(self) -> MirrorPosition | None:
        try:
            return MirrorPosition(**json.loads(self._path.read_text()))
        except FileNotFoundError:
            return None
        except (ValueError, TypeError) as fault:
            raise RumqError(f"{self._path} is no position of a mirror ({fault}): remove it to begin anew") from None

    def write(self, position: MirrorPosition) -> None:
        """Synced, with its name."""
        replace_file(RealFiles(), os.fspath(self._path), json.dumps(asdict(position)).encode() + b"\n")
