"""A queue of rumq over REST: a gateway, a broker of one shard, a client of MessagePack over HTTP in this process."""

from __future__ import annotations

from pathlib import Path

import msgspec
import trio

from bench.connections import BenchFault
from bench.gateway.running import Running, running
from bench.queue.of_rumq import DEPTH_SECONDS_MAX, FLAGS, pids_of
from bench.queue.result import BATCH, CONSUMERS, PRODUCERS, Ledger, Meter, QueueRun, batches_of, payload

MSGPACK = "application/msgpack"
PUSH = "/api/v1/queues/bench/messages?ids=false"
RECEIVE_BYTES = 1 << 18


class Connection:
    """One connection that is kept alive."""

    def __init__(self, stream: trio.SocketStream, token: str) -> None:
        self._stream, self._token = stream, token
        self._buffer = b""

    @classmethod
    async def open(cls, broker: Running) -> Connection:
        return cls(await trio.open_tcp_stream("127.0.0.1", broker.http_port), broker.token)

    async def ask(self, method: str, target: str, body: bytes = b"", kind: str = MSGPACK) -> bytes:
        """raises: BenchFault for anything but success"""
        head = (
            f"{method} {target} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {self._token}\r\n"
            f"accept: {MSGPACK}\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n\r\n"
        )
        await self._stream.send_all(head.encode() + body)
        while b"\r\n\r\n" not in self._buffer:
            await self._fill()
        answer, self._buffer = self._buffer.split(b"\r\n\r\n", 1)
        lines = answer.decode("latin-1").lower().split("\r\n")
        size = next(int(each[16:]) for each in lines if each.startswith("content-length: "))
        while len(self._buffer) < size:
            await self._fill()
        found, self._buffer = self._buffer[:size], self._buffer[size:]
        if not lines[0].split()[1].startswith("20"):
            raise BenchFault(f"{method} {target}: {lines[0]}: {found[:300]!r}")
        return found

    async def _fill(self) -> None:
        data = await self._stream.receive_some(RECEIVE_BYTES)
        if not data:
            raise BenchFault("the gateway closed a connection")
        self._buffer += data


class Message(msgspec.Struct):
    id: str
    payload: bytes


class Taken(msgspec.Struct):
    messages: list[Message]


TAKEN = msgspec.msgpack.Decoder(Taken)


def measure(folder: Path, messages: int, depth: int) -> list[QueueRun]:
    """Of an empty queue: a depth is the same to every door. raises: Lost, BenchFault"""
    with running(*FLAGS) as broker:
        return [trio.run(run, broker, messages)]


async def run(broker: Running, messages: int) -> QueueRun:
    first = await Connection.open(broker)
    made = {"records_max": 0, "ttl_seconds": DEPTH_SECONDS_MAX}
    await first.ask("POST", "/api/v1/queues/bench", msgspec.json.encode(made), "application/json")
    await create_channel(first, "work")
    ledger = Ledger(messages)
    done = trio.Event()

    async def produce(number: int) -> None:
        connection = await Connection.open(broker)
        for numbers in batches_of(number, messages):
            body = msgspec.msgpack.encode([{"payload": payload(each)} for each in numbers])
            await connection.ask("POST", PUSH, body)

    async def consume(number: int) -> None:
        connection = await Connection.open(broker)
        name = f"consumer-{number}"
        take = f"/api/v1/channels/work/messages?max={BATCH}&credit={BATCH}&wait=5&consumer={name}"
        while True:
            batch = TAKEN.decode(await connection.ask("GET", take)).messages
            for each in batch:
                ledger.consumed(each.payload)
            if batch:
                given = {"consumer": name, "acknowledge": [each.id for each in batch]}
                answer = msgspec.json.encode(given)
                await connection.ask("POST", "/api/v1/channels/work/acknowledgements", answer, "application/json")
            if not ledger.left:
                done.set()

    meter = Meter(pids_of(broker))
    async with trio.open_nursery() as nursery:
        for number in range(PRODUCERS):
            nursery.start_soon(produce, number)
        for number in range(CONSUMERS):
            nursery.start_soon(consume, number)
        with trio.move_on_after(60 + messages / 1000):
            await done.wait()
        found = meter.run_of(messages)
        nursery.cancel_scope.cancel()
    ledger.check()
    return found


async def create_channel(connection: Connection, channel_id: str) -> None:
    body = msgspec.json.encode({"id": channel_id, "dead_letters": "drop"})
    await connection.ask("POST", "/api/v1/queues/bench/channels", body, "application/json")
