"""The socket at which the gateway asks the Kafka server for figures and about groups: a line in, a line of JSON out.

`rumq.gateway.broker.service_client` asks. Only the broker's own user can, whom the gateway lets administrators be."""

from __future__ import annotations

import os

import msgspec
import trio

from rumq.admin.figures import KafkaFigures
from rumq.admin.kafka_groups import KAFKA_OPERATIONS, KafkaAction, KafkaLine, KafkaReply
from rumq.gateway.broker.service_client import FIGURES_LINE, KAFKA_NAME
from rumq.kafka.reports.group_actions import act
from rumq.kafka.reports.group_report import GroupReport
from rumq.kafka.server import KafkaServer
from rumq.unix_address import Address

SECONDS_MAX = 5.0
LINE_BYTES_MAX = 1 << 18  # a user's name may be long
READ_BYTES = 1 << 16


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
                    line = await line_of(stream)
                    if line == FIGURES_LINE:
                        await stream.send_all(msgspec.json.encode(figures_of(server)) + b"\n")
                    elif line:
                        await stream.send_all(msgspec.json.encode(await reply_to(line, server)) + b"\n")
        except (OSError, trio.BrokenResourceError):
            pass  # whoever asked is gone

    try:
        await trio.serve_listeners(answer, [trio.SocketListener(sock)])
    finally:
        if os.path.exists(path):
            os.unlink(path)


async def line_of(stream: trio.SocketStream) -> bytes:
    """With its end; empty: there is none. raises: trio.BrokenResourceError"""
    got = bytearray()
    while not got.endswith(b"\n"):
        more = await stream.receive_some(READ_BYTES)
        if not more or len(got) + len(more) > LINE_BYTES_MAX:
            return b""
        got += more
    return bytes(got)


async def reply_to(line: bytes, server: KafkaServer) -> KafkaReply:
    try:
        found = msgspec.json.decode(line, type=KafkaLine)
        asked = msgspec.json.decode(found.request, type=KAFKA_OPERATIONS[found.ask].request)
    except (msgspec.MsgspecError, KeyError) as fault:
        return KafkaReply(refused=f"the Kafka server does not understand what it is asked: {fault}")
    try:
        if isinstance(asked, KafkaAction):
            return await act(server.door, asked)
        return await GroupReport(server.door).reply(asked)
    except OSError as fault:
        return KafkaReply(refused=f"the log cannot be read: {fault.strerror or fault}")


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
