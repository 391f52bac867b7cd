"""Migration from mosquitto: run from a mosquitto.conf, or convert it to config.toml and rules files."""

from __future__ import annotations

import argparse
import atexit
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

import msgspec

from rumq.auth.credentials.files import read_rules
from rumq.auth.errors import SecretsError
from rumq.auth.rules import File
from rumq.errors import RumqError
from rumq.events.event_log import tell
from rumq.mosquitto.acl import file_of
from rumq.mosquitto.conf import read_conf
from rumq.mosquitto.convert import Converted, converted
from rumq.settings.keys import as_toml


def settings_of_conf(args: argparse.Namespace) -> tuple[str, dict[str, Any]]:
    """(name, content) of the file, converted to the content of a config.toml. raises: RumqError

    Without persistence the data directory is a temporary one, which is removed when the broker ends."""
    path = str(args.mosquitto_conf)
    found = require_listener(path, converted(read_conf(path)))
    if getattr(args, "converted", None) is None:
        for number in (signal.SIGUSR1, signal.SIGUSR2):
            # mosquitto saves its state or prints subscriptions at these; scripts that send them must not kill rumqd.
            signal.signal(number, signal.SIG_IGN)
    args.converted = found
    if found.temporary:
        if getattr(args, "temporary", None) is None:
            args.temporary = tempfile.mkdtemp(prefix="rumq-")
            atexit.register(shutil.rmtree, args.temporary, ignore_errors=True)
        if args.temporary is not True:  # True: of a broker's sidecar, whose --set names the directory
            found.tree["data"]["dir"] = args.temporary
    return path, found.tree


def require_listener(path: str, found: Converted) -> Converted:
    """raises: RumqError if no listener can be opened"""
    if found.tree["listener"]:
        return found
    raise RumqError("\n".join([*lines_closing(found), f"{path}: no listener is left that can be opened"]))


def lines_closing(found: Converted) -> list[str]:
    seen = dict.fromkeys(found.closing)  # a plugin closes each listener
    return [f"{line.path}, line {line.number}: {line.shown}: {why}" for line, why in seen]


def report_left_out(args: argparse.Namespace) -> None:
    """Report options that are not carried over as events. Precondition: setup_events was called."""
    found: Converted = args.converted
    for line, why in dict.fromkeys(found.closing):
        tell(
            "mosquitto.listener_closed", path=line.path, line=line.number, option=line.key,
            listeners=found.closed, why=why,
        )  # fmt: skip
    for line, why in dict.fromkeys(found.left_out):
        tell("mosquitto.left_out", path=line.path, line=line.number, option=line.key, why=why)
    if why := still_root(found):
        number = found.user.number if found.user is not None else 0
        tell("mosquitto.left_out", path=str(args.mosquitto_conf), line=number, option="user", why=why)


def still_root(found: Converted) -> str:
    """Why the process runs as another user than mosquitto would; empty if it does not."""
    wanted = found.user.value if found.user is not None else "mosquitto"
    if os.geteuid() != 0 or wanted == "root":
        return ""
    return f"rumqd stays root, mosquitto would switch to {wanted}: start rumqd as that user"


def print_verdicts(args: argparse.Namespace) -> int:
    """Print what each line is converted to; returns 1 if something is not carried over."""
    found: Converted = args.converted
    verdicts = dict.fromkeys((line, "carried over") for line in found.carried)
    verdicts |= dict.fromkeys((line, f"not needed: {why}") for line, why in found.idle if line is not found.user)
    verdicts |= dict.fromkeys((line, f"LEFT OUT: {why}") for line, why in found.left_out)
    verdicts |= dict.fromkeys((line, f"ITS LISTENER STAYS CLOSED: {why}") for line, why in found.closing)
    root = still_root(found)
    if found.user is not None:
        verdicts[found.user, f"LEFT OUT: {root}" if root else "not needed: rumqd runs as the user that starts it"] = (
            None
        )
    for line, verdict in sorted(verdicts, key=lambda each: (each[0].path, each[0].number)):
        print(f"{line.path}, line {line.number}: {line.shown}: {verdict}")
    if root and found.user is None:
        print(f"{args.mosquitto_conf}: LEFT OUT: {root}")
    for name in found.closed:
        print(f"{args.mosquitto_conf}: NOT OPENED: {name}")
    return 1 if found.closing or found.left_out or root else 0


def print_converted(args: argparse.Namespace) -> int:
    """`rumqd import-mosquitto`; returns the exit status."""
    found = require_listener(args.file, converted(read_conf(args.file)))
    rules = list(rule_files(found, args.write))
    config = "\n".join(config_lines(found, args.file)) + "\n"
    if args.write:
        for name, text in [("config.toml", config), *rules]:
            write(f"{args.write}/{name}", text)
    else:
        print(config, end="")
        for name, text in rules:
            print(f"\n# ----- {name} -----\n{text}", end="")
    for each in lines_closing(found):
        print(f"rumqd: {each}: its listener was left out", file=sys.stderr)
    for line, why in found.left_out:
        print(f"rumqd: {line.path}, line {line.number}: {line.key} was left out: {why}", file=sys.stderr)
    return 1 if found.left_out or found.closing else 0


def write(path: str, text: str) -> None:
    try:
        with open(path, "x", encoding="utf-8") as file:
            file.write(text)
    except OSError as fault:
        raise RumqError(f"{path}: cannot be written: {fault.strerror}") from None


def rule_files(found: Converted, folder: str | None) -> Iterator[tuple[str, str]]:
    """(name, text) of each ACL file as a rules file; the settings are changed to name it."""
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
    for each in lines_closing(found):
        yield f"# a listener was left out: {each}"
    for line, why in found.left_out:
        yield f"# left out: {line.shown}  (line {line.number}: {why})"
    for section, content in found.tree.items():
        for each in content if isinstance(content, list) else [content]:
            if each:
                yield f"\n[[{section}]]" if isinstance(content, list) else f"\n[{section}]"
                yield from (f"{key} = {as_toml(value)}" for key, value in each.items())
