"""Asks the shards of a broker on this machine over the sockets in its data directory, all at once, and its Kafka
server about consumer groups.

On a node of a cluster the node's own socket asks all shards of the cluster."""

from __future__ import annotations

import os

import msgspec
import trio

from commitlog import RealFiles
from commitlog.disk.shard_count import NAME as SHARDS
from commitlog.disk.shard_count import read_shard_count
from rumq.admin import requests as q
from rumq.admin.answers import Partitions
from rumq.admin.kafka_groups import KAFKA_OPERATIONS
from rumq.admin.merging import merged, streams_of
from rumq.admin.node_answer import DIRECTORY, SOCKET_NAME
from rumq.admin.operations import OPERATIONS, Operation, Raw, question_of
from rumq.admin.socket.admin_client import ask_socket, socket_name
from rumq.cli.ask.questions import STREAMS, Question
from rumq.cli.ask.source import AskFailed
from rumq.errors import RumqError
from rumq.gateway.broker.cluster_client import ClusterClient
from rumq.gateway.broker.service_client import ask_kafka


class SocketSource:
    """directory: the data directory, as the operator wrote it"""

    def __init__(self, directory: str) -> None:
        self.name, self._directory = directory, os.path.abspath(directory)

    async def ask(self, question: Question, request: q.Request) -> msgspec.Struct:
        """raises: AskFailed, PermissionError"""
        if question.is_remote:
            raise AskFailed(
                f"{question.name} is answered by a gateway: name one with --url or --context "
                "(records: `rumqd log read` reads the data directory)"
            )
        if question.name in KAFKA_OPERATIONS:
            return await self._ask_kafka(question, request)
        operation = OPERATIONS["partitions" if question.name == STREAMS else question.name]
        try:
            if os.path.exists(f"{self._directory}/{DIRECTORY}/{SOCKET_NAME}"):
                answer = await ClusterClient(self._directory).ask(operation, request)
            else:
                answer = merged(operation, request, await self._ask_all(operation, request))
        except AskFailed:
            raise
        except (RumqError, ValueError) as fault:
            raise AskFailed(str(fault)) from None
        return streams_of(answer.partitions) if isinstance(answer, Partitions) and question.name == STREAMS else answer

    async def close(self) -> None:
        pass

    async def _ask_kafka(self, question: Question, request: q.Request) -> msgspec.Struct:
        try:
            return await ask_kafka(self._directory, question.name, request)
        except RumqError as fault:
            raise AskFailed(str(fault)) from None

    async def _ask_all(self, operation: Operation, request: q.Request) -> list[Raw]:
        question = msgspec.json.encode(question_of(operation, request)) + b"\n"
        names, needed = self._sockets()
        replies: dict[str, Raw] = {}
        faults: dict[str, OSError] = {}

        async def ask_shard(name: str) -> None:
            try:
                replies[name] = msgspec.json.decode(await ask_socket(self._directory, name, question), type=Raw)
            except PermissionError as fault:
                fault.filename = fault.filename or self.name  # a socket's error names none
                raise
            except OSError as fault:
                faults[name] = fault

        async with trio.open_nursery() as nursery:
            for name in names:
                nursery.start_soon(ask_shard, name)
        if not replies:
            why = next(iter(faults.values()))
            raise AskFailed(
                f"no broker answers for {self.name} ({why.strerror or why}): start one with "
                f"`rumqd run --data {self.name}`, or name the directory of one that runs with --data"
            )
        for name in names:
            if name in faults and name in needed:
                raise AskFailed(
                    f"{name} of {self.name} does not answer ({faults[name].strerror or faults[name]}): a shard is "
                    "starting again, or is stuck; ask again, and see the broker's events"
                )
        return [replies[name] for name in names if name in replies]

    def _sockets(self) -> tuple[list[str], set[str]]:
        """Names of the sockets there, and of those that have to answer; others may be left of a killed process."""
        try:
            found = {each for each in os.listdir(self._directory) if each.startswith("ask") and each.endswith(".sock")}
        except PermissionError:
            raise
        except OSError:
            found = set()
        needed: set[str] = set()
        if os.path.exists(f"{self._directory}/{SHARDS}"):
            count = read_shard_count(RealFiles(), self._directory).shards
            needed = {socket_name(index) for index in range(count)}
        return sorted(found | needed | ({socket_name(0)} if not found else set()), key=index_of), needed


def index_of(name: str) -> int:
    """Of the shard of a socket: shard 0 says what is one for all."""
    number = name.removeprefix("ask").removesuffix(".sock").removeprefix("-")
    return int(number) if number.isdecimal() else 0
