"""Clients that lie, stall or ask for too much: bounded, named, and nobody else notices."""

import os
import random
import socket
from typing import Any

import pytest

from rumq.kafka import connection
from tests.kafka.decoded import batches
from tests.kafka.served import Served, served
from tests.kafka.wire_client import WireClient, frame_of

NAMES = {"topics": None}


def is_well(here: Served) -> bool:
    """Another client is served."""
    other = WireClient(here.port)
    found = other.ask("Metadata", 1, NAMES)
    other.close()
    return [each["name"] for each in found["topics"]] == ["main", "two", "none"]


def ended(here: Served, data: bytes, why: str) -> None:
    """What ends its connection, with an event that names it."""
    liar = WireClient(here.port)
    liar.sock.sendall(data)
    assert liar.frame() == b""
    liar.close()
    assert why in here.told("kafka.ended")[-1]["why"]
    assert is_well(here)


@pytest.mark.parametrize("size", [(1 << 31) - 1, 1 << 30, (1 << 16) + 1])
def test_a_length_of_two_gib_ends_the_connection_before_any_byte_of_it(size: int, root: str) -> None:
    with served(root) as here:
        ended(here, size.to_bytes(4, "big"), f"a frame of {size} bytes: at most 65536 are taken")


def test_a_frame_is_larger_only_after_a_login(root: str) -> None:
    with served(root, request_bytes_max=1 << 17) as here:
        known = WireClient(here.port)
        known.ask("Metadata", 1, NAMES)
        large = {"topics": [{"name": f"{number}" + "x" * 32_000} for number in range(4)]}
        found = known.ask("Metadata", 1, large)  # names of 32 KiB
        assert [each["error_code"] for each in found["topics"]] == [3] * 4
        known.send("Metadata", 1, {"topics": [{"name": "x" * 32_000}] * 5})
        assert known.frame() == b""
        assert is_well(here)


def test_what_is_not_offered_ends_the_connection(root: str) -> None:
    with served(root) as here:
        ended(here, bytes.fromhex("0000000a 03e7 0000 00000001 ffff"), "API 999")
        ended(here, bytes.fromhex("0000000a 0001 0063 00000001 ffff"), "version 99 of Fetch: 4 to 13")
        ended(here, bytes.fromhex("0000000a 0003 0001 00000001 ffff"), "ends within a number")


def test_a_client_of_another_protocol_is_named(root: str) -> None:
    with served(root) as here:
        ended(here, b"GET / HTTP/1.1\r\n\r\n", "a frame of 1195725856 bytes")


def test_noise_does_no_harm(root: str) -> None:
    chance = random.Random(7)
    with served(root) as here:
        for _ in range(100):
            noisy = WireClient(here.port)
            good = bytearray(frame_of("Metadata", chance.randrange(13), NAMES))
            for _ in range(chance.randrange(1, 6)):
                good[chance.randrange(4, len(good))] = chance.randrange(256)
            noisy.sock.sendall(bytes(good))
            noisy.sock.shutdown(socket.SHUT_WR)
            while noisy.frame():
                pass
            noisy.close()
        assert is_well(here)


def test_connections_beyond_a_networks_half_are_closed_and_counted(root: str) -> None:
    with served(root, connections_max=8) as here:
        known = [WireClient(here.port) for _ in range(4)]
        for each in known:
            each.ask("Metadata", 1, NAMES)
        refused = WireClient(here.port)
        assert refused.frame() == b""
        assert here.server.door.figures.refused_connections == 1
        known.pop().close()
        while not well_or_refused(here):
            pass


def well_or_refused(here: Served) -> bool:
    """A connection that has just ended may still be counted."""
    other = WireClient(here.port)
    other.send("Metadata", 1, NAMES)
    found = other.frame() != b""
    other.close()
    return found


def test_who_says_nothing_is_left(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "LOGIN_SECONDS_MAX", 0.05)
    with served(root, idle_seconds_max=0.05) as here:
        assert WireClient(here.port).frame() == b""
        slow = WireClient(here.port)
        slow.ask("Metadata", 1, NAMES)
        assert slow.frame() == b""


def test_who_does_not_read_is_left_and_its_bytes_are_given_back(
    root: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.setattr(connection, "SEND_SECONDS", 0.05)
    monkeypatch.setattr(connection, "SEND_BYTES_PER_SECOND", 1 << 30)
    with served(root) as here:
        slow = WireClient(here.port)
        slow.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        request = frame_of("Metadata", 1, {"topics": [{"name": f"{n:0>1000}"} for n in range(900)]})
        slow.ask("Metadata", 1, NAMES)
        slow.sock.settimeout(5)
        try:
            while not here.told("kafka.ended"):
                slow.sock.sendall(request)
        except OSError:
            pass
        assert "does not take an answer" in here.told("kafka.ended")[0]["why"]
        assert here.server.door.bounds.waiting.held == 0 and is_well(here)


def test_bytes_of_an_answer_are_bounded_whatever_is_asked_for(root: str) -> None:
    with served(root, answer_bytes_max=2000) as here:
        client = WireClient(here.port)
        found = client.fetch("main", 0, bytes_max=(1 << 31) - 1, max_bytes=(1 << 31) - 1)
        assert 1000 < len(found["records"]) <= 2000
        found = client.fetch("main", 0, bytes_max=-1, max_bytes=-5, min_bytes=-7, max_wait_ms=-9)
        assert [len(each.records) for each in batches(found["records"])] == [1]


def test_a_request_for_more_partitions_than_there_can_be_is_refused(root: str) -> None:
    one = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 20}
    body = {
        "replica_id": -1, "max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1 << 20, "isolation_level": 0,
        "topics": [{"topic": "main", "partitions": [one] * 1001}],
    }  # fmt: skip
    with served(root) as here:
        assert WireClient(here.port).ask("Fetch", 11, body)["error_code"] == 42
        asked = {"topics": [{"name": "main", "partitions": [{"partition_index": 0, "timestamp": 5}] * 1001}]}
        [found] = WireClient(here.port).ask("ListOffsets", 5, {"replica_id": -1, **asked})["topics"]
        assert {each["error_code"] for each in found["partitions"]} == {42}


def test_descriptors_are_given_back(root: str) -> None:
    with served(root) as here:
        assert is_well(here)
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(50):
            assert is_well(here)
        while len(os.listdir("/proc/self/fd")) > before + 2:
            pass
