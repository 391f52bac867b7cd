"""Which names clients may ask for: no page of another site reaches a gateway of this machine by a name of its own."""

import socket
from collections.abc import Iterator

import pytest

from rumq.gateway.access.host_names import HostNames
from rumq.settings.table.gateway import Gateway
from tests.gateway import conftest


def names(*hosts: str, host: str = "localhost", is_loopback: bool = True) -> HostNames:
    return HostNames(Gateway(host=host, hosts=hosts), is_loopback=is_loopback)


@pytest.mark.parametrize(
    "header",
    [
        "localhost",
        "localhost:8080",
        "LOCALHOST.",
        "127.0.0.1:8080",
        "[::1]:8080",
        "10.0.0.7",
        "a.localhost",
        "",
        None,
    ],
)
def test_this_machine_and_addresses_are_always_served(header: str | None) -> None:
    assert names().refusal(header) == "" and names("plant.example").refusal(header) == ""


@pytest.mark.parametrize(
    "header",
    ["evil.example", "evil.example:8080", "127.0.0.1.evil.example", "localhost.evil.example", "[", "a b"],
)
def test_another_name_is_refused_on_a_loopback_address_and_the_setting_is_named(header: str) -> None:
    why = names().refusal(header)
    assert repr(header) in why and "localhost" in why and "gateway.hosts" in why


def test_names_are_listed_and_a_star_is_any() -> None:
    listed = names("Plant.example", host="0.0.0.0", is_loopback=False)
    assert listed.refusal("plant.example:443") == "" and listed.refusal("evil.example")
    assert names("*").refusal("evil.example") == ""
    assert names("plant.example", host="broker.lan", is_loopback=False).refusal("broker.lan:8080") == ""


def test_an_address_of_the_network_serves_any_name_unless_names_are_listed() -> None:
    assert names(host="*", is_loopback=False).refusal("evil.example") == ""
    assert "*" not in names("plant.example", host="*", is_loopback=False).refusal("evil.example")


@pytest.fixture(scope="module")
def plant(tmp_path_factory: pytest.TempPathFactory) -> Iterator[conftest.Gateway]:
    path = tmp_path_factory.mktemp("hosts")
    made = conftest.started(path, 'gateway.hosts=["plant.example"]', "gateway.metrics=open", "auth.guess_seconds_max=0")
    yield made
    made.broker.end()


PATHS = ["/", "/page/app.js", "/healthz", "/metrics", "/api/v1/status", "/api/v1/openapi.json", "/nothing"]


@pytest.mark.parametrize("path", PATHS)
def test_every_path_refuses_a_foreign_name_and_says_which_setting_allows_it(plant: conftest.Gateway, path: str) -> None:
    answer = plant.ask("GET", path, headers={"host": "evil.example:8080"})
    assert answer.status == 421 and "gateway.hosts" in answer.json["detail"]
    for host in ("plant.example", "localhost:1", "127.0.0.1"):
        assert plant.ask("GET", path, headers={"host": host}).status in (200, 404)


@pytest.mark.parametrize(("host", "status"), [("evil.example", b"421"), ("plant.example", b"101")])
def test_a_websocket_is_held_to_it_too(plant: conftest.Gateway, host: str, status: bytes) -> None:
    head = (
        f"GET /mqtt HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
        f"Sec-WebSocket-Protocol: mqtt\r\nOrigin: http://{host}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", plant.port), timeout=30) as sock:
        sock.sendall(head.encode())
        assert sock.recv(4096).split()[1] == status


def test_metrics_of_one_client_need_a_token_even_where_metrics_are_open(plant: conftest.Gateway) -> None:
    """Strangers would learn from them who is here, and each such question goes to the shards."""
    assert plant.ask("GET", "/metrics", token=None).status == 200
    for token, status in ((None, 401), ("rumq_wrong", 401), ("sender", 403), ("reader", 200)):
        assert plant.ask("GET", "/metrics?client=c", token=token).status == status
