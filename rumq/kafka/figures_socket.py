"""The socket at which the gateway asks for figures of the Kafka server: a line in, a line of JSON out.

`rumq.gateway.broker.service_client` asks. Only the broker's own user can."""

from __future__ import annotations

import os

import msgspec
import trio

from rumq.admin.figures import KafkaFigures
from rumq.gateway.broker.service_client import KAFKA_NAME
from rumq.kafka.server import KafkaServer
from rumq.unix_address import Address

SECONDS_MAX = 5.0
LINE_BYTES_MAX = 64


async def answer_figures(directory: str, server: KafkaServer) -> None:
    """Until cancelled. Without a directory that can be written there are no figures, and all else goes on."""
    path = f"{directory}/{KAFKA_NAME}"
    sock = trio.socket.socket(trio.socket.AF_UNIX, trio.socket.SOCK_STREAM)
    try:
        if os.path.exists(path):
            os.unlink(path)  # of one that was killed
        with Address(path) as address:
            await sock.bind(address)
        os.chmod(path, 0o600)
        sock.listen()
    except OSError:
        await trio.sleep_forever()

    async def answer(stream: trio.SocketStream) -> None:
        try:
            with trio.move_on_after(SECONDS_MAX):
                async with stream:
                    if await stream.receive_some(LINE_BYTES_MAX):
                        await stream.send_all(msgspec.json.encode(figures_of(server)) + b"\n")
        except (OSError, trio.BrokenResourceError):
            pass  # whoever asked is gone

    try:
        await trio.serve_listeners(answer, [trio.SocketListener(sock)])
    finally:
        if os.path.exists(path):
            os.unlink(path)


def figures_of(server: KafkaServer) -> KafkaFigures:
    counted, groups = server.door.figures, server.door.groups
    return KafkaFigures(
        connections=server.connections.held, records=counted.records, bytes=counted.bytes, fetches=counted.fetches,
        refused_logins=counted.refused_logins, refused_connections=counted.refused_connections,
        lost_records=counted.lost_records,
        groups=0 if groups is None else groups.coordinator.count,
        group_members=0 if groups is None else groups.coordinator.member_count,
        commits=0 if groups is None else groups.commits,
    )  # fmt: skip
