"""`rumqd bridge`: say how the bridges of a broker do, run them. docs/guides/bridges.md"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

from rumq.cli.setting_flags import add_setting_flags, loaded_for_broker, loaded_settings

ABOUT = """\
Bridges relay messages to and from other MQTT brokers: [[bridge]] of the settings. A broker runs them by itself, in a
process of their own.
  status   what each has done since its process began; on nodes of a cluster also which one runs them
  run      run them for a broker that runs here already, until SIGTERM or SIGINT
"""
EXAMPLES = """\
examples:
  rumqd run --set 'bridge=[{ name = "centre", url = "mqtt://centre.example", topics = ["plant/# out 2"] }]'
  rumqd bridge status --data /var/lib/rumq

exit status: 0 done; 2 invalid settings; 3 no data directory; 1 any other error
"""
DATA_FLAGS = (("--data", "DIR", "data.dir"),)
HEADS = ("messages", "bytes", "doubtful", "refused", "looped", "dropped", "unmapped")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", choices=("status", "run"), metavar="status|run")
    add_setting_flags(parser, DATA_FLAGS)
    parser.add_argument("--json", action="store_true", help="status: each by its name, as one JSON object")
    # For a broker's sidecar: it ends with the broker.
    parser.add_argument("--for-broker", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--mosquitto-conf", type=Path, help=argparse.SUPPRESS)


def run(args: argparse.Namespace) -> int:
    """raises: RumqError"""
    if args.what == "status":
        return print_status(args)
    from rumq.process.bridge.bridge_process import serve

    return serve(lambda: loaded_for_broker(args).settings, for_broker=args.for_broker)


def print_status(args: argparse.Namespace) -> int:
    from rumq.bridge.counts import FOLDER, IN, OUT, read_elsewhere, read_live_figures

    folder = Path(loaded_settings(args).settings.data.dir, FOLDER)
    found = read_live_figures(folder, time.time())
    if elsewhere := read_elsewhere(folder):
        print(elsewhere, file=sys.stderr)
    if args.json:
        print(json.dumps(found))
        return 0
    print(f"{'bridge':<20}{'':>5}{''.join(f'{each:>12}' for each in HEADS)}  connected")
    for name, each in found.items():
        for direction in (OUT, IN):
            row = "".join(f"{each[direction][head]:>12,}" for head in HEADS)
            print(f"{name:<20}{direction:>5}{row}  {'yes' if each['up'] else 'no'}")
    return 0
