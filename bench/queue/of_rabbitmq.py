"""A quorum queue of RabbitMQ on one node: Debian's rabbitmq-server, with a client of raw frames in this process.

Messages are persistent and confirmed, consumed with acknowledgements; windows are those of rumq's run. RabbitMQ has no
second cursor in a queue: `depth` messages are pushed first, and consumed with the others."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import struct
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import trio

from bench.connections import BenchFault
from bench.peers.peer import HOST, free_port
from bench.process import tree
from bench.queue import amqp
from bench.queue.result import BATCH, CONSUMERS, EMPTY, PRODUCERS, Ledger, Meter, QueueRun, batches_of, payload

SERVER = "/usr/lib/rabbitmq/bin/rabbitmq-server"
QUEUE = "bench"
START_SECONDS = 60.0
RECEIVE_BYTES = 1 << 18


def why_not() -> str:
    """Why RabbitMQ cannot take part; empty when it can."""
    if not os.path.exists(SERVER):
        return "rabbitmq-server is not installed: apt-get install rabbitmq-server"
    return "" if shutil.which("epmd") else "epmd is not installed, which Erlang needs"


@contextmanager
def broker(folder: Path) -> Iterator[tuple[int, int]]:
    """A node of its own, with everything it keeps in `folder`; its port and pid."""
    port, spread, names = free_port(), free_port(), free_port()
    plugins = folder / "plugins"
    plugins.write_text("[].")
    environment = {
        **os.environ, "HOME": str(folder), "RABBITMQ_NODENAME": "bench@localhost", "RABBITMQ_NODE_PORT": str(port),
        "RABBITMQ_DIST_PORT": str(spread), "ERL_EPMD_PORT": str(names), "RABBITMQ_NODE_IP_ADDRESS": HOST,
        "RABBITMQ_MNESIA_BASE": str(folder / "mnesia"), "RABBITMQ_LOG_BASE": str(folder / "log"),
        "RABBITMQ_CONFIG_FILE": str(folder / "none"), "RABBITMQ_ENABLED_PLUGINS_FILE": str(plugins),
        "RABBITMQ_PID_FILE": str(folder / "pid"),
    }  # fmt: skip
    process = subprocess.Popen([SERVER], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_port(port, process)
        yield port, process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
        # The name server that it has started on a port of its own.
        subprocess.run(["epmd", "-port", str(names), "-kill"], env=environment, capture_output=True, check=False)


def wait_port(port: int, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until and process.poll() is None:
        try:
            socket.create_connection((HOST, port), 1).close()
        except OSError:
            time.sleep(0.2)
        else:
            return
    raise BenchFault("rabbitmq-server does not begin")


class Connection:
    """One connection with one channel."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self._stream = stream
        self._frames = amqp.Frames()
        self._early: list[amqp.Frame] = []

    @classmethod
    async def open(cls, port: int) -> Connection:
        made = cls(await trio.open_tcp_stream(HOST, port))
        await made.send(amqp.GREETING)
        await made.expect(10, 10)
        await made.ask(amqp.start_ok("guest", "guest"), 10, 30)
        await made.send(amqp.TUNE_OK)
        await made.ask(amqp.OPEN, 10, 41)
        await made.ask(amqp.CHANNEL_OPEN, 20, 11)
        return made

    async def send(self, data: bytes) -> None:
        await self._stream.send_all(data)

    async def receive(self) -> list[amqp.Frame]:
        found, self._early = self._early, []
        while not found:
            data = await self._stream.receive_some(RECEIVE_BYTES)
            if not data:
                raise BenchFault("RabbitMQ closed a connection")
            found = list(self._frames.receive(bytes(data)))
        return found

    async def expect(self, of: int, number: int) -> None:
        for at, each in enumerate(found := await self.receive()):
            if each.kind == amqp.METHOD and amqp.method_of(each.body) == (of, number):
                self._early = found[at + 1 :]
                return
        raise BenchFault(f"RabbitMQ does not answer {of}.{number}: {found}")

    async def ask(self, data: bytes, of: int, number: int) -> None:
        await self.send(data)
        await self.expect(of, number)


def measure(folder: Path, messages: int, depth: int) -> list[QueueRun]:
    """raises: Lost, BenchFault"""
    with broker(folder) as (port, pid):
        return [trio.run(run, port, pid, messages, depth)]


async def run(port: int, pid: int, messages: int, depth: int) -> QueueRun:
    first = await Connection.open(port)
    await first.ask(amqp.declare_quorum(QUEUE), 50, 11)
    if depth:
        await first.ask(amqp.CONFIRM_SELECT, 85, 11)
        await push(first, [payload(messages + each) for each in range(depth)])
    ledger = Ledger(messages + depth)
    done = trio.Event()

    async def produce(number: int) -> None:
        connection = await Connection.open(port)
        await connection.ask(amqp.CONFIRM_SELECT, 85, 11)
        await push(connection, [payload(each) for numbers in batches_of(number, messages) for each in numbers])

    async def consume() -> None:
        connection = await Connection.open(port)
        await connection.ask(amqp.qos(BATCH), 60, 11)
        await connection.send(amqp.consume(QUEUE))
        tag = 0
        while True:
            for each in await connection.receive():
                if each.kind == amqp.METHOD and amqp.method_of(each.body) == amqp.DELIVER:
                    at = 5 + each.body[4]
                    (tag,) = struct.unpack_from(">Q", each.body, at)
                elif each.kind == amqp.BODY:
                    ledger.consumed(each.body)
            if tag:
                await connection.send(amqp.ack(tag, multiple=True))
                tag = 0
            if not ledger.left:
                done.set()

    meter = Meter({"rabbitmq": tree(pid)})
    async with trio.open_nursery() as nursery:
        for number in range(PRODUCERS):
            nursery.start_soon(produce, number)
        for _ in range(CONSUMERS):
            nursery.start_soon(consume)
        with trio.move_on_after(60 + (messages + depth) / 500):
            await done.wait()
        found = meter.run_of(messages + depth, f"{depth:,} deep, and all of them" if depth else EMPTY)
        nursery.cancel_scope.cancel()
    ledger.check()
    return found


async def push(connection: Connection, payloads: list[bytes]) -> None:
    """With at most two batches unconfirmed. raises: BenchFault"""
    sent = 0
    outstanding: set[int] = set()  # tags, from 1
    while outstanding or sent < len(payloads):
        if sent < len(payloads) and len(outstanding) <= BATCH:
            some = payloads[sent : sent + BATCH]
            await connection.send(b"".join([amqp.publish(QUEUE, each) for each in some]))
            outstanding.update(range(sent + 1, sent + 1 + len(some)))
            sent += len(some)
            continue
        for found in await connection.receive():
            if found.kind == amqp.METHOD:
                name = amqp.method_of(found.body)
                if name != amqp.ACK:
                    raise BenchFault(f"RabbitMQ does not confirm: {name}")
                tag, multiple = struct.unpack_from(">QB", found.body, 4)
                if multiple:
                    outstanding = {each for each in outstanding if each > tag}
                else:
                    outstanding.discard(tag)
