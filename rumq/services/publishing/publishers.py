"""Connections on which the services publish, one for each user: rules, quotas and durability are those of MQTT.

They go to the Unix socket in the data directory on which the broker takes a user name without a password, as the
gateway's do. Each has a random client id, by which its messages are found again in the log."""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
from collections import OrderedDict
from functools import partial

from commitlog import Chunk
from rumq.gateway.broker.broker_socket import OWN
from rumq.mqtt.errors import MqttFault
from rumq.services.contract.faults import CallFault
from rumq.services.publishing.batch import PublishBatch
from rumq.services.publishing.pipe import PipeBroken, PublishPipe
from rumq.services.publishing.places import PlaceSearch
from rumq.services.reading.log_tail import FollowedLog, whole_piece
from rumq.unix_address import Address

CONNECTIONS_MAX = 64
CONNECT_SECONDS_MAX = 5.0
READ_BYTES = 1 << 18
# An idle broker marks what is committed within 50 ms; a copy may be some hundred ms behind, or not be there at all.
SEARCH_SECONDS = {True: 1.0, False: 10.0}  # in a cluster, and alone, where every partition is here
MAY_BE_PUBLISHED = "messages that were sent and not answered may be published or not"


class Publisher:
    """One connection. failure: why it has ended"""

    def __init__(self, path: str, pipe: PublishPipe, tail: FollowedLog, search_seconds: float) -> None:
        self._path, self._pipe, self._tail = path, pipe, tail
        self._search_seconds = search_seconds
        self._search = PlaceSearch()
        self._at: dict[str, int] = {}
        self._wake, self._waken, self.ready = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.failure: CallFault | None = None
        self.task: asyncio.Task[None] | None = None

    @property
    def is_idle(self) -> bool:
        return self._pipe.is_idle and not self._search.left

    @property
    def packet_bytes_max(self) -> int:
        return self._pipe.packet_bytes_max

    def put(self, caller: object, batch: PublishBatch) -> None:
        if self.failure is not None:
            batch.fail(self.failure)
            return
        self._pipe.put(caller, batch)
        self._wake.set()  # for the writer
        self._waken.set()  # for the search

    async def run(self) -> None:
        """Keep the connection until it fails or is cancelled."""
        fault = CallFault("BROKER_AWAY", f"the connection to the broker was closed; {MAY_BE_PUBLISHED}")
        try:
            await self._tail.look()
            # Nothing that this client id publishes lies before.
            self._at = {name: view.end_lsn for name, view in self._tail.views.items()}
            async with asyncio.timeout(CONNECT_SECONDS_MAX):
                reader, writer = await open_broker(self._path)
            try:
                await self._serve(reader, writer)
            finally:
                writer.transport.abort()
        except PipeBroken as broken:
            fault = broken.fault
        except TimeoutError:
            fault = CallFault("BROKER_AWAY", f"the broker does not answer within {CONNECT_SECONDS_MAX:.0f} s")
        except (OSError, MqttFault) as lost:
            why = lost.strerror or str(lost) if isinstance(lost, OSError) else str(lost)
            fault = CallFault("BROKER_AWAY", f"the broker of this node is away: {why}; {MAY_BE_PUBLISHED}")
        finally:
            self.failure = fault
            self.ready.set()
            self._pipe.fail(fault)
            self._search.give_up(float("inf"))  # those that were acknowledged are published

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(OWN + self._pipe.connect())
        while not self._pipe.is_open:
            async with asyncio.timeout(CONNECT_SECONDS_MAX):
                self._take(await reader.read(READ_BYTES))
        self.ready.set()
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._write(writer))
                tasks.create_task(self._locate())
                await self._read(reader)
        except BaseExceptionGroup as group:
            raise group.exceptions[0] from None

    async def _read(self, reader: asyncio.StreamReader) -> None:
        loop = asyncio.get_running_loop()
        while True:
            self._take(await reader.read(READ_BYTES))
            self._search.acknowledged(self._pipe.acknowledged, loop.time())
            self._pipe.acknowledged.clear()
            self._wake.set()
            self._waken.set()

    def _take(self, data: bytes) -> None:
        if not data:
            raise ConnectionResetError("it closed the connection")
        self._pipe.receive(data)

    async def _write(self, writer: asyncio.StreamWriter) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            packets = self._pipe.take_packets()
            if packets:
                writer.write(b"".join(packets))
                await writer.drain()

    async def _locate(self) -> None:
        """Look for acknowledged messages in the log as it grows."""
        loop = asyncio.get_running_loop()
        while True:
            await self._waken.wait()
            self._waken.clear()
            with self._tail.urgent():
                while not self.is_idle:
                    moved = self._tail.moved_now
                    await self._look()
                    try:
                        async with asyncio.timeout(self._search_seconds / 4):
                            await moved.wait()
                    except TimeoutError:
                        pass
                    self._search.give_up(loop.time() - self._search_seconds)

    async def _look(self) -> None:
        own_name = self._pipe.client_id.encode()
        for name, view in self._tail.views.items():
            begin = self._at.get(name, view.first_lsn)
            end = view.end_lsn
            if begin >= end:
                continue
            known = await self._tail.on_thread(partial(view.publishers, begin, end))
            own = {number for number, client in known.items() if client == own_name}
            if own:
                piece = self._tail.maybe_kept(name, begin, end)
                if piece is None:
                    piece = await self._tail.on_thread(partial(whole_piece, view, begin, end))
                for chunk in piece:
                    if isinstance(chunk, Chunk):
                        self._search.look(name, chunk, own)
            self._at[name] = end


