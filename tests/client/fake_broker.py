"""A broker of the codec and memory streams: the test says what it answers, and the clock jumps."""

import functools
from collections.abc import Awaitable, Callable
from typing import Any

import trio
import trio.testing

from rumq.mqtt.decode import decode
from rumq.mqtt.encode import encode
from rumq.mqtt.frames import FrameReader
from rumq.mqtt.packets import Connack, Connect, Packet


def simulated(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Run an async test with a clock that jumps to the next deadline once all tasks wait."""

    @functools.wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        async def limited() -> None:
            with trio.fail_after(3600):  # simulated seconds: a test that waits for ever fails at once
                await test(*args, **kwargs)

        trio.run(limited, clock=trio.testing.MockClock(autojump_threshold=0))

    return run


class Peer:
    """The broker's end of one connection."""

    def __init__(self, stream: trio.abc.Stream) -> None:
        self._stream, self._frames = stream, FrameReader()
        self._packets: list[Packet] = []
        self.version = 5

    async def receive(self) -> Packet:
        """The next packet; raises EOFError where the client has hung up."""
        while not self._packets:
            try:
                chunk = await self._stream.receive_some()
            except trio.BrokenResourceError:
                chunk = b""
            if not chunk:
                raise EOFError
            self._frames.receive(chunk)
            self._packets += [decode(*frame, self.version) for frame in self._frames.frames()]
        return self._packets.pop(0)

    async def receive_all(self) -> list[Packet]:
        """Whatever the client sends before it waits for us."""
        packets: list[Packet] = []
        with trio.move_on_after(0.001):
            while True:
                packets.append(await self.receive())
        return packets

    async def send(self, *packets: Packet) -> None:
        await self._stream.send_all(b"".join(encode(packet, self.version) for packet in packets))

    async def send_bytes(self, raw: bytes) -> None:
        await self._stream.send_all(raw)

    async def hang_up(self) -> None:
        await self._stream.aclose()

    async def gone(self) -> bool:
        """Whether the client hangs up without another packet."""
        try:
            await self.receive()
        except EOFError:
            return True
        return False


class FakeBroker:
    """Takes connections from `open_stream` and gives them to `accept`, in order."""

    def __init__(self) -> None:
        self._arrive, self._arrived = trio.open_memory_channel[Peer](float("inf"))
        self.tried_at: list[float] = []
        self.is_up = True

    async def open_stream(self) -> trio.abc.Stream:
        await trio.lowlevel.checkpoint()
        self.tried_at.append(trio.current_time())
        if not self.is_up:
            raise OSError("all attempts failed")
        ours, theirs = trio.testing.memory_stream_pair()
        self._arrive.send_nowait(Peer(ours))
        return theirs

    async def arrived(self) -> Peer:
        """The next connection, before its CONNECT is read."""
        return await self._arrived.receive()

    async def accept(self, connack: Connack | None = None) -> tuple[Peer, Connect]:
        """The next connection, after its CONNECT and our CONNACK."""
        peer = await self._arrived.receive()
        connect = await peer.receive()
        assert isinstance(connect, Connect)
        peer.version = connect.version
        await peer.send(connack or Connack())
        return peer, connect
