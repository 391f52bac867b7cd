"""What a forked process does to be a broker: its settings, where its events go, and word to its program.

The settings are those of the program alone, never of the environment. Refuses to know who forks it."""

from __future__ import annotations

import json
import os
import sys
from functools import partial
from pathlib import Path
from typing import Any, TextIO, cast

from rumq.embedded.broker_link import BrokerLink, LinkMessage
from rumq.embedded.toml_text import toml_of
from rumq.errors import ConfigError, DataDirectoryError, RumqError
from rumq.process.broker.broker_process import run
from rumq.process.listeners.gateway_listener import with_gateway
from rumq.settings.load import load_settings
from rumq.settings.table import Settings

DATA, EVENTS, CONFIG = "data", "events.jsonl", "config.toml"  # in the directory of a broker
SOURCE = "rumq.broker"  # of settings, in errors
REFUSED = 2
HERE = {"listener": {"host": "127.0.0.1", "port": 0}}  # unless the program says otherwise
READY = '"event":"broker.ready"'


class EventLines:
    """Standard error of the broker: every line goes to its file of events, and the program is told when it is ready."""

    encoding = "utf-8"

    def __init__(self, link: BrokerLink, scheme: str) -> None:
        self._link, self._scheme = link, scheme

    def write(self, text: str) -> int:
        os.write(2, text.encode(errors="backslashreplace"))
        if READY in text:
            event = json.loads(text)
            self._link.send({"ready": {"host": event["host"], "port": event["port"], "scheme": self._scheme}})
        return len(text)

    def flush(self) -> None:
        """Nothing is held back."""

    def fileno(self) -> int:
        return 2

    def isatty(self) -> bool:
        return False


def become_broker(link: BrokerLink, request: LinkMessage, directory: str) -> int:
    """Serve until a signal; returns the exit status.

    request: `settings` as config.toml has them, `data` or None for a directory in `directory`, `cwd` for relative
    paths, `port` or 0 for the one of the settings
    """
    redirect(f"{directory}/{EVENTS}")
    try:
        os.chdir(request["cwd"])
        settings = settings_of(request, directory)
        config = Path(directory, CONFIG)
        config.write_text(toml_of(tree_of(request, directory)))
        sys.stderr = cast(TextIO, EventLines(link, scheme_of(settings)))
        read = partial(settings_of, request, directory)
        return run(with_gateway(settings), lambda: with_gateway(read()), ["--config", str(config)], begin)
    except ConfigError as fault:
        link.send({"refused": str(fault), "faults": [list(each) for each in fault.faults]})
    except DataDirectoryError as fault:
        link.send({"refused": str(fault), "data": [fault.path, fault.problem]})
    except (RumqError, OSError) as fault:
        link.send({"refused": str(fault)})
    return REFUSED


def begin() -> None:
    """Nothing is shown at the start."""


def redirect(events: str) -> None:
    """Standard output and error into the file, also of what is written by C, and by the processes that it starts."""
    file = os.open(events, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    for fd in (1, 2):
        os.dup2(file, fd)
    os.close(file)


def tree_of(request: LinkMessage, directory: str) -> dict[str, Any]:
    """The settings as config.toml has them, with what a broker inside a program has by itself."""
    given: dict[str, Any] = request["settings"]
    tree = {**HERE, **given}
    port = {"port": request["port"]} if request["port"] else {}
    match tree["listener"]:
        case {**listener}:
            tree["listener"] = HERE["listener"] | listener | port
        case [{**listener}, *others]:
            tree["listener"] = [HERE["listener"] | listener | port, *others]
    if isinstance(tree.setdefault("data", {}), dict):
        tree["data"] = {"dir": request["data"] or f"{directory}/{DATA}", **tree["data"]}
    if isinstance(tree.setdefault("events", {}), dict):
        tree["events"] = {"format": "json", **tree["events"]}
    return tree


def settings_of(request: LinkMessage, directory: str) -> Settings:
    """raises: ConfigError"""
    return load_settings(None, {}, (), tree=(SOURCE, tree_of(request, directory))).settings


def scheme_of(settings: Settings) -> str:
    plain = "ws" if settings.listener.protocol == "websocket" else "mqtt"
    return f"{plain}s" if settings.listener.tls_certificate else plain
