"""A client of ours and the broker's end of its connection, met."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import trio

from rumq.client import Client, Message, connect_over
from rumq.mqtt.packets import (
    Connack,
    Disconnect,
)
from tests.client.fake_broker import FakeBroker, Peer


@asynccontextmanager
async def connected(
    connack: Connack | None = None, broker: FakeBroker | None = None, **options: Any
) -> AsyncIterator[tuple[Client, Peer]]:
    """A client and its broker's end, which hangs up once the client says DISCONNECT."""
    broker = broker or FakeBroker()
    async with trio.open_nursery() as nursery:
        peers: list[Peer] = []

        async def accept() -> None:
            peers.append((await broker.accept(connack))[0])

        nursery.start_soon(accept)
        try:
            async with connect_over(broker.open_stream, **options) as client:
                [peer] = peers
                yield client, peer
                nursery.start_soon(until_disconnect, peer)
        except BaseException as error:
            failed: BaseException | None = error
        else:
            failed = None
        nursery.cancel_scope.cancel()
    if failed is not None:
        raise failed


async def until_disconnect(peer: Peer) -> None:
    while not isinstance(await peer.receive(), Disconnect):
        pass
    await peer.hang_up()


async def take(client: Client, count: int) -> list[Message]:
    messages: list[Message] = []
    while len(messages) < count:
        messages += await client.receive_batch(messages_max=count - len(messages))
    return messages
