"""What a line between two brokers may be: MQTT over TCP, TLS, WebSockets or both. Settings of its ends."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rumq.client import Tls
from tests.net.authorities import Authorities

SCHEMES = ("mqtt", "mqtts", "ws", "wss")


@dataclass(frozen=True)
class Transport:
    """authorities: of the certificates, where it is TLS"""

    scheme: str = "mqtt"
    authorities: Authorities | None = None

    @property
    def listener(self) -> dict[str, Any]:
        """Settings of the listener of the broker that is connected to."""
        found: dict[str, Any] = {"protocol": "websocket"} if self.scheme.startswith("ws") else {}
        if self.authorities is not None:
            path = self.authorities.path
            found |= {"tls_certificate": path("server"), "tls_key": path("server", "key")}
        return found

    @property
    def bridge(self) -> dict[str, Any]:
        return {} if self.authorities is None else {"tls_authority": self.authorities.path("ca")}

    @property
    def tls(self) -> Tls | None:
        """Of other clients."""
        return None if self.authorities is None else Tls(cafile=self.authorities.path("ca"))


def transport_of(scheme: str, folder: Path) -> Transport:
    """folder: for certificates"""
    return Transport(scheme, Authorities(folder) if scheme in ("mqtts", "wss") else None)
