"""The MQTT broker: protocol, network, shards, command line, and the readers of its log (Spark, Flight, the lake).

`rumq.read` and `rumq.follow` give the log as Arrow batches: docs/guides/read.md. `rumq.broker` is a whole broker inside
a program or a test: docs/guides/testing.md."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rumq.embedded.broker import broker
    from rumq.records.follower import Follower, follow
    from rumq.records.records import Records, read

MODULES = {
    "Follower": "records.follower",
    "Records": "records.records",
    "broker": "embedded.broker",
    "follow": "records.follower",
    "read": "records.records",
}


def __getattr__(name: str) -> object:
    """Import a public name at its first use: a broker never needs Arrow."""
    if name not in MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(f"rumq.{MODULES[name]}"), name)
    except ModuleNotFoundError as fault:
        if fault.name not in ("pyarrow", "numpy"):
            raise
        missing = f"rumq.{name} needs {fault.name}: pip install 'rumq[parquet]'"
        raise ModuleNotFoundError(missing, name=fault.name) from None


__all__ = ["Follower", "Records", "broker", "follow", "read"]
