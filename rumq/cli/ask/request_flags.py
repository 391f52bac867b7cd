"""Flags of a question, made from the fields of its request: type, bounds, choices, help."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import inspect

from rumq.admin import requests as q

SHORT = {"topic": ("-t",)}
NUMBERS: dict[type, tuple[type, str]] = {inspect.IntType: (int, "N"), inspect.FloatType: (float, "X")}
METAVARS = {
    "client": "ID", "user": "NAME", "name": "NAME", "topic": "TOPIC", "filter": "FILTER", "stream": "NAME",
    "prefix": "PREFIX", "start": "FROM", "after": "TOPIC", "seconds": "SECONDS",
}  # fmt: skip


def add_request_flags(parser: argparse.ArgumentParser, request: type[q.Request]) -> None:
    kind = inspect.type_info(request)
    assert isinstance(kind, inspect.StructType)
    for field in kind.fields:
        add_flag(parser, field)


def add_flag(parser: argparse.ArgumentParser, field: inspect.Field) -> None:
    plain, about = describe_type(field.type)
    help_text = about.get("description", "").replace("; null: ", "; default: ").replace("null: ", "default: ")
    default = field.default
    if not field.required and default not in (None, msgspec.NODEFAULT, "", False, True):
        help_text += f" [{default:g}]" if isinstance(default, float) else f" [{default}]"
    more: dict[str, Any] = {}
    if isinstance(plain, inspect.BoolType):
        more["action"] = argparse.BooleanOptionalAction
    elif isinstance(plain, inspect.LiteralType):
        more |= {"choices": plain.values}
    else:
        more |= {"type": checked(plain), "metavar": metavar(field.name, plain)}
    parser.add_argument(
        *SHORT.get(field.name, ()), "--" + field.encode_name.replace("_", "-"), dest=f"asked_{field.name}",
        required=field.required, default=argparse.SUPPRESS, help=help_text.replace("%", "%%").strip(), **more,
    )  # fmt: skip


def request_of(args: argparse.Namespace, request: type[q.Request]) -> q.Request:
    """The request that the flags give."""
    given = {
        field.encode_name: getattr(args, f"asked_{field.name}")
        for field in msgspec.structs.fields(request)
        if hasattr(args, f"asked_{field.name}")
    }
    return msgspec.convert(given, request)


def describe_type(kind: inspect.Type) -> tuple[inspect.Type, dict[str, Any]]:
    """The type without description, and without null."""
    about: dict[str, Any] = {}
    while True:
        if isinstance(kind, inspect.Metadata):
            about = {**(kind.extra_json_schema or {}), **about}
            kind = kind.type
        elif isinstance(kind, inspect.UnionType):
            kind = next(each for each in kind.types if not isinstance(each, inspect.NoneType))
        else:
            return kind, about


def metavar(name: str, kind: inspect.Type) -> str:
    return METAVARS.get(name) or NUMBERS.get(type(kind), (str, "TEXT"))[1]


def checked(kind: inspect.Type) -> Callable[[str], object]:
    """What argparse calls with a text: the value, within its bounds."""
    least, most = getattr(kind, "ge", None), getattr(kind, "le", None)
    number = NUMBERS.get(type(kind))
    if number is not None:

        def numeric(text: str) -> object:
            try:
                value = number[0](text)
            except ValueError:
                raise argparse.ArgumentTypeError(f"{text}: expected a number") from None
            if (least is not None and value < least) or (most is not None and value > most):
                raise argparse.ArgumentTypeError(f"{text}: expected {bounds(least, most)}")
            return value

        return numeric
    shortest, longest = getattr(kind, "min_length", None), getattr(kind, "max_length", None)

    def textual(text: str) -> object:
        if len(text) < (shortest or 0) or (longest is not None and len(text) > longest):
            raise argparse.ArgumentTypeError(f"expected {shortest or 0} to {longest} characters")
        return text

    return textual


def bounds(least: float | None, most: float | None) -> str:
    if least is None:
        return f"at most {most}"
    return f"{least} or more" if most is None or most > 1 << 40 else f"{least} to {most}"
