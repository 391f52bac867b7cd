"""Addresses of a node: what it binds, and what it tells others."""

import socket
from typing import Any

import msgspec
import pytest

from bench.peers.peer import free_port
from rumq.errors import RumqError
from rumq.process.listeners.cluster_address import advertised, split
from rumq.process.listeners.listening_sockets import ListeningSocket
from rumq.process.node.addresses import bind_cluster, listen, reachable_mqtt
from rumq.settings.table import Settings


def settings(**cluster: Any) -> Settings:
    plain = Settings()
    return msgspec.structs.replace(plain, cluster=msgspec.structs.replace(plain.cluster, **cluster))


@pytest.fixture
def doorway() -> Any:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        yield ListeningSocket(0, sock)


def test_each_shard_has_a_port_behind_the_first(doorway: ListeningSocket) -> None:
    first = free_port()
    found = bind_cluster(settings(host="127.0.0.1", port=first - 1, shards=1), [doorway])
    [sock] = found.sockets
    assert sock.getsockname() == ("127.0.0.1", first) and not sock.getblocking()
    assert (found.host, found.port) == ("127.0.0.1", first - 1)
    assert found.mqtt == [f"127.0.0.1:{doorway.sock.getsockname()[1]}"]
    sock.close()


def test_a_port_that_is_taken_is_named_with_the_ports_that_a_node_needs(doorway: ListeningSocket) -> None:
    port = doorway.sock.getsockname()[1]
    with pytest.raises(RumqError, match=rf"127.0.0.1:{port} .* takes the ports {port} to {port + 2}"):
        bind_cluster(settings(host="127.0.0.1", port=port - 1, shards=3), [doorway])


@pytest.mark.parametrize(
    ("cluster", "address"),
    [
        ({"host": "10.0.0.1", "port": 7000}, ("10.0.0.1", 7000)),
        ({"host": "0.0.0.0", "port": 7000, "advertise": "n1.example"}, ("n1.example", 7000)),
        ({"host": "::", "port": 7000, "advertise": "[fd00::1]:9000"}, ("fd00::1", 9000)),
        ({"host": "10.0.0.1", "port": 7000, "advertise": "[fd00::1]"}, ("fd00::1", 7000)),
    ],
)
def test_the_advertised_address_is_the_bound_one_unless_another_is_named(
    cluster: dict[str, Any], address: tuple[str, int]
) -> None:
    assert advertised(settings(**cluster)) == address


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "*"])
def test_every_address_is_none_by_which_others_reach_it(host: str) -> None:
    with pytest.raises(RumqError, match=r"cluster\.advertise"):
        advertised(settings(host=host))


@pytest.mark.parametrize("address", ["n1:0", "n1:65536", "n1:mqtt"])
def test_an_advertised_port_is_a_port(address: str) -> None:
    with pytest.raises(RumqError, match="expected host or host:port"):
        split(address)


def test_clients_are_told_the_first_listener_or_what_the_settings_say(doorway: ListeningSocket) -> None:
    port = doorway.sock.getsockname()[1]
    assert reachable_mqtt(settings(), [doorway], "n1") == f"127.0.0.1:{port}"
    assert reachable_mqtt(settings(advertise_mqtt="mqtt.example:1883"), [doorway], "n1") == "mqtt.example:1883"
    with listen("0.0.0.0", 0) as everywhere:
        [_, port] = everywhere.getsockname()
        assert reachable_mqtt(settings(), [ListeningSocket(0, everywhere)], "n1") == f"n1:{port}"
