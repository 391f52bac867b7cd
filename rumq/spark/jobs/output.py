"""The output of a job."""

from __future__ import annotations

from typing import NamedTuple

from pyspark.sql import DataFrame


class Output(NamedTuple):
    """Rows and their output options.

    mode: of a stream's sink, append or update; topic: default of --topic, with columns in braces; partition_by:
    columns that become folders
    """

    frame: DataFrame
    mode: str = "append"
    topic: str = "jobs/{topic}"
    partition_by: tuple[str, ...] = ()
