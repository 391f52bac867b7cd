"""Three nodes of rumq with three copies, and three etcd, all on this machine: `examples/cluster.py`.

Clients come to the first node. Its CPU time and memory are those of all of it, etcd too."""

import shutil
import sys
from pathlib import Path

from bench.load.load import Load
from bench.peers.peer import DAEMONS
from bench.peers.rumq import rumqd

EXAMPLE = Path(__file__).parents[2] / "examples" / "cluster.py"


class RumqCluster:
    """One shard, so that all clients are where everything is led, or relayed there."""

    name = "rumq-cluster"
    shards = 1

    def why_not(self, load: Load) -> str:
        return "" if shutil.which("etcd", path=DAEMONS + ":/usr/bin") else "etcd is not installed"

    def durability(self, load: Load) -> str:
        return "quorum of 3"

    def command(self, load: Load, folder: Path, port: int) -> list[str]:
        command = [sys.executable, str(EXAMPLE), "--shards", str(self.shards), "--mqtt-port", str(port)]
        return [*command, "--data", str(folder / "cluster"), "--restart-seconds", "0"]

    def version_command(self) -> list[str]:
        return [*rumqd(), "--version"]
