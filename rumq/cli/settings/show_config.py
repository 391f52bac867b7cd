"""`rumqd config`: the effective settings, or an example with all of them."""

from __future__ import annotations

import argparse
import json

from rumq.cli.setting_flags import add_setting_flags, loaded_settings

ABOUT = """\
Print the effective settings as TOML, each with its source: default, the file, the environment, a flag, or [log]
for inherited keys of a stream.
"""
EXAMPLES = """\
examples:
  rumqd config                                   the defaults and the environment
  rumqd config --config config.toml --set log.linger_ms=1
  rumqd config --example > config.toml           every setting, with comments
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_setting_flags(parser)
    parser.add_argument("--example", action="store_true", help="print a commented config.toml instead")
    parser.add_argument("--json", action="store_true", help="one JSON object: value and source by key")


def run(args: argparse.Namespace) -> int:
    from rumq.settings.show import as_object, example, in_force

    if args.json:
        print(json.dumps(as_object(loaded_settings(args))))
        return 0
    print(example() if args.example else in_force(loaded_settings(args)), end="")
    return 0
