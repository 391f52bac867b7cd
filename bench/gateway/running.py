"""A broker with its gateway, on loopback, in a folder of its own; and HTTP as little as a bench needs of it."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.peers.rumq import rumqd
from bench.process import process_cpu_s, read, tree

START_SECONDS = 30.0


class Running:
    """port, http_port: of MQTT and HTTP; pid: of the broker; gateway, shards: pids; token: with every role

    Without a gateway http_port and gateway are 0."""

    def __init__(self, process: subprocess.Popen[bytes], token: str, folder: Path, *, has_gateway: bool) -> None:
        self._process, self.pid, self.token, self.folder = process, process.pid, token, folder
        self.events: list[dict[str, Any]] = []
        self._heard = threading.Condition()
        threading.Thread(target=self._hear, daemon=True).start()
        self.port = int(self.wait("broker.ready")["port"])
        self.http_port = int(self.wait("listener.bound", protocol="http")["port"]) if has_gateway else 0
        around = tree(process.pid)
        found = [pid for pid in around if "gateway\0--for-broker" in read(Path(f"/proc/{pid}/cmdline"))]
        self.gateway = found[0] if has_gateway else 0
        self.shards = [pid for pid in around if pid not in found]

    def _hear(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            try:
                event = json.loads(line)
            except ValueError:
                event = {"event": "", "text": line.decode(errors="replace")}
            with self._heard:
                self.events.append(event)
                self._heard.notify_all()

    def wait(self, name: str, **fields: object) -> dict[str, Any]:
        """The first such event."""
        until = time.monotonic() + START_SECONDS
        with self._heard:
            while True:
                for event in self.events:
                    if event["event"] == name and all(event.get(key) == value for key, value in fields.items()):
                        return event
                left = until - time.monotonic()
                if left <= 0 or self._process.poll() is not None:
                    raise RuntimeError(f"no {name}: {self.events[-3:]}")
                self._heard.wait(left)

    def shards_cpu_s(self) -> float:
        return sum(map(process_cpu_s, self.shards))

    def gateway_cpu_s(self) -> float:
        return process_cpu_s(self.gateway)

    def connection(self) -> Http:
        return Http(self.http_port, self.token)


class Http:
    """One connection that is kept alive."""

    def __init__(self, port: int, token: str, seconds: float = 60.0) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=seconds)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._token = token
        self._file = self.socket.makefile("rb")

    def head(self, method: str, target: str, more: str = "") -> bytes:
        return (
            f"{method} {target} HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer {self._token}\r\n{more}\r\n"
        ).encode()

    def get(self, target: str) -> tuple[int, bytes]:
        self.socket.sendall(self.head("GET", target))
        return self.answer()

    def post(self, target: str, body: bytes, kind: str = "application/json") -> tuple[int, bytes]:
        self.socket.sendall(self.posted(target, body, kind))
        return self.answer()

    def posted(self, target: str, body: bytes, kind: str = "application/json") -> bytes:
        return self.head("POST", target, f"content-type: {kind}\r\ncontent-length: {len(body)}\r\n") + body

    def answer(self) -> tuple[int, bytes]:
        """(status, body) of an answer with a length, or in chunks."""
        status = int(self._file.readline().split()[1])
        length, chunked = 0, False
        while (line := self._file.readline()) not in (b"\r\n", b""):
            name, _, value = line.decode("latin-1").lower().partition(":")
            if name == "content-length":
                length = int(value)
            chunked = chunked or (name == "transfer-encoding" and "chunked" in value)
        if not chunked:
            return status, self._file.read(length)
        body = b""
        while size := int(self._file.readline(), 16):
            body += self._file.read(size)
            self._file.readline()
        self._file.readline()
        return status, body

    def close(self) -> None:
        self._file.close()
        self.socket.close()


@contextmanager
def running(*settings: str, shards: int = 1, tree_of: Path | None = None) -> Iterator[Running]:
    """settings: as --set takes them; tree_of: a clone whose code runs instead of ours"""
    with tempfile.TemporaryDirectory(prefix="rumq-bench-") as name:
        folder = Path(name)
        roles = ["read", "publish", "administer", *(["consume"] if "queues.enabled=true" in settings else [])]
        made = subprocess.run(
            [*rumqd(), "token", "add", "bench", *(word for each in roles for word in ("--role", each)),
             "--data", str(folder / "data")],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        chosen = (f"shards.count={shards}", "gateway.port=-1", "events.format=json", *settings)
        process = subprocess.Popen(
            [*rumqd(), "run", "--host", "127.0.0.1", "--port", "0", "--data", str(folder / "data"),
             *(word for each in chosen for word in ("--set", each))],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=tree_of or os.getcwd(),
        )  # fmt: skip
        try:
            has_gateway = not any(each == "gateway.port=0" for each in settings)
            yield Running(process, made.stdout.strip(), folder, has_gateway=has_gateway)
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(START_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
