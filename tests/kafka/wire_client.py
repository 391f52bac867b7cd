"""A client that says what a test wants, also what is wrong."""

from __future__ import annotations

import socket
from typing import Any

from rumq.kafka.protocol.apis import API_VERSIONS, APIS, answer_codec, request_codec
from rumq.kafka.protocol.fields import FieldReader, FieldWriter

NUMBERS = {api.name: api.key for api in APIS.values()}
SECONDS = 30.0


class WireClient:
    def __init__(self, port: int, sock: socket.socket | None = None) -> None:
        self.sock = sock or socket.create_connection(("127.0.0.1", port), timeout=SECONDS)
        self._file = self.sock.makefile("rb")

    def send(self, name: str, version: int, body: dict[str, Any]) -> None:
        self.sock.sendall(frame_of(name, version, body))

    def frame(self) -> bytes:
        """The next one; empty: the connection has ended."""
        try:
            size = self._file.read(4)
            return self._file.read(int.from_bytes(size, "big")) if len(size) == 4 else b""
        except ConnectionResetError:
            return b""

    def answer(self, name: str, version: int) -> dict[str, Any]:
        reader = FieldReader(self.frame())
        key = NUMBERS[name]
        reader.take(5 if APIS[key].is_flexible(version) and key != API_VERSIONS else 4)
        return answer_codec(key, version).read(reader)

    def ask(self, name: str, version: int, body: dict[str, Any]) -> dict[str, Any]:
        self.send(name, version, body)
        return self.answer(name, version)

    def fetch(self, topic: str, offset: int, partition: int = 0, **more: Any) -> dict[str, Any]:
        """The answer of one partition."""
        asked = {"partition": partition, "fetch_offset": offset, "partition_max_bytes": more.pop("bytes_max", 1 << 20)}
        body = {
            "replica_id": -1, "max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1 << 26, "isolation_level": 1,
            "topics": [{"topic": topic, "partitions": [asked]}], **more,
        }  # fmt: skip
        found: dict[str, Any] = self.ask("Fetch", 11, body)["responses"][0]["partitions"][0]
        return found

    def close(self) -> None:
        self._file.close()
        self.sock.close()


def frame_of(name: str, version: int, body: dict[str, Any]) -> bytes:
    key = NUMBERS[name]
    writer = FieldWriter()
    writer.add(key.to_bytes(2, "big") + version.to_bytes(2, "big") + (7).to_bytes(4, "big") + b"\0\4test")
    if APIS[key].is_flexible(version):
        writer.varint(0)
    request_codec(key, version).write(writer, body)
    data = b"".join(writer.parts())
    return len(data).to_bytes(4, "big") + data
