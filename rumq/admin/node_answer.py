"""What the admin socket of a node of a cluster takes and says: one question for all shards, wherever their leaders are.

A JSON line in: the question of a shard's socket (`rumq.admin.operations`), and `here`: true asks for this node's own
knowledge and leaders alone. A JSON line out: `NodeAnswer`."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from rumq.admin.cluster_rows import MissingShard

SOCKET_NAME = "ask.sock"
DIRECTORY = "_cluster"  # below the data directory
HERE = "here"


class NodeAnswer(Struct, kw_only=True):
    """replies: one for each shard that answered, or the node's own; missing: the others; error: what was wrong"""

    replies: list[msgspec.Raw] = []
    missing: list[MissingShard] = []
    error: str = ""


def decoded(line: bytes | bytearray) -> tuple[list[dict[str, Any]], list[MissingShard]]:
    """Replies, and the shards that have none. raises: ValueError"""
    answer = msgspec.json.decode(line, type=NodeAnswer)
    if answer.error:
        return [{"error": answer.error}], answer.missing
    return [msgspec.json.decode(each) for each in answer.replies], answer.missing
