"""Arguments and help of `rumqd import-mosquitto FILE`; `rumq.cli.mosquitto_migration` converts."""

from __future__ import annotations

import argparse

ABOUT = """\
Convert a mosquitto.conf to config.toml, with a comment for each line that is not carried over. ACL files are converted
to rules files, which are printed after it, or written beside it with --write. Password files are used unchanged.
"""
EXAMPLES = """\
examples:
  rumqd import-mosquitto /etc/mosquitto/mosquitto.conf > config.toml
  rumqd import-mosquitto mosquitto.conf --write DIR     write config.toml and rules files to DIR
  rumqd run --mosquitto-conf mosquitto.conf             run without converting

exit status: 0 everything was carried over; 1 something was left out, see the comments, or no listener can be opened;
2 the file is invalid
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="a mosquitto.conf")
    parser.add_argument("--write", metavar="DIR", help="write config.toml and rules files there")


def run(args: argparse.Namespace) -> int:
    from rumq.cli.mosquitto_migration import print_converted

    return print_converted(args)
