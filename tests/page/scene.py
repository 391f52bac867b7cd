"""A plant on a broker, for screenshots and tests: JSON, MessagePack, CBOR, text, and retained states.

Everything is published over REST; the numbers are always the same."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterator
from typing import Any

import msgspec

from tests.gateway.conftest import Gateway

LINES, MACHINES = 4, 6
BATCH = 500
HOSTILE = (
    "<script>alert(1)</script>",
    "\"><img src=x onerror='alert(1)'>",
    "a'b\"c&d",
    "rtl/\u202egnp.exe",
    "zero\u200bwidth/\ufefftopic",
    "x" * 300,
    "{{constructor.constructor('alert(1)')()}}",
)


def readings(rounds: int, first: int = 0) -> Iterator[dict[str, Any]]:
    """rounds: messages of each machine; first: number of the first one"""
    for n in range(first, first + rounds):
        for line in range(1, LINES + 1):
            for machine in range(1, MACHINES + 1):
                place = f"plant/line-{line}/press-{machine}"
                celsius = round(60 + 8 * math.sin(n / 9 + machine) + line, 2)
                value = {"celsius": celsius, "bar": round(4 + celsius / 50, 2), "cycle": n * 3 + machine}
                yield message(f"{place}/process", json.dumps(value).encode(), content="application/json")
                if n % 5 == 0:
                    yield message(f"{place}/state", b"running" if (n + machine) % 11 else b"stopped", retain=True)
            frame = msgspec.msgpack.encode({"line": line, "rms": [round(0.1 * line + n / 1000, 4)] * 4, "at": n})
            yield message(f"plant/line-{line}/vibration", frame)
            yield message(f"plant/line-{line}/energy", cbor(line, n), content="application/cbor")
        yield message("plant/weather", f"{12 + n % 7} °C, wind {n % 20} km/h".encode())


def cbor(line: int, n: int) -> bytes:
    """{"kwh": n, "line": line} in CBOR."""
    return b"\xa2\x63kwh\x19" + n.to_bytes(2, "big") + b"\x64line" + bytes([line])


def message(topic: str, payload: bytes, *, retain: bool = False, qos: int = 0, content: str = "") -> dict[str, Any]:
    """As POST /api/v1/publish takes it."""
    text = base64.b64encode(payload).decode()
    made: dict[str, Any] = {
        "topic": topic, "payload": text, "encoding": "base64", "retain": retain, "qos": qos,
    }  # fmt: skip
    if content:
        made["properties"] = {"content_type": content}
    return made


def publish(gateway: Gateway, messages: Iterator[dict[str, Any]] | list[dict[str, Any]]) -> int:
    """All of them, the last at QoS 1, so that they are in the log once this returns. returns: how many"""
    given = list(messages)
    if given:
        given[-1] = {**given[-1], "qos": 1}
    for start in range(0, len(given), BATCH):
        answer = gateway.publish(*given[start : start + BATCH])
        assert answer.status == 200, answer
    return len(given)
