"""Asks the whole cluster by way of this node's agent, which knows where the leaders are. `rumq.admin.node_answer`

A query answers with what there is, and names the shards that are missing: during a change of leaders, or without a
majority of a shard, an operator sees the rest. An action that may concern a missing shard is refused."""

from __future__ import annotations

import os

import msgspec
from msgspec.structs import fields

from rumq.admin import answers as a
from rumq.admin import requests as q
from rumq.admin.merging import merged
from rumq.admin.node_answer import DIRECTORY, HERE, SOCKET_NAME, decoded
from rumq.admin.operations import OPERATIONS, AskingUser, Operation, question_of
from rumq.admin.socket.admin_client import ask_socket
from rumq.errors import RumqError
from rumq.gateway.broker.shard_client import ShardAway

ONE_SHARDS = {"disconnect", "drop", "reset", "seal", "trim"}  # what they concern is in one shard


class ClusterClient:
    """directory: of the node's data"""

    def __init__(self, directory: str) -> None:
        self._directory = os.path.abspath(directory)

    async def ask(self, operation: Operation, request: q.Request, reader: AskingUser | None = None) -> a.Answer:
        return await self._ask(operation, request, reader, here=False)

    async def ask_here(self, operation: Operation, request: q.Request) -> a.Answer:
        return await self._ask(operation, request, None, here=True)

    async def maybe_cluster(self) -> a.Cluster | None:
        try:
            found = await self.ask_here(OPERATIONS["cluster"], q.Nothing())
        except (RumqError, ValueError):
            return None
        assert isinstance(found, a.Cluster)
        return found

    async def _ask(
        self, operation: Operation, request: q.Request, reader: AskingUser | None, *, here: bool
    ) -> a.Answer:
        question = msgspec.json.encode(question_of(operation, request, reader) | {HERE: here}) + b"\n"
        try:
            line = await ask_socket(f"{self._directory}/{DIRECTORY}", SOCKET_NAME, question)
        except OSError as fault:
            raise ShardAway(f"the agent of this node does not answer: {fault}") from None
        replies, missing = decoded(line)
        why = "; ".join(f"shard {each.shard} does not answer: {each.why}" for each in missing)
        if missing and (here or not replies):
            raise ShardAway(why)
        if not replies:  # this node leads nothing
            replies = [{each.encode_name: [] for each in fields(operation.answer) if each.required}]
        answer = merged(operation, request, replies, missing)
        if missing and operation.is_action and not (operation.name in ONE_SHARDS and has_applied(answer)):
            raise ShardAway(f"{why}; the others have done it, and asking again is safe")
        return answer


def has_applied(answer: a.Answer) -> bool:
    if isinstance(answer, a.Ended):
        return answer.disconnected + answer.dropped > 0
    return isinstance(answer, a.Done) and answer.done > 0
