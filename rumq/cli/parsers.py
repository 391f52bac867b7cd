"""Parsers that get their arguments when they are used: a command imports nothing of the others."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from difflib import get_close_matches
from typing import Any

Fill = Callable[[argparse.ArgumentParser], None]


class LazyParser(argparse.ArgumentParser):
    """fill: adds the arguments, once, before the first parsing or help. Parsers of sub-commands are such parsers too"""

    def __init__(self, *args: Any, fill: Fill | None = None, **more: Any) -> None:
        super().__init__(*args, **more)
        self._fill = fill

    def filled(self) -> LazyParser:
        fill, self._fill = self._fill, None
        if fill is not None:
            fill(self)
        return self

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        self.filled()
        return super().parse_known_args(args, namespace)

    def format_help(self) -> str:
        self.filled()
        return super().format_help()

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if isinstance(action, argparse._SubParsersAction) and value not in action.choices:
            raise argparse.ArgumentError(None, self._unknown(str(value)))
        super()._check_value(action, value)

    def _unknown(self, word: str) -> str:
        """That there is no such command, and which one is probably meant, here or below: `status` is one of `ask`."""
        near = [" ".join(words) for words, _ in every_command(self) if words[-1] == word]
        near += get_close_matches(word, sub_parsers(self), 1)
        way_out = f"did you mean `{self.prog} {near[0]}`?" if near else f"`{self.prog} --help` has them"
        return f"no such command: {word!r}; {way_out}"


def sub_parsers(parser: argparse.ArgumentParser) -> dict[str, LazyParser]:
    """Parsers of the commands of a parser, by name, with their arguments; none if it has no commands."""
    found: dict[str, LazyParser] = {}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            found |= {name: made.filled() for name, made in action.choices.items()}
    return found


def every_command(
    parser: argparse.ArgumentParser, words: Sequence[str] = ()
) -> Iterator[tuple[tuple[str, ...], LazyParser]]:
    """(words, parser) of each command that can be typed, commands of commands too."""
    for name, made in sub_parsers(parser).items():
        if not sub_parsers(made):
            yield (*words, name), made
        yield from every_command(made, (*words, name))
