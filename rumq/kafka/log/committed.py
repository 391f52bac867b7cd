"""What is committed, asked of the shards of this machine. A file shows it only with the next write, or 50 ms later.

A broker alone answers; a node of a cluster is not asked, as its copies prove by themselves what may be read."""

from __future__ import annotations

import msgspec

from rumq.admin import requests as q
from rumq.admin.operations import OPERATIONS, question_of
from rumq.admin.socket.admin_client import ask_socket, socket_name

SECONDS_MAX = 1.0
QUESTION = msgspec.json.encode(question_of(OPERATIONS["partitions"], q.Nothing(), None)) + b"\n"


class CommittedRow(msgspec.Struct):
    """Of `rumq.admin.rows.PartitionRow`, what is needed."""

    stream: str
    partition: int
    committed_lsn: int
    durability: str


class CommittedRows(msgspec.Struct):
    partitions: list[CommittedRow]


class CommittedQuestions:
    """directory: of the data; shards: of the broker"""

    def __init__(self, directory: str, shards: int) -> None:
        self._directory, self._shards = directory, shards
        self._owners: dict[str, int] = {}

    async def ask(self, names: set[str]) -> dict[str, int] | None:
        """Of partitions, by name, how far they are committed, of others perhaps too; None: a shard does not answer."""
        owners = {self._owners.get(name, -1) for name in names}
        found: dict[str, int] = {}
        for shard in range(self._shards) if -1 in owners else sorted(owners):
            try:
                line = await ask_socket(self._directory, socket_name(shard), QUESTION, SECONDS_MAX)
                rows = msgspec.json.decode(line, type=CommittedRows).partitions
            except (OSError, ValueError):
                return None
            for row in rows:
                name = f"{row.stream}/g1/p{row.partition}"
                self._owners[name] = shard
                found[name] = row.committed_lsn
        return found
