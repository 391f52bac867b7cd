"""`rumqd rr`: a request, and the response to it, with the flags of mosquitto_rr. MQTT 5.0, 4.10."""

import argparse
import sys
from typing import TYPE_CHECKING

from rumq.cli.client.connection_flags import add_connection_flags, connect_arguments, mqtt_version, positive, url_topic
from rumq.cli.client.pub import add_payload_flags, payload_of
from rumq.cli.client.sub import as_shown
from rumq.cli.message_format import HELP, JSON, PAYLOAD, VERBOSE, Piece, formatter
from rumq.errors import ConfigError, Fault

if TYPE_CHECKING:
    from rumq.client import Properties

ABOUT = """\
Publish a request and print the response to it (MQTT 5). Whoever subscribes to the topic answers to the response topic
that the request names; the response is told from others by its correlation data.
"""
EXAMPLES = f"""\
examples:
  rumqd rr sum/1 -m '20 22'                      a service answers: docs/guides/client.md
  rumqd rr sum/1 -m '20 22' -e answers/desk -W 2
  rumqd rr sum/1 -m '20 22' --json | jq .payload

{HELP}

exit status: 0 answered, 2 invalid arguments, 1 any other error (also if there is no response in time)
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_connection_flags(parser)
    parser.add_argument("topic", nargs="?", metavar="TOPIC")
    parser.add_argument("-t", "--topic", dest="topic_flag", metavar="TOPIC", help="the topic, as in mosquitto_rr")
    add_payload_flags(parser)
    parser.add_argument("-q", "--qos", type=int, choices=(0, 1, 2), default=1, help="[1]")
    parser.add_argument(
        "-e", "--response-topic", metavar="TOPIC", help="where the response is expected [rumq/response/<client id>]"
    )
    parser.add_argument("-W", "--wait", type=positive, default=10, metavar="SECONDS", help="for the response [10]")
    lines = parser.add_mutually_exclusive_group()
    lines.add_argument("-F", "--format", metavar="FORMAT", help="output format, see below [%%p]")
    lines.add_argument("-v", "--verbose", action="store_const", const=VERBOSE, dest="format", help="-F '%%t %%p'")
    lines.add_argument("--json", action="store_const", const=JSON, dest="format", help="-F %%j")
    parser.add_argument(
        "--user-property", action="append", default=[], metavar="NAME=VALUE", help="of the request, repeatable"
    )


def run(args: argparse.Namespace) -> int:
    topic = args.topic or args.topic_flag or url_topic(args)
    if not topic:
        raise ConfigError(Fault("rr", "TOPIC", "", "expected a topic, such as sum/1"))
    if mqtt_version(args) < 5:
        raise ConfigError(Fault("--protocol-version 3.1.1", "", "", "requests need MQTT 5"))
    line = formatter(args.format or PAYLOAD)
    properties = properties_of(args)
    payload = payload_of(args)
    import trio

    from rumq.mqtt.encode import encode
    from rumq.mqtt.packets import Publish

    for name in filter(None, (topic, args.response_topic)):
        try:
            encode(Publish(name, b"", properties=properties), 5)
        except ValueError as fault:
            raise ConfigError(Fault("rr", "", "", str(fault))) from None
    trio.run(ask, args, topic, payload, properties, line)
    return 0


def properties_of(args: argparse.Namespace) -> "Properties":
    """raises: ConfigError"""
    from rumq.cli.client.connection_flags import name_and_value
    from rumq.client import Properties

    try:
        pairs = [name_and_value(text) for text in args.user_property]
    except argparse.ArgumentTypeError as fault:
        raise ConfigError(Fault("--user-property", "", "", str(fault))) from None
    return Properties(user_properties=pairs) if pairs else Properties()


async def ask(args: argparse.Namespace, topic: str, payload: bytes, properties: "Properties", line: Piece) -> None:
    """raises: NoResponse"""
    from rumq.client import connect

    async with connect(**connect_arguments(args)) as client:
        response = await client.request(
            topic, payload, args.wait, qos=args.qos, properties=properties, response_topic=args.response_topic
        )
        sys.stdout.buffer.write(line(as_shown(response)) + b"\n")
        sys.stdout.buffer.flush()
