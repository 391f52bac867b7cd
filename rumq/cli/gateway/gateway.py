"""`rumqd gateway`: the HTTP gateway of a broker. docs/reference/gateway.md"""

import argparse
from pathlib import Path

from rumq.cli.setting_flags import GATEWAY_FLAGS, add_setting_flags, loaded_for_broker

ABOUT = """\
Serve REST under /api/v1, /metrics, /healthz, /readyz and /startupz of the broker on a data directory, until SIGTERM. A
broker starts this itself if gateway.port is set. Tokens are made by rumqd token; SIGHUP reads tokens, users and rules
again.
"""
EXAMPLES = """\
examples:
  rumqd run --set gateway.port=8080               a broker with its gateway
  rumqd token add ops --role read --role administer
  curl -H "Authorization: Bearer $TOKEN" localhost:8080/api/v1/status

exit status: 0 stopped by a signal; 1 it cannot listen there; 2 invalid settings; 3 no data directory
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_setting_flags(parser, GATEWAY_FLAGS)
    parser.add_argument("--for-broker", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--mosquitto-conf", type=Path, help=argparse.SUPPRESS)


def run(args: argparse.Namespace) -> int:
    from rumq.process.gateway.gateway_server import serve

    return serve(lambda: loaded_for_broker(args), for_broker=args.for_broker)
