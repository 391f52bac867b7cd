"""`rumqd config`: the effective settings, or an example with all of them."""

from __future__ import annotations

import argparse

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


def run(args: argparse.Namespace) -> int:
    from rumq.settings.show import example, in_force

    print(example() if args.example else in_force(loaded_settings(args)), end="")
    return 0
