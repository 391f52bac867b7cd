"""`rumqd check`: whether a broker could start with these settings, and all that would keep it from that."""

from __future__ import annotations

import argparse
import json
import os
import sys

from rumq.cli.setting_flags import add_setting_flags, loaded_settings
from rumq.errors import ConfigError

ABOUT = """\
Say everything that would keep `rumqd run` with the same flags from starting, in its words: settings, files of users,
rules and certificates with their permissions, addresses that are in use, a data directory that cannot be used. A broker
may run meanwhile. Check as the user that the broker runs as.
"""
EXAMPLES = """\
examples:
  rumqd check --config config.toml
  sudo -u rumq rumqd check --config /etc/rumq/config.toml

exit status: 0 a broker could start; 2 it could not, or the settings are refused
"""
OK, REFUSED = 0, 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_setting_flags(parser)
    parser.add_argument("--json", action="store_true", help="one JSON object: ok, faults, warnings, is_running")


def run(args: argparse.Namespace) -> int:
    """raises: ConfigError, which is status 2 too"""
    from rumq.process.broker.start_check import faults, in_use
    from rumq.process.wiring.exposure import exposed

    try:
        settings = loaded_settings(args).settings
    except ConfigError as fault:
        if not args.json:
            raise
        return as_json(str(fault).splitlines(), [], is_running=None)
    is_running = in_use(settings.data.dir)
    found = [str(fault) for fault in faults(settings, is_running)]
    problem = exposed(os.path.abspath(settings.data.dir))
    lines = "\n".join(found).splitlines()
    if args.json:
        return as_json(lines, [problem] if problem else [], is_running=is_running)
    for line in lines:
        print(f"rumqd: {line}", file=sys.stderr)
    if found:
        return REFUSED
    if problem:
        print(f"rumqd: {settings.data.dir}: {problem}")
    end = "a broker runs on this data directory, so no address was tried" if is_running else "a broker can start"
    print(f"rumqd: the settings are good, {end}")
    return OK


def as_json(faults: list[str], warnings: list[str], *, is_running: bool | None) -> int:
    """is_running: a broker has the data directory; None: not known, for the settings are refused"""
    found = {"ok": not faults, "faults": faults, "warnings": warnings, "is_running": is_running}
    print(json.dumps(found))
    return REFUSED if faults else OK
