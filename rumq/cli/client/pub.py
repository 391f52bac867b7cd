"""`rumqd pub`: publish from the command line, with the flags of mosquitto_pub."""

import argparse
import os
import sys
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, cast

from rumq.cli.client.connection_flags import (
    add_connection_flags,
    connect_arguments,
    mqtt_version,
    name_and_value,
    positive,
    url_topic,
)
from rumq.errors import ConfigError, Fault
from rumq.tracing.context import TraceContext

if TYPE_CHECKING:
    from rumq.client import Client, Outgoing, Properties

ABOUT = """\
Publish to a topic. With -q 1 or 2 it exits once the broker has acknowledged all messages; with durability "disk"
they are on disk then.
"""
EXAMPLES = """\
examples:
  rumqd pub plant/7/temp -m 21.5 -q 1
  rumqd pub plant/7/config -r -f config.json     retained: new subscribers get it at once
  rumqd pub plant/7/config -r -n                 an empty retained message clears it
  tail -f readings.txt | rumqd pub plant/7/temp -l -q 1
  rumqd pub ask/7 -m status --property response-topic=answer/7 --property correlation-data=42
  rumqd pub plant/7/temp -m 21.5 --user-property unit=C --user-property source=bench
  rumqd pub plant/7/temp -m 21.5 -q 1 --trace    a trace of OpenTelemetry: prints its id
  rumqd pub plant/7/temp -m 21.5 -h broker.example --cafile ca.pem --cert client.pem --key client.key
  rumqd pub -L mqtts://alice:secret@broker.example/plant/7/temp -m 21.5

exit status: 0 all published (and acknowledged, with -q 1 or 2), 2 invalid arguments, 1 any other error
"""

PROPERTIES = (
    "payload-format-indicator",
    "message-expiry-interval",
    "content-type",
    "response-topic",
    "correlation-data",
)
NUMBERS = {"payload-format-indicator": 1, "message-expiry-interval": 2**32 - 1}
READ_BYTES = 64 * 2**10


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_connection_flags(parser)
    parser.add_argument("topic", nargs="?", metavar="TOPIC")
    parser.add_argument("-t", "--topic", dest="topic_flag", metavar="TOPIC", help="the topic, as in mosquitto_pub")
    payload = add_payload_flags(parser)
    payload.add_argument("-l", "--lines", action="store_true", help="one message for each line of standard input")
    parser.add_argument("-q", "--qos", type=int, choices=(0, 1, 2), default=0, help="[0]")
    parser.add_argument("-r", "--retain", action="store_true", help="publish as retained message")
    parser.add_argument("--repeat", type=positive, default=1, metavar="N", help="publish it N times [1]")
    parser.add_argument(
        "--property",
        action="append",
        type=name_and_value,
        default=[],
        metavar="NAME=VALUE",
        help=f"MQTT 5: {', '.join(PROPERTIES)}",
    )
    parser.add_argument(
        "--user-property",
        action="append",
        type=name_and_value,
        default=[],
        metavar="NAME=VALUE",
        help="MQTT 5, repeatable",
    )
    parser.add_argument(
        "--trace",
        action="store_true",
        help="MQTT 5: begin a trace with each run, and print its id on standard error (docs/reference/tracing.md)",
    )


def add_payload_flags(parser: argparse.ArgumentParser) -> "argparse._MutuallyExclusiveGroup":
    """Where the payload comes from; `payload_of` reads it."""
    payload = parser.add_mutually_exclusive_group(required=True)
    payload.add_argument("-m", "--message", help="the payload, as text")
    payload.add_argument("-f", "--file", help="publish the content of this file")
    payload.add_argument("-s", "--stdin", action="store_true", help="publish all of standard input as one message")
    payload.add_argument("-n", "--null", action="store_true", help="an empty payload")
    return payload


def run(args: argparse.Namespace) -> int:
    topic = args.topic or args.topic_flag or url_topic(args)
    if not topic:
        raise ConfigError(Fault("pub", "TOPIC", "", "expected a topic, such as plant/7/temp"))
    properties = properties_of(args)
    import trio

    from rumq.mqtt.encode import encode
    from rumq.mqtt.packets import Publish

    try:
        encode(Publish(topic, b"", retain=args.retain, properties=properties), mqtt_version(args))
    except ValueError as fault:
        raise ConfigError(Fault("pub", "", "", str(fault))) from None
    payload = None if args.lines else payload_of(args)
    trio.run(publish_all, args, topic, payload, properties)
    return 0


def properties_of(args: argparse.Namespace) -> "Properties":
    """PUBLISH properties from the flags, by their MQTT 5 names with underscores. raises: ConfigError"""
    properties: dict[str, Any] = {}
    for name, text in args.property:
        source, shown = f"--property {name}", text
        if name not in PROPERTIES:
            raise ConfigError(Fault(source, "", "", f"no such property; expected one of {', '.join(PROPERTIES)}"))
        value: object = text
        if name in NUMBERS:
            if not (text.isascii() and text.isdecimal() and len(text) < 11 and int(text) <= NUMBERS[name]):
                raise ConfigError(Fault(source, "", "", f"{shown}: expected a whole number, 0 to {NUMBERS[name]}"))
            value = int(text)
        elif name == "correlation-data":
            value = text.encode(errors="surrogateescape")
        properties[name.replace("-", "_")] = value
    pairs = list(args.user_property)
    if args.trace:
        context = TraceContext(os.urandom(16), os.urandom(8))
        pairs.append(("traceparent", context.traceparent.decode()))
        print(f"trace {context.trace.hex()}", file=sys.stderr)
    if pairs:
        properties["user_properties"] = pairs
    if properties and mqtt_version(args) < 5:
        raise ConfigError(Fault("--protocol-version 3.1.1", "", "", "properties need MQTT 5"))
    return cast("Properties", properties)


async def publish_all(args: argparse.Namespace, topic: str, payload: bytes | None, properties: "Properties") -> None:
    """Publish `payload`, or the lines of standard input where it is None."""
    from rumq.client import Outgoing, connect

    def outgoing(payload: bytes) -> "Outgoing":
        return Outgoing(topic, payload, qos=args.qos, retain=args.retain, properties=properties)

    async with connect(**connect_arguments(args)) as client:
        if payload is None:
            async for lines in batches_of_lines():
                await client.publish_batch([outgoing(line) for line in lines])
        else:
            await publish_repeated(client, outgoing(payload), args.repeat)


async def publish_repeated(client: "Client", message: "Outgoing", count: int) -> None:
    for start in range(0, count, 1000):
        await client.publish_batch([message] * min(1000, count - start))


def payload_of(args: argparse.Namespace) -> bytes:
    if args.file is not None:
        try:
            with open(args.file, "rb") as file:
                return file.read()
        except OSError as fault:
            raise ConfigError(Fault("--file", args.file, "", f"cannot be read: {fault.strerror}")) from None
    if args.stdin:
        return sys.stdin.buffer.read()
    return b"" if args.null else args.message.encode(errors="surrogateescape")


async def batches_of_lines() -> AsyncIterator[list[bytes]]:
    """Lines of standard input without line ends, as soon as they are available, for `tail -f`."""
    import trio

    rest = b""
    # os.read returns available bytes; in a thread, because epoll does not support files.
    while chunk := await trio.to_thread.run_sync(os.read, sys.stdin.fileno(), READ_BYTES, abandon_on_cancel=True):
        *lines, rest = (rest + chunk).split(b"\n")
        if lines:
            yield [line.removesuffix(b"\r") for line in lines]
    if rest:
        yield [rest]
