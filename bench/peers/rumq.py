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
        return [*self.program(folder), "run", *settings, *more]

    def program(self, folder: Path) -> list[str]:
        """rumqd, as it is started with everything it keeps in `folder`."""
        return rumqd()

    def version_command(self) -> list[str]:
        return [*self.program(Path("/")), "--version"]


class RumqTwoShards(Rumq):
    """The same work shared by two processes."""

    name = "rumq-2"
    shards = 2


class RumqBefore(Rumq):
    """Another version, of another environment. python: its interpreter"""

    name = "before"

    def __init__(self, python: Path) -> None:
        self.python = python.absolute()

    def program(self, folder: Path) -> list[str]:
        # Neither the folder of this checkout nor what the bench adds to the path may hide that environment's package.
        return ["env", "-u", "PYTHONPATH", "-C", str(folder), str(self.python), "-m", "rumq"]


def rumqd() -> list[str]:
    return [sys.executable, "-m", "rumq"]
