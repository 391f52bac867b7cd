"""`rumqd sub`: subscribe, optionally with replay, and print messages, with the flags of mosquitto_sub."""

import argparse
import sys
from typing import TYPE_CHECKING

from rumq.cli.client.connection_flags import (
    add_connection_flags,
    connect_arguments,
    positive,
    thirty_two_bits,
    url_topic,
)
from rumq.cli.message_format import HELP, JSON, PAYLOAD, VERBOSE, Piece, Shown, formatter
from rumq.errors import ConfigError, Fault

if TYPE_CHECKING:
    import trio

    from rumq.client import Client, Message

ABOUT = """\
Subscribe to topic filters and print messages until SIGINT or SIGTERM. With --from, the broker first replays
its log and then continues live, without a gap.
"""
EXAMPLES = f"""\
examples:
  rumqd sub -v 'plant/#'                         topic and payload
  rumqd sub plant/7/temp pump/+/state -q 1       several filters
  rumqd sub 'plant/#' --from earliest            replay the whole log, then live
  rumqd sub 'plant/#' --from -1h                 replay the last hour; or -90s, -15m, -7d
  rumqd sub 'plant/#' --from 2026-11-20T06:00:00Z
  rumqd sub plant/7/temp --from 1000 -C 10       ten messages of one topic from its offset 1,000
  rumqd sub 'plant/#' -F '%I %t %o %p'           time, topic, offset, payload
  rumqd sub 'plant/#' --json | jq .payload
  rumqd sub 'plant/#' -q 1 -i desk --session-expiry 86400   reconnect within a day without loss
  rumqd sub 'plant/#' -h broker.example --cafile ca.pem --cert client.pem --key client.key
  rumqd sub 'plant/#' -L wss://alice:secret@broker.example:8884/mqtt --cafile ca.pem

{HELP}

exit status: 0 stopped by a signal, -C or -W; 2 invalid arguments; 1 any other error (also if -W ends before -C is
reached)
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_connection_flags(parser)
    parser.add_argument("filters", nargs="*", metavar="FILTER")
    parser.add_argument(
        "-t",
        "--topic",
        action="append",
        default=[],
        dest="topics",
        metavar="FILTER",
        help="a topic filter, as in mosquitto_sub",
    )
    parser.add_argument("-q", "--qos", type=int, choices=(0, 1, 2), default=0, help="[0]")
    parser.add_argument(
        "--from",
        dest="start",
        metavar="FROM",
        help="earliest, latest, -1h, an RFC 3339 time, or a topic's offset [latest]",
    )
    parser.add_argument("-C", "--count", type=positive, metavar="N", help="exit after N messages")
    parser.add_argument("-W", "--wait", type=positive, metavar="SECONDS", help="exit after this time")
    lines = parser.add_mutually_exclusive_group()
    lines.add_argument("-F", "--format", metavar="FORMAT", help="output format, see below [%%p]")
    lines.add_argument("-v", "--verbose", action="store_const", const=VERBOSE, dest="format", help="-F '%%t %%p'")
    lines.add_argument("--json", action="store_const", const=JSON, dest="format", help="-F %%j")
    parser.add_argument("-N", "--no-newline", action="store_true", help="no newline after a message")
    parser.add_argument("-R", "--no-retained", action="store_true", help="do not print retained messages")
    parser.add_argument(
        "--session-expiry",
        type=thirty_two_bits,
        metavar="SECONDS",
        help="session expiry interval; with -i the next run resumes the session",
    )


def run(args: argparse.Namespace) -> int:
    args.filters = [*args.filters, *args.topics]
    if named := url_topic(args):
        args.filters.append(named)
    if not args.filters:
        raise ConfigError(Fault("sub", "FILTER", "", "expected a topic filter, such as 'plant/#'"))
    if args.session_expiry is not None and not args.id:
        raise ConfigError(Fault("--session-expiry", "", "", "a session that outlives the command needs an id: -i ID"))
    line = formatter(args.format or PAYLOAD)
    import trio

    from rumq.mqtt.errors import TopicFilterInvalid
    from rumq.mqtt.topics import check_topic_filter

    for topic_filter in args.filters:
        try:
            check_topic_filter(topic_filter)
        except TopicFilterInvalid as fault:
            raise ConfigError(Fault("sub", "", "", fault.message)) from None
    return trio.run(subscribe_and_print, args, line)


async def subscribe_and_print(args: argparse.Namespace, line: Piece) -> int:
    """Connect, and print until the count, the time or a signal; returns the exit status."""
    from rumq.client import connect

    async with connect(
        **connect_arguments(args),
        clean_start=args.session_expiry is None,
        session_expiry=args.session_expiry or 0,
    ) as client:
        return await print_until_stopped(client, args, line)


async def print_until_stopped(client: "Client", args: argparse.Namespace, line: Piece) -> int:
    """Cancelled inside the connection, so that printed messages are acknowledged before it closes."""
    import trio

    status = 0
    async with trio.open_nursery() as nursery:
        await nursery.start(cancel_at_a_signal, nursery.cancel_scope)
        with trio.move_on_after(args.wait or float("inf")) as waiting:
            for topic_filter in args.filters:
                await client.subscribe(topic_filter, qos=args.qos, from_=args.start)
            await print_some(client, args, line)
        status = 1 if waiting.cancelled_caught and args.count else 0
        nursery.cancel_scope.cancel()
    return status


async def cancel_at_a_signal(scope: "trio.CancelScope", *, task_status: "trio.TaskStatus[None]") -> None:
    import signal

    import trio

    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        task_status.started()
        async for _ in signals:
            scope.cancel()


async def print_some(client: "Client", args: argparse.Namespace, line: Piece) -> None:
    end = b"" if args.no_newline else b"\n"
    left = args.count
    while left is None or left > 0:
        # Received messages are acknowledged: receive no more than are printed.
        batch = await client.receive_batch(messages_max=left)
        shown = [message for message in batch if not (args.no_retained and message.retain)]
        left = None if left is None else left - len(shown)
        sys.stdout.buffer.write(b"".join(line(as_shown(message)) + end for message in shown))
        sys.stdout.buffer.flush()


def as_shown(message: "Message") -> Shown:
    return Shown(
        message.topic,
        message.payload,
        message.qos,
        message.retain,
        message.time,
        message.offset,
        message.lsn,
        message.partition,
        message.properties,
    )
