"""Connection flags of `rumqd pub`, `sub`, `rr` and `bench`, the same as of mosquitto_pub."""

import argparse
from typing import TYPE_CHECKING, Any

from rumq.errors import ConfigError, Fault

if TYPE_CHECKING:
    from rumq.client import Tls

VERSIONS = {"5": 5, "mqttv5": 5, "3.1.1": 4, "311": 4, "mqttv311": 4}
TLS_PORT = 8883


def add_connection_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-h", "--host", help="broker address [localhost]")
    parser.add_argument("-p", "--port", type=port, help=f"broker port [1883; with TLS {TLS_PORT}]")
    parser.add_argument(
        "-L",
        "--url",
        help="instead of host, port and topic: mqtt[s]://[user[:password]@]host[:port][/TOPIC], ws[s]://host[:port]/PATH",
    )
    parser.add_argument("-i", "--id", default="", help="client id [assigned by the broker]")
    parser.add_argument("-k", "--keep-alive", type=sixteen_bits, default=60, metavar="SECONDS", help="[60]")
    parser.add_argument("-u", "--username")
    parser.add_argument("-P", "--password")
    parser.add_argument(
        "-V", "--protocol-version", choices=VERSIONS, default="5", metavar="VERSION", help="5 or 3.1.1 [5]"
    )
    tls = parser.add_argument_group(
        "TLS", f"enabled by any of these flags, by mqtts:// and wss://, and by port {TLS_PORT}"
    )
    tls.add_argument(
        "--cafile", default="", metavar="FILE",
        help="PEM file of trusted authorities [the system's]",
    )  # fmt: skip
    tls.add_argument("--capath", default="", metavar="DIR", help="directory of trusted authorities with hashed names")
    tls.add_argument("--cert", default="", metavar="FILE", help="PEM file of the client certificate")
    tls.add_argument("--key", default="", metavar="FILE", help="PEM file of its key [in --cert]")
    tls.add_argument(
        "--insecure", action="store_true",
        help="accept a certificate for another host name; its signature is still verified",
    )  # fmt: skip
    tls.add_argument("--tls-use-os-certs", action="store_true", help="use TLS with the system's authorities")


def url_topic(args: argparse.Namespace) -> str:
    """The topic in --url, if any. raises: ConfigError"""
    from rumq.client.transport.address import parse_url

    if args.url is None:
        return ""
    address = parse_url(args.url)
    return "" if address.is_websocket else address.path


def connect_arguments(args: argparse.Namespace) -> dict[str, Any]:
    """Arguments of `rumq.client.connect` from these flags. raises: ConfigError"""
    from rumq.client.transport.address import parse_url

    if args.url is not None and (args.host is not None or args.port is not None):
        raise ConfigError(Fault("--url", "", "", "has host and port: omit --host and --port"))
    found: dict[str, Any] = {
        "host": args.url or args.host or "localhost", "port": args.port, "tls": maybe_tls(args),
        "client_id": args.id, "version": mqtt_version(args), "keep_alive": args.keep_alive,
    }  # fmt: skip
    for name in ("username", "password"):
        if getattr(args, name) is not None:
            found[name] = getattr(args, name)
    if args.url is not None and found["tls"] is not None and not parse_url(args.url).is_tls:
        raise ConfigError(Fault("--url", "", "", "flags of TLS need mqtts:// or wss://"))
    return found


def maybe_tls(args: argparse.Namespace) -> "Tls | None":
    files = (args.cafile, args.capath, args.cert, args.key)
    if not any(files) and not args.insecure and not args.tls_use_os_certs and args.port != TLS_PORT:
        return None
    from rumq.client import Tls

    return Tls(cafile=args.cafile, capath=args.capath, cert=args.cert, key=args.key, insecure=args.insecure)


def mqtt_version(args: argparse.Namespace) -> int:
    """Protocol level: 5, or 4 for MQTT 3.1.1."""
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
