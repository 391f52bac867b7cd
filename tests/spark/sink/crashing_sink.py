"""A sink of Spark whose task dies in the middle: `os._exit` in its Python worker, at a step of the protocol."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from rumq.sink.sink_protocol import SinkProtocol, Wait
from rumq.spark.source.data_source import RumqDataSource
from rumq.spark.source.row_writer import RumqStreamWriter


class CrashingWriter(RumqStreamWriter):
    """crash: the file "<crash>-<n>" has the n-th task die at its n-th step, and is gone then"""

    crash = ""

    def write(self, iterator: Iterator[Any]) -> Any:
        crash, step, steps = self.crash, SinkProtocol.step, 0

        def counted(publisher: SinkProtocol) -> Wait:
            nonlocal steps
            steps += 1
            if os.path.exists(f"{crash}-{steps}"):
                os.remove(f"{crash}-{steps}")
                os._exit(9)
            return step(publisher)

        SinkProtocol.step = counted  # type: ignore[method-assign]
        try:
            return super().write(iterator)
        finally:
            SinkProtocol.step = step  # type: ignore[method-assign]


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
