"""`rumqd lake table`: the files of a lake as a table of a table format."""

from __future__ import annotations

import json
import sys
import time

from rumq.errors import RumqError

CHECKPOINT_VERSIONS = 100  # a reader opens at most so many files of a table's log


def register_table(place: str, *, as_json: bool = False) -> int:
    """raises: RumqError"""
    try:
        from rumq.lake.lake_reader import lake_at
        from rumq.lake.table import register
    except ImportError:
        raise RumqError("Parquet needs pyarrow and numpy: pip install pyarrow numpy") from None
    folder = lake_at(place).folder
    version, new = register(folder, time.time_ns() // 1_000_000)
    print(json.dumps({"version": version, "new": new}) if as_json else f"version {version}, {new} new")
    count = version + 1
    if count // CHECKPOINT_VERSIONS > (count - new) // CHECKPOINT_VERSIONS:
        try:
            from deltalake import DeltaTable
        except ImportError:
            print("no checkpoint, so it opens slowly: pip install 'rumq[tables]'", file=sys.stderr)
        else:
            DeltaTable(place).create_checkpoint()
    return 0
