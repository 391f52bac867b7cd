"""A page in somebody's browser uses a broker that only this machine, or only this network, can reach.

Cross-site WebSocket hijacking, RFC 6455, 10.2: the browser opens a WebSocket to any address for any page, and says in
`Origin` where the page is from. With DNS rebinding the page's own name leads to the broker, so that its origin and the
request's host are the same."""

import base64
import socket
from pathlib import Path

import pytest

from rumq.net.websocket.websocket_handshake import WebSocketOptions, answer
from tests.broker_process import Rumqd

KEY = base64.b64encode(bytes(16)).decode()


def asked(host: str, origin: str | None) -> bytes:
    page = f"Origin: {origin}\r\n" if origin is not None else ""
    return (
        f"GET /mqtt HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n{page}"
        f"Sec-WebSocket-Key: {KEY}\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: mqtt\r\n\r\n"
    ).encode()


def status(host: str, origin: str | None, **options: object) -> int:
    return int(answer(asked(host, origin), WebSocketOptions(**options)).data.split()[1])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("host", "origin", "told"),
    [
        ("127.0.0.1:1884", None, 101),
        ("127.0.0.1:1884", "https://evil.example", 403),
        ("127.0.0.1:1884", "null", 403),
        ("127.0.0.1:1884", "http://127.0.0.1:8000", 403),
        ("127.0.0.1:1884", "http://localhost:1884", 403),
        ("127.0.0.1:1884", "http://127.0.0.1:1884", 101),
        ("[::1]:1884", "http://[::1]:1884", 101),
        ("LOCALHOST:1884", "http://localhost:1884", 101),
        ("192.168.1.9", "https://192.168.1.9", 101),
    ],
)
def test_without_a_list_only_pages_of_the_same_address_may_come(host: str, origin: str | None, told: int) -> None:
    assert status(host, origin) == told


def test_a_name_that_was_pointed_here_is_believed_only_over_tls() -> None:
    assert status("evil.example:1884", "http://evil.example:1884") == 403
    assert status("127.0.0.1.evil.example:1884", "http://127.0.0.1.evil.example:1884") == 403
    assert status("plant.example", "https://plant.example", names_are_proved=True) == 101
    assert status("plant.example", "https://evil.example", names_are_proved=True) == 403


def test_a_list_says_all() -> None:
    assert status("127.0.0.1", "https://any.example", origins=("*",)) == 101
    assert status("127.0.0.1", "null", origins=("*",)) == 101
    assert status("127.0.0.1", "https://ok.example", origins=("https://OK.example",)) == 101
    assert status("127.0.0.1", "http://127.0.0.1", origins=("https://ok.example",)) == 403


def test_a_broker_as_it_is_answers_no_page_and_any_program(tmp_path: Path) -> None:
    broker = Rumqd(tmp_path / "data", "--set", "listener.protocol=websocket")
    broker.start()
    try:
        host = f"127.0.0.1:{broker.address.port}"
        for origin, told in ((None, b"101"), ("https://evil.example", b"403")):
            with socket.create_connection(broker.address, timeout=20) as sock:
                sock.sendall(asked(host, origin))
                assert sock.recv(4096).split()[1] == told
        assert "websocket_origins" in broker.event("connection.refused")["why"]
    finally:
        broker.end()