class UserPublishers:
    """path: of the broker's socket; node: of a cluster, "" for a broker alone; published: messages so far"""

    def __init__(self, path: str, node: str, tail: FollowedLog, packet_bytes_max: int) -> None:
        self._path, self._tail, self._packet_bytes_max = path, tail, packet_bytes_max
        self._is_cluster = bool(node)
        self._name = "-".join(filter(None, ("rumq-grpc", node, str(os.getpid()))))
        self._users: OrderedDict[str | None, Publisher] = OrderedDict()
        self.published = 0

    async def publisher(self, user: str | None) -> Publisher:
        """An open connection of a user. raises: CallFault"""
        found = self._users.get(user)
        if found is None or found.failure is not None:
            found = self._open(user)
        self._users.move_to_end(user)
        await found.ready.wait()
        if found.failure is not None:
            raise found.failure
        return found

    def _open(self, user: str | None) -> Publisher:
        while len(self._users) >= CONNECTIONS_MAX:
            oldest = next((each for each, known in self._users.items() if known.is_idle), None)
            if oldest is None and user not in self._users:
                raise CallFault(
                    "TOO_MANY_CALLS", f"{CONNECTIONS_MAX} users publish at this moment: try again later",
                    limit=CONNECTIONS_MAX,
                )  # fmt: skip
            self._close(oldest if user not in self._users else user)
        # Unique in the cluster, and nothing that a client could foresee.
        client_id = f"{self._name}-{secrets.token_hex(8)}"
        pipe = PublishPipe(client_id, user, self._packet_bytes_max)
        made = self._users[user] = Publisher(self._path, pipe, self._tail, SEARCH_SECONDS[self._is_cluster])
        made.task = asyncio.create_task(made.run(), name=f"publisher {client_id}")
        return made

    def _close(self, user: str | None) -> None:
        task = self._users.pop(user).task
        if task is not None:
            task.cancel()

    async def close(self) -> None:
        tasks = [each.task for each in self._users.values() if each.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def open_broker(path: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """raises: OSError"""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.setblocking(False)
    try:
        with Address(path) as address:
            await asyncio.get_running_loop().sock_connect(sock, address)
        return await asyncio.open_unix_connection(sock=sock)
    except BaseException:
        sock.close()
        raise
