"""One machine without a token, on sockets: whatever it does to the gateway's port, probes and tokens are answered."""

from __future__ import annotations

import contextlib
import http.client
import multiprocessing
import os
import resource
import socket
import threading
import time
from collections.abc import Callable, Iterator
from multiprocessing.synchronize import Event, Semaphore
from pathlib import Path

import pytest

from tests.gateway.conftest import Gateway, started
from tests.gateway.test_process import beside

SECONDS_MAX = 1.0
pytestmark = pytest.mark.long  # the same in the gate, over memory: tests/gateway/test_http_server.py
HELD_SECONDS_MAX, LASTS_SECONDS = 60.0, 3.0
CALLS_MIN = 100  # of each thread, before anything is measured
PAUSE_SECONDS = 0.002
THREADS = 5  # each with an address of its own
FILES_MAX = 10_000
HEAD = b"GET /api/v1/status HTTP/1.1\r\nhost: localhost\r\n"
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
SETTINGS = b"\0\0\6\4\0\0\0\0\0\0\4\0\0\0\0"  # INITIAL_WINDOW_SIZE 0
HEADERS = b"\0\0\x0f\1\5\0\0\0%c\x82\x86\x04\x08/healthz\x41\x01a"  # GET /healthz
WEBSOCKET = (
    b"GET /mqtt HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: websocket\r\n"
    b"sec-websocket-version: 13\r\n"
    b"sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nsec-websocket-protocol: mqtt\r\n\r\n"
)


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    made = started(tmp_path_factory.mktemp("attacked"))
    yield made
    made.broker.end()


class Attacker:
    """One address. files: how many sockets it may have"""

    def __init__(self, port: int, host: str, files: int, is_over: Event) -> None:
        self._port, self._host, self._files, self._is_over = port, host, files, is_over
        self.sockets: list[socket.socket] = []

    def connect(self) -> socket.socket:
        if len(self.sockets) >= self._files:
            self.sockets.pop(0).close()
        sock = socket.socket()
        self.sockets.append(sock)
        sock.settimeout(2.0)
        sock.bind((self._host, 0))
        sock.connect(("127.0.0.1", self._port))
        return sock

    def run(self, misuse: Callable[[Attacker], None], is_held: Semaphore) -> None:
        calls = 0
        while not self._is_over.is_set():
            with contextlib.suppress(OSError):
                misuse(self)
            calls += 1
            if calls == CALLS_MIN:
                is_held.release()
            time.sleep(PAUSE_SECONDS)  # what it holds is tried here, not how many a processor can accept


def idle(attacker: Attacker) -> None:
    attacker.connect()


def window_of_0(attacker: Attacker) -> None:
    sock = attacker.connect()
    sock.sendall(PREFACE + SETTINGS + b"".join(HEADERS % n for n in range(1, 200, 2)))
    sock = attacker.connect()
    sock.sendall(HEAD + b"connection: upgrade, http2-settings\r\nupgrade: h2c\r\nhttp2-settings: AAQAAAAA\r\n\r\n")


def unread(attacker: Attacker) -> None:
    sock = attacker.connect()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
    sock.settimeout(0.2)
    for _ in range(50):
        sock.sendall(b"GET /api/v1/openapi.json HTTP/1.1\r\nhost: localhost\r\n\r\n" * 10)


def dripping(attacker: Attacker) -> None:
    attacker.connect()
    for n, sock in enumerate(attacker.sockets[-100:]):
        sock.sendall(HEAD[n % len(HEAD) :][:1])


def endless_body(attacker: Attacker) -> None:
    sock = attacker.connect()
    sock.settimeout(0.2)
    sock.sendall(b"POST /api/v1/publish HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n")
    for _ in range(50):
        sock.sendall(b"10000\r\n" + bytes(0x10000) + b"\r\n")


def wrong_tokens(attacker: Attacker) -> None:
    attacker.connect().sendall(HEAD + b"authorization: Bearer rumq_wrong\r\n\r\n")


def no_connect(attacker: Attacker) -> None:
    attacker.connect().sendall(WEBSOCKET)


MISUSES = [idle, window_of_0, unread, dripping, endless_body, wrong_tokens, no_connect]


def attacked(port: int, misuse: Callable[[Attacker], None], is_held: Semaphore, is_over: Event) -> None:
    """A process of its own with less priority: it holds what it can, and leaves the processor to the gateway."""
    os.nice(19)
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    files = min(FILES_MAX, hard - 500) // THREADS
    attackers = [Attacker(port, f"127.0.0.{n + 2}", files, is_over) for n in range(THREADS)]
    threads = [threading.Thread(target=each.run, args=(misuse, is_held)) for each in attackers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@pytest.mark.parametrize("misuse", MISUSES, ids=lambda each: each.__name__)
def test_probes_and_right_tokens_are_answered_meanwhile(gateway: Gateway, misuse: Callable[[Attacker], None]) -> None:
    fresh = multiprocessing.get_context("spawn")
    is_held, is_over = fresh.Semaphore(0), fresh.Event()
    attack = fresh.Process(target=attacked, args=(gateway.port, misuse, is_held, is_over))
    attack.start()
    try:
        for _ in range(THREADS):
            assert is_held.acquire(timeout=HELD_SECONDS_MAX)
        until = time.monotonic() + LASTS_SECONDS
        seconds = []
        tried = refused = 0
        while time.monotonic() < until:
            seconds.append(answered(gateway, "/healthz", "127.0.0.1"))
            tried += 1
            try:
                seconds.append(answered(gateway, "/healthz", "127.0.0.2"))
            except ConnectionResetError:  # an attacker's own address opens more connections than it may
                refused += 1
            seconds.append(answered(gateway, "/readyz", "127.0.0.1"))
            seconds.append(answered(gateway, "/api/v1/me", "127.0.0.1", gateway.secrets["reader"]))
    finally:
        is_over.set()
        attack.join()
    assert max(seconds) <= SECONDS_MAX and len(seconds) >= 4
    assert refused <= 0.9 * tried, "its own turn comes, too"
    assert not gateway.broker.named("gateway.failed", "gateway.died")


def answered(gateway: Gateway, path: str, host: str, secret: str = "") -> float:
    """Seconds until the whole answer from this address, without those spent waiting for a processor."""
    began, waited = time.monotonic(), stolen_seconds(gateway)
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=10, source_address=(host, 0))
    with contextlib.closing(connection):
        connection.request("GET", path, headers={"authorization": f"Bearer {secret}"} if secret else {})
        answer = connection.getresponse()
        assert answer.read()
        assert answer.status == 200 or (path, answer.status) == ("/readyz", 503)  # a busy machine
    return time.monotonic() - began - (stolen_seconds(gateway) - waited)


def stolen_seconds(gateway: Gateway) -> float:
    """How long the gateway and this process were ready to run and did not, for others had the processor. proc(5)"""
    pids = (beside(gateway.broker.process.pid), os.getpid())
    return sum(int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) for pid in pids) / 1e9
