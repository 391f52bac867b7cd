"""rumq itself, from this environment. Durability is `process` for QoS 0, `disk` for QoS 1 and 2, or the load's own."""

import sys
from pathlib import Path

from bench.load.load import Load


class Rumq:
    name = "rumq"
    shards = 1

    def why_not(self, load: Load) -> str:
        return ""

    def durability(self, load: Load) -> str:
        return load.durability or ("disk" if load.qos else "process")

    def command(self, load: Load, folder: Path, port: int) -> list[str]:
        settings = ["--port", str(port), "--data", str(folder / "data")]
        more = ["--set", f"shards.count={self.shards}", "--set", f"log.durability={self.durability(load)}"]
        if load.inflight_max:
            settings += ["--set", f"mqtt.inflight_max={load.inflight_max}"]
        return [*rumqd(), "run", *settings, *more]

    def version_command(self) -> list[str]:
        return [*rumqd(), "--version"]


class RumqTwoShards(Rumq):
    """The same work shared by two processes."""

    name = "rumq-2"
    shards = 2


def rumqd() -> list[str]:
    return [sys.executable, "-m", "rumq"]
