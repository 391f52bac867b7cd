"""A broker with its gateway and its servers of Flight, gRPC and Kafka, whose file changes by one key at a time."""

from __future__ import annotations

import copy
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rumq.settings.keys import as_toml
from tests.broker_process import Event, Rumqd
from tests.net.authorities import Authorities
from tests.settings.probe import EVENT

PROCESSES = ("broker", "gateway", "flight", "grpc", "kafka")
SECRET = 32 * "s"
HASH = "$7$2$AAAAAAAAAAAAAAAA$" + 86 * "A" + "=="  # of mosquitto_passwd: nobody logs in with it
TLS, REPLACED = 1, 2  # places of the listeners with TLS, and of the one that is replaced by others

Tree = dict[str, Any]


class Probed(Rumqd):
    """All its settings are those of the file: a flag would win over it."""

    def command(self) -> list[str]:
        return [sys.executable, "-m", "tests.settings.probe", "run", *self.flags]


class Site:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.authorities = Authorities(folder)
        self.file = folder / "config.toml"
        self.base = self._base()
        self.write(self.base)
        self.broker = Probed(folder / "data", "--config", str(self.file))
        self.broker.start()
        for protocol in ("http", "flight", "grpc", "kafka"):  # they can be told to reload
            self.broker.heard(lambda event, wanted=protocol: event.get("protocol") == wanted)
        self.first = {"broker": self.reload(self.base)}
        for process in PROCESSES[1:]:
            said = self.broker.heard(lambda event, process=process: event.get("process") == process)
            self.first[process] = said["values"]

    def _base(self) -> Tree:
        """Every file that a key can name, twice: the broker begins with the first."""
        made = self.made
        return {
            "listener": [
                {"host": "127.0.0.1", "port": 0},
                {
                    "host": "127.0.0.2", "port": 0, "tls_certificate": self.authorities.path("server"),
                    "tls_key": self.authorities.path("server", "key"), "tls_authority": self.authorities.path("ca"),
                    "tls_client_certificate": "optional",
                },
                {"host": "127.0.0.3", "port": 0},
            ],
            "data": {"dir": str(self.folder / "data")},
            "auth": {
                "anonymous": "yes", "password_file": made("anna.users", f"anna:{HASH}\n"),
                "token_keys_file": made("first.keys", SECRET), "http_url": "http://127.0.0.1:9/",
                "rules_file": made("first.toml", rules("first")),
            },
            "stream": [{"name": "plant", "filters": ["plant/#"]}],
            "gateway": {"port": -1},
            "flight": {"port": -1},
            "grpc": {"port": -1},
            "kafka": {"port": -1},
            "trace": {"sample_every": 7, "otlp_endpoint": "http://127.0.0.1:9"},
        }  # fmt: skip

    def made(self, name: str, text: str) -> str:
        path = self.folder / name
        path.write_text(text)
        path.chmod(0o600)
        return str(path)

    def write(self, tree: Tree) -> None:
        lines = []
        for section, content in tree.items():
            for each in content if isinstance(content, list) else [content]:
                lines.append(f"[[{section}]]" if isinstance(content, list) else f"[{section}]")
                lines += [f"{name} = {as_toml(value)}" for name, value in each.items()]
        self.file.write_text("\n".join(lines) + "\n")

    def changed(self, *changes: tuple[str, int, object]) -> Tree:
        """The first file with other values. changes: (section.key, place of a listener or stream, value)"""
        tree = copy.deepcopy(self.base)
        for dotted, place, value in changes:
            section, _, name = dotted.rpartition(".")
            content = tree.setdefault(section, {})
            (content[place] if isinstance(content, list) else content)[name] = value
        return tree

    def reload(self, tree: Tree) -> dict[str, Any]:
        """What is in force in the broker after a SIGHUP."""
        before = len(self._said("broker"))
        self.write(tree)
        self.broker.hang_up()
        self.broker.heard(lambda _: len(self._said("broker")) > before)
        return dict(self._said("broker")[-1]["values"])

    def in_force(self, process: str, key: str, wanted: Callable[[object], bool]) -> object:
        """What the gateway or the Flight server have of a key, once it is wanted: the broker tells them to reload."""
        self.broker.heard(lambda _: wanted(self._said(process)[-1]["values"][key]))
        return self._said(process)[-1]["values"][key]

    def _said(self, process: str) -> list[Event]:
        return [each for each in self.broker.events if each["event"] == EVENT and each["process"] == process]

    def told(self) -> Event:
        """What the broker has said of the last reload: it says so before the probe does."""
        return self.broker.named("settings.reloaded", "settings.refused")[-1]

    def end(self) -> None:
        self.broker.end()


def rules(topic: str) -> str:
    return f'[[rule]]\nallow = ["publish"]\ntopics = {json.dumps([topic])}\n'
