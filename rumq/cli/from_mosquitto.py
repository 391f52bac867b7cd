"""`rumqd run --mosquitto-conf FILE` and `rumqd import-mosquitto FILE`: to come from mosquitto, at once or for good."""

from __future__ import annotations

import argparse
import atexit
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

import msgspec

from rumq.auth.errors import SecretsError
from rumq.auth.files import read_rules
from rumq.auth.rules import File
from rumq.errors import RumqError
from rumq.mosquitto.acl import file_of
from rumq.mosquitto.conf import read_conf
from rumq.mosquitto.convert import Converted, converted
from rumq.settings.keys import as_toml
from rumq.shards.telling import tell


def tree_of(args: argparse.Namespace) -> tuple[str, dict[str, Any]]:
    """(name, content) of the file, as if it were a config.toml. raises: RumqError

    Without persistence the data directory is one for this run, which is gone with the broker."""
    path = str(args.mosquitto_conf)
    found = converted(read_conf(path))
    if getattr(args, "told", None) is None:
        args.told = True
        for number in (signal.SIGUSR1, signal.SIGUSR2):
            # To mosquitto they say: save, and show the subscriptions. Here all is saved, and `rumqd ask` shows.
            signal.signal(number, signal.SIG_IGN)
        for line, why in found.left_out:
            tell("mosquitto.left_out", path=line.path, line=line.number, option=line.key, why=why)
    if found.temporary:
        if getattr(args, "temporary", None) is None:
            args.temporary = tempfile.mkdtemp(prefix="rumq-")
            atexit.register(shutil.rmtree, args.temporary, ignore_errors=True)
        found.tree["data"]["dir"] = args.temporary
    return path, found.tree


def print_converted(args: argparse.Namespace) -> int:
    """`rumqd import-mosquitto`; returns the exit status."""
    found = converted(read_conf(args.file))
    rules = list(rule_files(found, args.write))
    config = "\n".join(config_lines(found, args.file)) + "\n"
    if args.write:
        for name, text in [("config.toml", config), *rules]:
            write(f"{args.write}/{name}", text)
    else:
        print(config, end="")
        for name, text in rules:
            print(f"\n# ----- {name} -----\n{text}", end="")
    for line, why in found.left_out:
        print(f"rumqd: {line.path}, line {line.number}: {line.key} was left out: {why}", file=sys.stderr)
    return 1 if found.left_out else 0


def write(path: str, text: str) -> None:
    try:
        with open(path, "x", encoding="utf-8") as file:
            file.write(text)
    except OSError as fault:
        raise RumqError(f"{path}: cannot be written: {fault.strerror}") from None


def rule_files(found: Converted, folder: str | None) -> Iterator[tuple[str, str]]:
    """(name, text) of each ACL file as rules; the settings name those from now on."""
    names: dict[str, str] = {}
    for section in [found.tree["auth"], *found.tree["listener"]]:
        path = section.get("rules_file")
        if path is None:
            continue
        if path not in names:
            names[path] = "rules.toml" if not names else f"rules-{len(names) + 1}.toml"
            try:
                yield names[path], "\n".join(rule_lines(file_of(read_rules(path), path))) + "\n"
            except SecretsError as fault:
                raise RumqError(str(fault)) from None
        section["rules_file"] = f"{folder}/{names[path]}" if folder else names[path]


def rule_lines(file: File) -> Iterator[str]:
    yield f"forbidden_subscriptions = {as_toml(file.forbidden_subscriptions)}"
    for rule in file.rule:
        yield "\n[[rule]]"
        for name, value in msgspec.structs.asdict(rule).items():
            if value:
                yield f"{name} = {as_toml(value)}"


def config_lines(found: Converted, path: str) -> Iterator[str]:
    yield f"# From {path}"
    for line, why in found.left_out:
        yield f"# left out: {line.key} {line.value}  (line {line.number}: {why})"
    for section, content in found.tree.items():
        for each in content if isinstance(content, list) else [content]:
            if each:
                yield f"\n[[{section}]]" if isinstance(content, list) else f"\n[{section}]"
                yield from (f"{key} = {as_toml(value)}" for key, value in each.items())
