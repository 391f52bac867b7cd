"""A Kafka client as little as a bench needs of it: requests one after the other, and batches that are counted."""

from __future__ import annotations

import socket
import struct
from typing import Any

from rumq.kafka.protocol.apis import APIS, answer_codec, request_codec
from rumq.kafka.protocol.fields import NUMBERS, FieldReader, FieldWriter

FETCH, FETCH_VERSION, LIST_OFFSETS, LIST_VERSION = 1, 11, 2, 5
COUNT_AT, SPAN_AT, BATCH_HEADER_BYTES = 57, 23, 61
ASK_BYTES = 1 << 20  # of one answer: as librdkafka asks for


class KafkaReader:
    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60.0)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._file = self.socket.makefile("rb")
        self._correlation = 0

    def ask(self, key: int, version: int, body: dict[str, Any]) -> dict[str, Any]:
        """raises: OSError"""
        self.send(key, version, body)
        reader = FieldReader(self.answer())
        reader.take(5 if APIS[key].is_flexible(version) else 4)
        return answer_codec(key, version).read(reader)

    def send(self, key: int, version: int, body: dict[str, Any]) -> None:
        """raises: OSError"""
        flexible = APIS[key].is_flexible(version)
        self._correlation += 1
        writer = FieldWriter()
        writer.add(struct.pack(">hhih", key, version, self._correlation, -1) + bytes(flexible))
        request_codec(key, version).write(writer, body)
        data = b"".join(writer.parts())
        self.socket.sendall(NUMBERS["int32"].pack(len(data)) + data)

    def answer(self) -> bytes:
        """The next one, without its length. raises: OSError"""
        return self._file.read(int.from_bytes(self._file.read(4), "big"))

    def fetch(
        self, topic: str, partition: int, offset: int, wait_ms: int = 1000, *, bytes_max: int = ASK_BYTES
    ) -> tuple[list[bytes], int]:
        """Batches from an offset on, and the offset behind them. raises: RuntimeError for an error, OSError"""
        self.send_fetch(topic, partition, offset, wait_ms, bytes_max=bytes_max)
        reader = FieldReader(self.answer())
        reader.take(4)
        answer = answer_codec(FETCH, FETCH_VERSION).read(reader)["responses"][0]["partitions"][0]
        if answer["error_code"]:
            raise RuntimeError(f"fetch at {offset}: error {answer['error_code']}")
        found = batches_of(answer["records"])
        return found, end_of(found[-1]) if found else offset

    def send_fetch(self, topic: str, partition: int, offset: int, wait_ms: int, *, bytes_max: int = ASK_BYTES) -> None:
        """raises: OSError"""
        asked = {"partition": partition, "fetch_offset": offset, "partition_max_bytes": bytes_max}
        body = {
            "replica_id": -1, "max_wait_ms": wait_ms, "min_bytes": 1, "max_bytes": 8 * bytes_max,
            "topics": [{"topic": topic, "partitions": [asked]}],
        }  # fmt: skip
        self.send(FETCH, FETCH_VERSION, body)

    def end(self, topic: str, partition: int) -> int:
        asked = {"partition_index": partition, "timestamp": -1}
        body = {"replica_id": -1, "topics": [{"name": topic, "partitions": [asked]}]}
        found: int = self.ask(LIST_OFFSETS, LIST_VERSION, body)["topics"][0]["partitions"][0]["offset"]
        return found

    def close(self) -> None:
        self._file.close()
        self.socket.close()


def batches_of(records: bytes) -> list[bytes]:
    found, at = [], 0
    while at + BATCH_HEADER_BYTES <= len(records):
        size = 12 + int.from_bytes(records[at + 8 : at + 12], "big")
        found.append(records[at : at + size])
        at += size
    return found


def count_of(batch: bytes) -> int:
    return int.from_bytes(batch[COUNT_AT : COUNT_AT + 4], "big")


def end_of(batch: bytes) -> int:
    return int.from_bytes(batch[:8], "big") + int.from_bytes(batch[SPAN_AT : SPAN_AT + 4], "big") + 1
