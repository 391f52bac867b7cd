"""`rumqd kafka`: serve the log to Kafka's consumers. docs/guides/kafka.md"""

import argparse
from pathlib import Path

from rumq.cli.setting_flags import KAFKA_FLAGS, add_setting_flags, loaded_for_broker

ABOUT = """\
Serve the log of a data directory by Kafka's protocol until SIGTERM or SIGINT, with its broker on or off: streams are
topics, and so are the views of [[kafka.view]]. The log is only read; offsets that consumer groups commit are kept in
the file kafka-commits beside it. A broker starts this itself if kafka.port is set. Users and
rules of [auth] apply as for MQTT; SIGHUP reads them again.
"""
EXAMPLES = """\
examples:
  rumqd run --set kafka.port=9092                               a broker with its Kafka server
  rumqd kafka --data /var/lib/rumq                              the server alone, on localhost:9092
  rumqd kafka --set 'kafka.view=[{ name = "plant", filter = "plant/#" }]'

exit status: 0 stopped by a signal; 1 it cannot listen there; 2 invalid settings; 3 no data directory
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_setting_flags(parser, KAFKA_FLAGS)
    # For a broker's sidecar: it ends with the broker.
    parser.add_argument("--for-broker", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--mosquitto-conf", type=Path, help=argparse.SUPPRESS)


def run(args: argparse.Namespace) -> int:
    from rumq.process.kafka.kafka_server import serve

    return serve(lambda: loaded_for_broker(args).settings, for_broker=args.for_broker)
