"""The page of all commands, made from the parser of `rumqd`: their help, word for word."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from unittest.mock import patch

from rumq.cli.main import build_parser

COLUMNS = "110"
HEAD = """\
# Command line

The help of each command, as `rumqd COMMAND --help` prints it.
"""


def page() -> str:
    with patch.dict(os.environ, COLUMNS=COLUMNS):  # what argparse wraps its help at
        return "\n".join([HEAD, *lines(build_parser(), 2)])


def lines(parser: argparse.ArgumentParser, level: int) -> Iterator[str]:
    yield f"{'#' * min(level, 4)} {parser.prog}\n\n```text\n{parser.format_help().rstrip()}\n```\n"
    for each in commands_of(parser).values():
        yield from lines(each, level + 1)


def commands_of(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """The commands below one, by name."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}
