"""`rumqd import-mosquitto FILE`: the words of the command; `rumq.cli.admin.mosquitto_migration` does the work."""

from __future__ import annotations

import argparse

NAME, LINE = "import-mosquitto", "print a mosquitto.conf as config.toml"
ABOUT = """\
Print the settings of a mosquitto.conf as config.toml, with a comment for each line that could not be carried over.
ACL files become files of rules, printed behind it or written beside with --write. Password files stay as they are.
"""
EXAMPLES = """\
examples:
  rumqd import-mosquitto /etc/mosquitto/mosquitto.conf > config.toml
  rumqd import-mosquitto mosquitto.conf --write DIR     config.toml and the files of rules into DIR
  rumqd run --mosquitto-conf mosquitto.conf             run from it as it is

exit status: 0 everything was carried over; 1 something was left out, see the comments, or no listener can be opened;
2 the file was refused
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="a mosquitto.conf")
    parser.add_argument("--write", metavar="DIR", help="write config.toml and files of rules there")


def run(args: argparse.Namespace) -> int:
    from rumq.cli.admin.mosquitto_migration import print_converted

    return print_converted(args)
