"""A sink of Spark whose task dies in the middle: `os._exit` in its Python worker, between two answers of the broker."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from glob import glob
from typing import Any

from rumq.sink.sink_protocol import SinkProtocol, Wait
from rumq.spark.source.data_source import RumqDataSource
from rumq.spark.source.row_writer import RumqStreamWriter


class CrashingWriter(RumqStreamWriter):
    """crash: the file "<crash>-<n>" has a task die at its first step behind n bytes of answers, and is gone then. Steps
    are not counted: on a busy machine one has the answers of several"""

    crash = ""

    def write(self, iterator: Iterator[Any]) -> Any:
        step, receive, received = SinkProtocol.step, SinkProtocol.receive, 0

        def counted(publisher: SinkProtocol, chunk: bytes) -> None:
            nonlocal received
            received += len(chunk)
            receive(publisher, chunk)

        def dying(publisher: SinkProtocol) -> Wait:
            for path in glob(f"{self.crash}-*"):
                if int(path.rpartition("-")[2]) <= received:
                    with suppress(FileNotFoundError):  # another task dies of it
                        os.remove(path)
                        os._exit(9)
            return step(publisher)

        SinkProtocol.step, SinkProtocol.receive = dying, counted  # type: ignore[method-assign]
        try:
            return super().write(iterator)
        finally:
            SinkProtocol.step, SinkProtocol.receive = step, receive  # type: ignore[method-assign]


class CrashingSource(RumqDataSource):
    @classmethod
    def name(cls) -> str:
        return "rumq-crashing"

    def streamWriter(self, schema: Any, overwrite: bool) -> CrashingWriter:
        from rumq.sink.sink_options import parse_sink_options

        options = {name: value for name, value in self.options.items() if name.lower() != "crash"}
        writer = CrashingWriter(parse_sink_options(options), schema)
        writer.crash = next(value for name, value in self.options.items() if name.lower() == "crash")
        return writer
