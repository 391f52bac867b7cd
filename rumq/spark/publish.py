"""Rows as messages, and a connection that publishes them. Knows no Spark; the broker may be any of MQTT 5."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import trio

from rumq.client import Outgoing, connect_over
from rumq.mqtt.errors import TopicNameInvalid
from rumq.mqtt.topics import check_topic_name
from rumq.spark.errors import BadOption, BadRow, UnknownOption
from rumq.spark.options import near, truth, word

NAMES = ("broker", "topic", "qos", "retain", "username", "passwordFile", "tlsCa", "clientId", "origin")
SPARKS_OWN = {"path", "checkpointlocation", "queryname", "outputmode"}
PORTS = {"mqtt": 1883, "mqtts": 8883}
ORIGIN = "rumq-origin"
WINDOW = 5000  # messages that are handed over at once; how many are on their way the broker says
COLUMNS = {
    "topic": ("string",),
    "payload": ("binary", "string"),
    "qos": ("tinyint", "smallint", "int", "bigint"),
    "retain": ("boolean",),
    "properties": ("array<struct<key:string,value:string>>", "map<string,string>"),
    "content_type": ("string",),
    "response_topic": ("string",),
    "correlation_data": ("binary",),
    "message_expiry": ("bigint", "int"),
    "payload_format": ("tinyint", "int"),
}
PLAIN = {
    "content_type": "content_type", "response_topic": "response_topic", "correlation_data": "correlation_data",
    "message_expiry": "message_expiry_interval", "payload_format": "payload_format_indicator",
}  # fmt: skip


@dataclass(frozen=True)
class Target:
    """Where to publish, and how what a row does not say. A password is read where it is used, from its file."""

    host: str
    port: int
    tls: bool
    tls_ca: str | None = None
    topic: str | None = None
    qos: int = 1
    retain: bool = False
    username: str | None = None
    password_file: str | None = None
    client_id: str = ""
    origin: bool = False


def parse_target(given: Mapping[str, str]) -> Target:
    """raises: BadOption, UnknownOption"""
    known = {name.lower(): name for name in NAMES}
    said = {name.lower(): value for name, value in given.items()}
    for name in said:
        if name == "password":
            raise UnknownOption(
                name, "options are in the plans and logs of Spark: put it in a file, passwordFile"
            )
        if name not in known and name not in SPARKS_OWN:
            raise UnknownOption(name, near(name, known))
    broker = said.get("broker", "")
    allowed = "mqtt://host:1883 or mqtts://host:8883"
    try:
        parts = urlsplit(broker)
        port = parts.port
    except ValueError:
        raise BadOption("broker", broker, allowed) from None
    if parts.scheme not in PORTS or not parts.hostname or parts.path.strip("/") or parts.username:
        raise BadOption("broker", broker, allowed)
    return Target(
        parts.hostname,
        port or PORTS[parts.scheme],
        parts.scheme == "mqtts",
        said.get("tlsca"),
        said.get("topic"),
        int(word("qos", said.get("qos", "1"), "0", "1", "2")),
        truth("retain", said.get("retain", "false")),
        said.get("username"),
        said.get("passwordfile"),
        said.get("clientid", ""),
        truth("origin", said.get("origin", "false")),
    )


def messages(
    batch: Any, target: Target, origin: Callable[[int], str] | None, first_row: int
) -> Iterator[Outgoing]:
    """A record batch as messages. origin: what a row's number is told as. raises: BadRow"""
    columns = {name: batch.column(name).to_pylist() for name in batch.schema.names}
    absent = [None] * batch.num_rows
    topics = columns.get("topic", [target.topic] * batch.num_rows)
    payloads = columns.get("payload", absent)
    levels, retained = columns.get("qos", absent), columns.get("retain", absent)
    users = columns.get("properties", absent)
    plain = [(word_, columns[name]) for name, word_ in PLAIN.items() if name in columns]
    checked: set[str] = set()
    for n in range(batch.num_rows):
        topic = target.topic or topics[n]
        if topic not in checked:
            if topic is None:
                raise BadRow("topic", "null", "a topic, in the column or as the option topic")
            try:
                check_topic_name(topic)
            except TopicNameInvalid as fault:
                raise BadRow("topic", topic, f"one that may be published to ({fault})") from None
            checked.add(topic)
        qos = target.qos if levels[n] is None else levels[n]
        if qos not in (0, 1, 2):
            raise BadRow("qos", str(qos), "0, 1 or 2")
        given: Any = {name: values[n] for name, values in plain if values[n] is not None}
        pairs = [pair if isinstance(pair, tuple) else (pair["key"], pair["value"]) for pair in users[n] or ()]
        if origin is not None:
            pairs.append((ORIGIN, origin(first_row + n)))
        if pairs:
            given["user_properties"] = pairs
        payload = payloads[n] or b""
        yield Outgoing(
            topic,
            payload.encode() if isinstance(payload, str) else payload,
            qos,
            target.retain if retained[n] is None else retained[n],
            given,
        )


async def publish_all(batches: Iterable[Any], target: Target, origin: Callable[[int], str] | None) -> int:
    """Publish every row in order; returns once the broker has acknowledged all, with their number.

    raises: Refused, ConnectionLost, BadRow
    """

    async def open_stream() -> trio.abc.Stream:
        stream: trio.abc.Stream = await trio.open_tcp_stream(target.host, target.port)
        if target.tls:
            context = ssl.create_default_context(cafile=target.tls_ca)
            stream = trio.SSLStream(stream, context, server_hostname=target.host)
        return stream

    password = Path(target.password_file).read_text().strip() if target.password_file else None
    rows = 0
    # No keep-alive: between two batches Spark computes, and nothing else runs here meanwhile.
    options = {
        "username": target.username,
        "password": password,
        "keep_alive": 0,
        "client_id": target.client_id,
    }
    async with connect_over(open_stream, **options) as client:
        for batch in batches:
            for at in range(0, batch.num_rows, WINDOW):
                part = batch.slice(at, WINDOW)
                await client.publish_batch(list(messages(part, target, origin, rows)))
                rows += part.num_rows
    return rows
