"""Transports of each listener (PROXY, TLS, WebSocket, mount point), from settings; reads certificates and keys."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from rumq.auth.credentials.files import exposed
from rumq.auth.errors import SecretsError
from rumq.errors import ConfigError, Fault
from rumq.net.listening.proxy_protocol import ProxyOptions
from rumq.net.listening.transports import MountOptions, Transports
from rumq.net.tls.tls import TlsServer
from rumq.net.tls.tls_options import HTTP_ALPN, MQTT_ALPN, TlsOptions, TlsSettingsError, pem_kinds
from rumq.process.listeners.listener_policies import key_of
from rumq.settings.keys import as_toml
from rumq.settings.table import Listener, Settings

# TlsOptions' names -> the keys of [listener]
KEYS = {
    "certfile": "tls_certificate", "keyfile": "tls_key", "cafile": "tls_authority", "capath": "tls_authority_dir",
    "crlfile": "tls_revoked", "ciphers": "tls_ciphers", "ciphersuites": "tls_ciphersuites",
    "client_certificates": "tls_client_certificate", "version_min": "tls_version_min",
}  # fmt: skip
TLS_FILES = ("tls_certificate", "tls_key", "tls_authority", "tls_authority_dir", "tls_revoked")
PROOFS: dict[str, Any] = {"no": "none", "optional": "optional", "required": "required"}


def transports_of(settings: Settings) -> list[Transports]:
    """Transports in the order of the listeners. raises: ConfigError for invalid files"""
    strict = settings.auth.exposed_files == "refuse"
    return [
        transport_of(number, listener, strict)._replace(mount=mounting(settings, listener))
        for number, listener in enumerate(settings.listeners)
    ]


def mounting(settings: Settings, listener: Listener) -> MountOptions | None:
    if not listener.mount_point:
        return None
    return MountOptions(listener.mount_point, settings.mqtt.packet_bytes_max, settings.mqtt.connect_bytes_max)


def transport_of(number: int, listener: Listener, strict: bool) -> Transports:
    tls = websocket = proxy = None
    if listener.tls_certificate:
        try:
            tls = TlsServer(tls_options(number, listener, strict))
        except TlsSettingsError as fault:
            raise refused(number, listener, fault) from None
    if listener.protocol == "websocket":
        # Most brokers have none, and start sooner; here, so that no connection waits for the import.
        from rumq.net.websocket import websocket as _  # noqa: F401
        from rumq.net.websocket.websocket_handshake import WebSocketOptions

        websocket = WebSocketOptions(
            path=listener.websocket_path, origins=listener.websocket_origins, names_are_proved=tls is not None
        )
    if listener.proxies:
        try:
            proxy = ProxyOptions(networks=listener.proxies)
        except ValueError as fault:
            raise ConfigError(
                Fault("", f"{key_of(number)}.proxies", as_toml(listener.proxies), f"expected networks: {fault}")
            ) from None
    return Transports(tls, websocket, proxy)


def reload_tls(settings: Settings, transports: Iterable[tuple[int, Transports]]) -> None:
    """Reload certificates, for new connections, after `transports_of` has found all files good.

    transports: with the place of their listener in the settings. raises: ConfigError"""
    for number, each in transports:
        listener = settings.listeners[number]
        if each.tls is not None and listener.tls_certificate:
            try:
                each.tls.reload(tls_options(number, listener, False))
            except TlsSettingsError as fault:
                raise refused(number, listener, fault) from None


def renew_tls(settings: Settings, transports: Sequence[Transports]) -> None:
    """The same while the settings stay: all or none. transports: of every listener. raises: ConfigError"""
    transports_of(settings)
    reload_tls(settings, enumerate(transports))


def tls_paths(settings: Settings) -> list[str]:
    """Files and directories of all listeners with TLS."""
    return [
        path
        for each in settings.listeners if each.tls_certificate
        for name in TLS_FILES if (path := getattr(each, name))
    ]  # fmt: skip


def tls_options(number: int, listener: Listener, strict: bool) -> TlsOptions:
    """strict: refuse a key that other users can read"""
    key_file = listener.tls_key or listener.tls_certificate
    if strict and holds_key(key_file) and (problem := exposed(key_file)):
        raise ConfigError(Fault("", f"{key_of(number)}.tls_key", "", str(SecretsError(key_file, 0, problem))))
    return TlsOptions(
        certfile=listener.tls_certificate, keyfile=listener.tls_key, cafile=listener.tls_authority,
        capath=listener.tls_authority_dir, crlfile=listener.tls_revoked,
        client_certificates=PROOFS[listener.tls_client_certificate], version_min=listener.tls_version_min,
        ciphers=listener.tls_ciphers, ciphersuites=listener.tls_ciphersuites,
        alpn=HTTP_ALPN if listener.protocol == "websocket" else MQTT_ALPN,
    )  # fmt: skip


def holds_key(path: str) -> bool:
    """Whether a file contains a private key; other errors are reported when it is loaded."""
    try:
        return "key" in pem_kinds(path)
    except OSError:
        return False


def refused(number: int, listener: Listener, fault: TlsSettingsError) -> ConfigError:
    name = KEYS.get(fault.key, fault.key)
    value = str(getattr(listener, name, ""))
    return ConfigError(Fault("", f"{key_of(number)}.{name}", f'"{value}"', fault.problem))
