"""`rumqd check`: whether a broker could start with these settings, and all that would keep it from that."""

from __future__ import annotations

import argparse
import os
import sys

from rumq.cli.setting_flags import add_setting_flags, loaded_settings

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


def run(args: argparse.Namespace) -> int:
    """raises: ConfigError, which is status 2 too"""
    from rumq.cli.broker.start_check import faults, in_use
    from rumq.cli.data.exposure import exposed

    settings = loaded_settings(args).settings
    is_running = in_use(settings.data.dir)
    found = [str(fault) for fault in faults(settings, is_running)]
    for line in "\n".join(found).splitlines():
        print(f"rumqd: {line}", file=sys.stderr)
    if found:
        return REFUSED
    if problem := exposed(os.path.abspath(settings.data.dir)):
        print(f"rumqd: {settings.data.dir}: {problem}")
    end = (
        "a broker runs on this data directory, so no address was tried"
        if is_running
        else "a broker can start"
    )
    print(f"rumqd: the settings are good, {end}")
    return OK
