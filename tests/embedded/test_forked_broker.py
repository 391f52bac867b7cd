"""The settings that a broker inside a program has, by itself and from the program."""

from typing import Any

import pytest

from rumq.embedded.forked_broker import scheme_of, settings_of
from rumq.errors import ConfigError


def request(port: int = 0, data: str | None = None, **settings: Any) -> dict[str, Any]:
    return {"settings": settings, "data": data, "cwd": "/", "port": port}


def test_by_itself_it_has_a_free_port_of_this_machine_and_a_directory_of_its_own() -> None:
    settings = settings_of(request(), "/tmp/x")
    assert (settings.listener.host, settings.listener.port) == ("127.0.0.1", 0)
    assert (settings.data.dir, settings.events.format) == ("/tmp/x/data", "json")


@pytest.mark.parametrize(
    ("given", "host", "port"),
    [
        (request(listener={"port": 1884}), "127.0.0.1", 1884),
        (request(listener={"host": "::1"}), "::1", 0),
        (request(port=4711, listener={"port": 0}), "127.0.0.1", 4711),  # a restart
        (request(port=4711, listener=[{"host": "::1"}, {"port": 8883}]), "::1", 4711),
    ],
)
def test_the_program_says_where_it_listens(given: dict[str, Any], host: str, port: int) -> None:
    settings = settings_of(given, "/tmp/x")
    assert (settings.listener.host, settings.listener.port) == (host, port)
    assert scheme_of(settings) == "mqtt"


def test_the_address_of_a_websocket_listener_says_that_it_is_one() -> None:
    for tls, scheme in (({}, "ws"), ({"tls_certificate": "a.pem", "tls_key": "a.key"}, "wss")):
        settings = settings_of(request(listener={"protocol": "websocket", **tls}), "/tmp/x")
        assert scheme_of(settings) == scheme


@pytest.mark.parametrize("section", ["listener", "data", "events", "log"])
def test_a_section_that_is_none_is_a_fault_with_a_name(section: str) -> None:
    with pytest.raises(ConfigError, match=section):
        settings_of(request(**{section: 1}), "/tmp/x")
    with pytest.raises(ConfigError, match=r"rumq\.broker"):
        settings_of(request(port=4711, **{section: [1]}), "/tmp/x")
