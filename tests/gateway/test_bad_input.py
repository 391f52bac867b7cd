"""Bad input: wrong tokens, large bodies, idle connections, slow readers, clients that vanish. Refused or bounded."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from rumq.gateway.access.admission import OF_A_NETWORK_MAX, WAITING_MAX, RequestAdmission, Unauthorized
from rumq.gateway.access.tokens import Token, hash_of
from rumq.gateway.http.misuse_reports import MisuseReports
from tests.gateway.conftest import Gateway, started

BODY_BYTES_MAX = 4096


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    path: Path = tmp_path_factory.mktemp("small")
    made = started(
        path, f"gateway.body_bytes_max={BODY_BYTES_MAX}", "gateway.connections_max=8", "gateway.request_seconds_max=1",
        "auth.guess_seconds_max=0",
    )  # fmt: skip
    yield made
    made.broker.end()


def test_a_wrong_token_is_delayed_twice_as_long_each_time_and_a_right_one_never() -> None:
    admission = RequestAdmission({hash_of("rumq_right"): Token("t", frozenset({"read"}))}, 8.0)
    waits = []
    for _ in range(7):
        with pytest.raises(Unauthorized) as caught:
            admission.token_of("Bearer rumq_wrong", "10.0.0.1", 0.0)
        waits.append(caught.value.seconds)
    assert waits == [0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 8.0] and admission.refused == 7
    assert admission.token_of("Bearer rumq_right", "10.0.0.1", 0.0).name == "t"
    with pytest.raises(Unauthorized) as caught:
        admission.token_of("Bearer rumq_wrong", "10.0.0.2", 0.0)
    assert caught.value.seconds == 0.25, "another address"


@pytest.mark.parametrize("header", [None, "", "Basic abc", "Bearer", "Bearer ", "bearer\t"])
def test_no_token_is_refused_without_a_delay(header: str | None) -> None:
    with pytest.raises(Unauthorized) as caught:
        RequestAdmission({}, 8.0).token_of(header, "10.0.0.1", 0.0)
    assert caught.value.seconds == 0.0


def test_so_many_refusals_of_a_network_wait_and_no_more() -> None:
    admission = RequestAdmission({}, 8.0)
    with ExitStack() as delays:
        for n in range(OF_A_NETWORK_MAX):
            delays.enter_context(admission.delayed(f"2001:db8::{n:x}"))
        assert not admission.has_room("2001:db8::ffff") and admission.has_room("2001:db8:0:1::1")
        for n in range(WAITING_MAX - OF_A_NETWORK_MAX):
            delays.enter_context(admission.delayed(f"10.0.{n}.1"))
        assert not admission.has_room("10.9.9.9"), "so many of all"
    assert admission.has_room("2001:db8::1") and not admission.waiting


def test_wrong_tokens_are_counted_by_network() -> None:
    admission = RequestAdmission({}, 8.0)
    waits = []
    for n in range(3):
        with pytest.raises(Unauthorized) as caught:
            admission.token_of("Bearer rumq_wrong", f"2001:db8::{n:x}", 0.0)
        waits.append(caught.value.seconds)
    assert waits == [0.25, 0.5, 1.0]


def test_wrong_tokens_are_counted(small: Gateway) -> None:
    for token in ("rumq_wrong", "x" * 5000):
        assert small.ask("GET", "/api/v1/status", token=token).status == 401
    assert "rumq_gateway_refused_total 2.0" in small.ask("GET", "/metrics").body.decode()


def test_a_body_beyond_the_limit_is_refused_before_it_is_read(small: Gateway) -> None:
    answer = small.ask("POST", "/api/v1/publish", b"x" * (BODY_BYTES_MAX + 1))
    assert answer.status == 413 and str(BODY_BYTES_MAX) in answer.json["detail"]
    assert answer.headers["content-type"] == "application/problem+json"


def test_misuse_is_reported_and_does_not_flood(small: Gateway) -> None:
    """Of hundreds of a kind a few events tell; that it was done at all, one does at once."""
    told: list[tuple[str, dict[str, object]]] = []
    reports = MisuseReports(lambda name, **fields: told.append((name, fields)))
    for count in range(1, 1001):
        reports.refused("token", "10.0.0.1", "wrong")
        reports.shed(8, count)
    assert [fields["refused"] for name, fields in told if name == "gateway.refused"] == [2**n for n in range(10)]
    assert [fields["turned_away"] for name, fields in told if name == "gateway.overloaded"] == [2**n for n in range(10)]
    reports.refused("body", "10.0.0.1", "large")
    assert told[-1] == ("gateway.refused", {"address": "10.0.0.1", "why": "large", "refused": 1}), "a kind of its own"


@pytest.mark.parametrize("why", ["the token is not known", f"at most {BODY_BYTES_MAX}"], ids=["token", "body"])
def test_wrong_tokens_and_large_bodies_are_events(small: Gateway, why: str) -> None:
    assert small.ask("GET", "/api/v1/status", token="rumq_wrong").status == 401
    assert small.ask("POST", "/api/v1/publish", b"x" * (BODY_BYTES_MAX + 1)).status == 413
    found = small.broker.heard(lambda event: event["event"] == "gateway.refused" and why in event["why"])
    assert found["address"] == "127.0.0.1"


def test_a_chunked_body_beyond_the_limit_is_refused_while_it_comes(small: Gateway) -> None:
    with opened(small) as sock:
        head = f"POST /api/v1/publish HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {small.secrets['ops']}\r\n"
        sock.sendall(head.encode() + b"content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n")
        for _ in range(5):
            sock.sendall(b"400\r\n" + b" " * 1024 + b"\r\n")
        assert sock.recv(100).startswith(b"HTTP/1.1 413")


def test_a_body_that_never_comes_is_given_up(small: Gateway) -> None:
    with opened(small) as sock:
        head = f"POST /api/v1/publish HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {small.secrets['ops']}\r\n"
        sock.sendall(head.encode() + b"content-type: application/json\r\ncontent-length: 10\r\n\r\n")
        assert sock.recv(100).startswith(b"HTTP/1.1 503")


def test_one_connection_more_closes_the_one_that_is_idle_for_longest(small: Gateway) -> None:
    idle: list[socket.socket] = []
    try:
        for _ in range(8 + 3):  # connections of other tests, if some are left, have been idle for longer
            idle.append(opened(small))
            assert is_served(idle[-1])
        assert [sock.recv(10) for sock in idle[:3]] == [b"", b"", b""]
        assert is_served(idle[3]), "the others stay"
    finally:
        for sock in idle:
            sock.close()


def is_served(sock: socket.socket) -> bool:
    sock.sendall(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n")
    got = b""
    while not got.endswith(b"}"):
        more = sock.recv(4096)
        if not more:
            return False
        got += more
    return got.startswith(b"HTTP/1.1 200")


def test_a_reader_that_does_not_read_is_given_up_and_others_are_served(small: Gateway) -> None:
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
    sock.settimeout(30)
    sock.connect(("127.0.0.1", small.port))
    head = "GET /metrics HTTP/1.1\r\nhost: localhost\r\n"
    request = f"{head}authorization: Bearer {small.secrets['ops']}\r\n\r\n".encode()
    with pytest.raises(OSError):  # noqa: PT012 - which of them sees it depends on what is buffered
        while True:
            sock.sendall(request)
    sock.close()
    assert small.ask("GET", "/healthz").status == 200


def test_clients_that_vanish_leave_nothing_behind(small: Gateway) -> None:
    for _ in range(20):
        sock = opened(small)
        sock.sendall(b"POST /api/v1/publish HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\nx")
        sock.close()
    assert small.ask("GET", "/healthz").status == 200  # shards are not asked, which on a busy machine takes long
    assert not small.broker.named("gateway.failed", "gateway.died", "client.crashed")


@pytest.mark.parametrize(
    "raw",
    [
        b"\x16\x03\x01\x02\x00\x01\x00",
        b"GET /none HTTP/9.9\r\n\r\n",
        b"A" * 70_000 + b"\r\n\r\n",
        b"\x00" * 10,
    ],
)
def test_what_is_no_http_is_refused(small: Gateway, raw: bytes) -> None:
    with opened(small) as sock:
        sock.sendall(raw)
        sock.shutdown(socket.SHUT_WR)
        try:
            got = sock.recv(100)
        except ConnectionResetError:
            got = b""
        assert got == b"" or got.startswith((b"HTTP/1.1 4", b"HTTP/1.0 4", b"HTTP/1.1 5"))
    assert small.ask("GET", "/healthz").status == 200


def opened(gateway: Gateway) -> socket.socket:
    return socket.create_connection(("127.0.0.1", gateway.port), timeout=30)
