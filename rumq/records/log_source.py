"""The arguments of `rumq.read` and `rumq.follow` as checked options. docs/guides/read.md.

The time is an argument."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from datetime import date
from typing import TypedDict

from rumq.lake.folder import absolute
from rumq.table.errors import BadOption, NoColumn, UnknownOption
from rumq.table.options import TableOptions, check_filter, near, parse
from rumq.table.partition_ranges import NO_LAKE

Bound = str | int | date | Mapping[str, int]


class SourceOptions(TypedDict, total=False):
    """stream, partitions: of these only; lake: folder or URI, "none", "" for the one in the log's export marker

    username, password_file or token_file; tls_ca, tls_certificate, tls_key: files in PEM"""

    stream: str
    partitions: Sequence[str]
    lake: str
    fail_on_data_loss: bool
    username: str
    password_file: str
    token_file: str
    tls_ca: str
    tls_certificate: str
    tls_key: str


# Argument -> option of the Spark source, which has the same meaning.
NAMES = {
    "stream": "stream", "partitions": "assign", "lake": "lake", "fail_on_data_loss": "failOnDataLoss",
    "username": "username", "password_file": "passwordFile", "token_file": "tokenFile", "tls_ca": "tlsCa",
    "tls_certificate": "tlsCertificate", "tls_key": "tlsKey",
}  # fmt: skip
ARGUMENTS = {option: name for name, option in NAMES.items()} | {
    "path": "source", "broker": "source", "subscribe": "topics", "startingOffsets": "start",
    "startingTimestamp": "start", "endingOffsets": "end", "endingTimestamp": "end",
}  # fmt: skip
SECRETS = {"password": "password_file", "token": "token_file"}


def options_of(
    source: str | os.PathLike[str], topics: str | Sequence[str] | None, start: Bound | None, end: Bound | None,
    given: Mapping[str, object], *, now_us: int,
) -> TableOptions:  # fmt: skip
    """given: as `SourceOptions`. raises: BadOption, UnknownOption, by the names of the arguments"""
    check_names(given)
    place = os.fspath(source)
    is_broker = "://" in place
    said = {"broker" if is_broker else "path": place if is_broker else os.path.abspath(place)}
    said |= bound("starting", start) | bound("ending", end)
    if topics is not None:
        said["subscribe"] = joined(topics)
    for name, value in given.items():
        if value is not None:
            said[NAMES[name]] = option_text(name, value)
    try:
        for topic_filter in said.get("subscribe", "").split(","):
            if topic_filter.strip():
                check_filter("topics", topic_filter.strip())
        return parse(said, now_us=now_us)
    except BadOption as fault:
        raise by_argument(fault) from None


def by_argument(fault: BadOption) -> BadOption:
    """The same fault, named as the caller wrote it."""
    allowed = fault.allowed
    for option, name in ARGUMENTS.items():
        allowed = allowed.replace(f"{option} as well", f"{name} as well")
    allowed = allowed.replace("username with passwordFile", "username with password_file")
    return BadOption(ARGUMENTS.get(fault.option, fault.option), fault.value, allowed)


def check_names(given: Mapping[str, object]) -> None:
    """raises: UnknownOption"""
    for name in given:
        if name in SECRETS:
            raise UnknownOption(name, f"put it in a file, {SECRETS[name]}")
        if name not in NAMES:
            raise UnknownOption(name, near(name.lower(), {each: each for each in NAMES}))


def option_text(name: str, value: object) -> str:
    """The option's text for an argument."""
    if name == "partitions":
        names = [value] if isinstance(value, str) else list(value)  # type: ignore[call-overload]
        return json.dumps(names)
    if name == "lake":
        return str(value) if value in ("", NO_LAKE) else absolute(str(value))
    if name == "fail_on_data_loss":
        return str(bool(value)).lower()
    return os.fspath(value) if isinstance(value, os.PathLike) else str(value)


def bound(which: str, value: Bound | None) -> dict[str, str]:
    """The option for this position. which: "starting" or "ending" """
    if value is None:
        return {}
    if isinstance(value, Mapping):
        return {f"{which}Offsets": json.dumps(dict(value))}
    if isinstance(value, date):
        return {f"{which}Timestamp": value.isoformat()}
    word = str(value)
    kind = "Offsets" if word in ("earliest", "latest") or word.startswith("tail:") else "Timestamp"
    return {f"{which}{kind}": word}


def joined(topics: str | Sequence[str]) -> str:
    if isinstance(topics, str):
        return topics
    if found := [each for each in topics if "," in each]:
        raise BadOption("topics", found[0], "filters without a comma: choose those rows with a condition")
    return ",".join(topics)


def columns_of(given: Sequence[str] | None, known: Sequence[str]) -> tuple[str, ...]:
    """The names to read, in this order. given: None for all. raises: NoColumn, BadOption"""
    names = (given,) if isinstance(given, str) else tuple(known if given is None else given)
    for name in names:
        if name not in known:
            raise NoColumn(name, near(name, {each: each for each in known}))
    if not names or len(set(names)) < len(names):
        raise BadOption("columns", ", ".join(names), "one or more names, each once, or None for all")
    return names
