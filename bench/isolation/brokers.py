"""rumq as a neighbour needs it: its shards, its streams, its slow disk; and who lives in which shard."""

import itertools
import os
import subprocess
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from bench.connections import BenchFault
from bench.isolation.neighbours import Neighbour, kafka_port
from bench.load.load import Load
from bench.peers.rumq import rumqd

SHIM = Path(__file__).with_name("slow_sync.c")


class RumqBeside:
    """rumq beside a neighbour. library: a shim for its disk; trigger: while it exists, syncs wait"""

    name = "rumq"

    def __init__(self, neighbour: Neighbour, durability: str, library: Path | None, trigger: Path) -> None:
        self.neighbour, self.library, self.trigger = neighbour, library, trigger
        self.promise = "disk" if library else durability

    def why_not(self, load: Load) -> str:
        return ""

    def durability(self, load: Load) -> str:
        return self.promise

    def command(self, load: Load, folder: Path, port: int) -> list[str]:
        streams = [f'[[stream]]\nname = "{name}"\nfilters = ["{name}/#"]\n' for name in self.neighbour.streams]
        config = folder / "config.toml"
        config.write_text("\n".join(streams))
        settings = [f"shards.count={self.neighbour.shards}", f"log.durability={self.promise}"]
        settings += self.neighbour.settings
        if self.neighbour.kafka:
            settings.append(f"kafka.port={kafka_port(port)}")
        flags = [word for setting in settings for word in ("--set", setting)]
        place = ["--config", str(config), "--port", str(port), "--data", str(folder / "data")]
        return [*self.shim(folder), *rumqd(), "run", *place, *flags]

    def shim(self, folder: Path) -> list[str]:
        if self.library is None:
            return []
        slow = f"{folder}/data/{self.neighbour.streams[0]}/"
        return [
            "env", f"LD_PRELOAD={self.library}", f"BENCH_SLOW_FOLDER={slow}", f"BENCH_SLOW_TRIGGER={self.trigger}",
        ]  # fmt: skip

    def version_command(self) -> list[str]:
        return [*rumqd(), "--version"]


def build_shim(folder: Path) -> Path:
    """raises: BenchFault where there is no C compiler"""
    library = folder / "slow_sync.so"
    command = [os.environ.get("CC", "gcc"), "-shared", "-fPIC", "-O1", "-o", str(library), str(SHIM), "-ldl"]
    try:
        subprocess.run(command, check=True, capture_output=True, timeout=60)
    except (OSError, subprocess.SubprocessError) as fault:
        raise BenchFault(f"the shim for a slow disk could not be compiled: {fault}") from fault
    return library


def trigger_path() -> Path:
    """A name for a file that is not there."""
    return Path(tempfile.mkdtemp(prefix="bench-slow-")) / "now"


def names_of(prefix: str, count: int, shards: int) -> list[str]:
    """Names that lead to the last shard: client ids to it, topics to its partition
    (docs/explanation/architecture.md)."""
    numbered: Iterator[str] = (f"{prefix}{number}" for number in itertools.count())
    wanted = (name for name in numbered if zlib.crc32(name.encode()) % shards == shards - 1)
    return list(itertools.islice(wanted, count))
