"""`rumqd grpc`: the gRPC server of a broker. docs/reference/grpc.md"""

import argparse
from pathlib import Path

from rumq.cli.setting_flags import GRPC_FLAGS, add_setting_flags, loaded_for_broker

ABOUT = """\
Serve topics to programs over gRPC (rumq.v1) for the broker on a data directory, until SIGTERM. A broker starts this
itself if grpc.port is set; one that runs without it needs gateway.port, so that it has the socket that messages are
published through. Users, tokens and rules are those of [auth] and [gateway]; SIGHUP reads them again.
"""
EXAMPLES = """\
examples:
  rumqd run --set grpc.port=8820                  a broker with its gRPC server
  rumqd grpc --data /var/lib/rumq                 the server alone, on localhost:8820
  python -m grpc_tools.protoc -I $(rumqd grpc --proto) --python_out=. --grpc_python_out=. rumq/v1/broker_service.proto

exit status: 0 stopped by a signal; 1 it cannot listen there; 2 invalid settings; 3 no data directory
"""
PROTO = Path(__file__).parents[2] / "services/proto"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_setting_flags(parser, GRPC_FLAGS)
    parser.add_argument("--proto", action="store_true", help="print the folder of the proto files, and exit")
    parser.add_argument("--for-broker", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--mosquitto-conf", type=Path, help=argparse.SUPPRESS)


def run(args: argparse.Namespace) -> int:
    if args.proto:
        print(PROTO)
        return 0
    from rumq.process.grpc.grpc_server import serve

    return serve(lambda: loaded_for_broker(args).settings, for_broker=args.for_broker)
