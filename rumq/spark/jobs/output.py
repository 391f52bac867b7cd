"""What a job gives to be written."""

from __future__ import annotations

from typing import NamedTuple

from pyspark.sql import DataFrame


class Output(NamedTuple):
    """Rows, and how they are written.

    mode: of a stream's sink, append or update; topic: where they are published unless --topic says otherwise, with
    columns in braces; partition_by: columns that become folders
    """

    frame: DataFrame
    mode: str = "append"
    topic: str = "jobs/{topic}"
    partition_by: tuple[str, ...] = ()
