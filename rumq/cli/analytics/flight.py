"""`rumqd flight`: serve the log over Arrow Flight. docs/guides/spark.md, "From other machines"."""

import argparse
from pathlib import Path

from rumq.cli.setting_flags import FLIGHT_FLAGS, add_setting_flags, loaded_for_broker

ABOUT = """\
Serve the log of a data directory over Arrow Flight until SIGTERM or SIGINT, read-only, with its broker on or off. A
broker starts this itself if flight.port is set. Users, tokens and rules of [auth] apply as for MQTT; SIGHUP reloads
users and rules.
"""
EXAMPLES = """\
examples:
  rumqd flight --data /var/lib/rumq                              grpc://localhost:8815, for this machine
  rumqd flight --config config.toml --host '*'                   for others, with the users and rules of config.toml
  rumqd flight --set flight.tls_certificate=server.pem --set flight.tls_key=server.key

exit status: 0 stopped by a signal; 1 it cannot listen there; 2 invalid settings; 3 no data directory
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_setting_flags(parser, FLIGHT_FLAGS)
    # For a broker's sidecar: it ends with the broker.
    parser.add_argument("--for-broker", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--mosquitto-conf", type=Path, help=argparse.SUPPRESS)


def run(args: argparse.Namespace) -> int:
    from rumq.process.flight.flight_server import serve

    return serve(lambda: loaded_for_broker(args).settings, for_broker=args.for_broker)
