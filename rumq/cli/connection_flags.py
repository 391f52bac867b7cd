"""The flags by which `rumqd pub` and `rumqd sub` find their broker: those of mosquitto_pub."""

import argparse

VERSIONS = {"5": 5, "mqttv5": 5, "3.1.1": 4, "311": 4, "mqttv311": 4}


def add_connection_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-h", "--host", default="localhost", help="broker's address [localhost]")
    parser.add_argument("-p", "--port", type=port, default=1883, help="its port [1883]")
    parser.add_argument("-i", "--id", default="", help="client id [the broker gives one]")
    parser.add_argument("-k", "--keep-alive", type=sixteen_bits, default=60, metavar="SECONDS", help="[60]")
    parser.add_argument("-u", "--username")
    parser.add_argument("-P", "--password")
    parser.add_argument(
        "-V", "--protocol-version", choices=VERSIONS, default="5", metavar="VERSION", help="5 or 3.1.1 [5]"
    )


def mqtt_version(args: argparse.Namespace) -> int:
    """5, or 4 for MQTT 3.1.1, as the protocol itself counts."""
    return VERSIONS[args.protocol_version]


def port(text: str) -> int:
    return whole(text, 1, 65_535)


def sixteen_bits(text: str) -> int:
    return whole(text, 0, 65_535)


def thirty_two_bits(text: str) -> int:
    return whole(text, 0, 2**32 - 1)


def positive(text: str) -> int:
    return whole(text, 1, 2**63 - 1)


def whole(text: str, least: int, most: int) -> int:
    if not (text.isascii() and text.isdecimal()) or len(text) > 20 or not least <= int(text) <= most:
        raise argparse.ArgumentTypeError(f"{text}: expected a whole number, {least} to {most}")
    return int(text)


def name_and_value(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise argparse.ArgumentTypeError(f"{text}: expected name=value")
    return name, value
