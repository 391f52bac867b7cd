"""`rumqd functions`: check the functions of the settings, say how they do, run them. docs/guides/functions.md"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from rumq.cli.setting_flags import add_setting_flags, loaded_for_broker, loaded_settings
from rumq.errors import ConfigError, RumqError

ABOUT = """\
Functions are Python functions on batches of records, from Arrow to Arrow, whose results are published: [[function]] of
the settings. A broker runs them by itself, in processes of their own.
  check    load each, call it with a batch without rows, and say everything that is wrong
  status   what each has done since it began, and how far behind it is
  run      run them for a broker that runs here already, until SIGTERM or SIGINT
"""
EXAMPLES = """\
examples:
  rumqd functions check --config config.toml
  rumqd functions status --data /var/lib/rumq

exit status: 0 done, or good; 2 a function or the settings are refused; 1 any other error
"""
OK, REFUSED = 0, 2
DATA_FLAGS = (("--data", "DIR", "data.dir"),)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", choices=("check", "status", "run"), metavar="check|status|run")
    add_setting_flags(parser, DATA_FLAGS)
    parser.add_argument(
        "--json", action="store_true", help="check: ok and faults, status: each by its name, as one JSON object"
    )
    # For a broker's sidecar: it ends with the broker.
    parser.add_argument("--for-broker", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--mosquitto-conf", type=Path, help=argparse.SUPPRESS)


def run(args: argparse.Namespace) -> int:
    """raises: RumqError"""
    if args.what == "check":
        return check(args)
    if args.what == "status":
        return print_status(args)
    try:
        from rumq.process.functions.function_process import serve
    except ImportError:
        raise RumqError("functions need pyarrow and numpy: pip install 'rumq[parquet]'") from None
    return serve(lambda: loaded_for_broker(args).settings, for_broker=args.for_broker)


def check(args: argparse.Namespace) -> int:
    from rumq.process.wiring.function_settings import check_code, check_functions

    settings = loaded_settings(args).settings
    if not settings.function:
        raise RumqError("the settings have no [[function]]")
    try:
        check_functions(settings)
        faults = [str(fault) for fault in check_code(settings)]
    except ConfigError as fault:
        faults = str(fault).splitlines()
    if args.json:
        print(json.dumps({"ok": not faults, "faults": faults}))
        return REFUSED if faults else OK
    for each in faults:
        print(f"rumqd: {each}", file=sys.stderr)
    if not faults:
        print(f"rumqd: {len(settings.function)} functions are good")
    return REFUSED if faults else OK


def print_status(args: argparse.Namespace) -> int:
    from rumq.functions.function_counts import FOLDER, read_figures

    found = read_figures(Path(loaded_settings(args).settings.data.dir, FOLDER))
    if args.json:
        print(json.dumps(found))
        return OK
    heads = ("records", "results", "passed", "refused", "failures", "behind")
    print(f"{'function':<20}{''.join(f'{each:>12}' for each in heads)}  held")
    for name, each in found.items():
        failures = sum(each["failures"].values())
        numbers = (each["records"], each["results"], each["passed"], each["refused"], failures, each["behind"])
        row = "".join(f"{value:>12,}" for value in numbers)
        print(f"{name:<20}{row}  {'yes' if each['held'] else 'no'}")
    return OK
