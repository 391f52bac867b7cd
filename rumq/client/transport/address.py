"""A broker's address and transport, also as a URL: mqtt://, mqtts://, ws://, wss://, unix:///PATH."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from rumq.errors import ConfigError, Fault

PORTS = {"mqtt": 1883, "mqtts": 8883, "ws": 80, "wss": 443}
WEBSOCKET_PATH = "/mqtt"
UNIX = "unix"


class BrokerAddress(NamedTuple):
    """path: of a WebSocket or Unix socket; of mqtt:// and mqtts:// the topic, as in mosquitto_pub. Empty: not given"""

    host: str
    port: int
    scheme: str = "mqtt"
    username: str | None = None
    password: str | None = None
    path: str = ""

    @property
    def is_tls(self) -> bool:
        return self.scheme in ("mqtts", "wss")

    @property
    def is_unix(self) -> bool:
        return self.scheme == UNIX

    @property
    def is_websocket(self) -> bool:
        return self.scheme in ("ws", "wss")


def parse_url(url: str) -> BrokerAddress:
    """`mqtts://user:password@host:8883/topic`. raises: ConfigError"""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as fault:
        raise refused(url, str(fault)) from None
    if parts.scheme == UNIX and not parts.netloc and parts.path.strip("/"):
        return BrokerAddress("", 0, UNIX, path=unquote(parts.path))
    if parts.scheme not in PORTS:
        raise refused(url, f"expected one of {', '.join(f'{scheme}://' for scheme in PORTS)}, or unix:///PATH")
    if not parts.hostname:
        raise refused(url, "names no host: mqtts://broker.example")
    if parts.query or parts.fragment:
        # A '#' in a topic is written %23 in a URL.
        raise refused(url, "expected no '?' or '#': write %3F and %23")
    path = parts.path if parts.scheme in ("ws", "wss") else unquote(parts.path.removeprefix("/"))
    return BrokerAddress(
        parts.hostname, port or PORTS[parts.scheme], parts.scheme,
        None if parts.username is None else unquote(parts.username),
        None if parts.password is None else unquote(parts.password),
        path,
    )  # fmt: skip


def refused(url: str, problem: str) -> ConfigError:
    """The error shows the URL without user and password."""
    scheme, found, rest = url.partition("://")
    shown = f"{scheme}{found}{rest.rpartition('@')[2]}"
    return ConfigError(Fault("url", shown, "", problem))
