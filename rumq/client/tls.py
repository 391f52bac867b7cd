"""A client's side of TLS: whom it believes, what it shows, and the stream that comes of it. RFC 8446; RFC 6125.

Names are mosquitto_pub's. Refuses to know what goes through the stream."""

from __future__ import annotations

import ssl
from dataclasses import dataclass

import trio

from rumq.client.tls_faults import sentence
from rumq.errors import ConfigError, ConnectionLost, Fault


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """cafile, capath: PEM of the authorities that may have signed the broker's certificate; neither: the system's

    cert, key: PEM of the certificate that the client shows, and its key; key "" if it is in cert
    insecure: take a certificate that names another host; its authority is checked all the same
    """

    cafile: str = ""
    capath: str = ""
    cert: str = ""
    key: str = ""
    insecure: bool = False


def context_of(tls: Tls) -> ssl.SSLContext:
    """raises: ConfigError for a file that cannot be taken"""
    if tls.key and not tls.cert:
        raise refused("key", tls.key, "is the key of no certificate: name that with cert")
    for name in ("cafile", "cert", "key"):
        check_readable(name, getattr(tls, name))
    try:
        context = ssl.create_default_context(cafile=tls.cafile or None, capath=tls.capath or None)
    except ssl.SSLError:
        raise refused("cafile", tls.cafile, "no PEM certificates in it") from None
    except OSError as fault:
        raise refused("capath", tls.capath, str(fault.strerror or fault)) from None
    # From Python 3.13 on the default wants extensions in an authority that OpenSSL's own tools take it without.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.check_hostname = not tls.insecure
    if tls.cert:
        show(context, tls)
    return context


def check_readable(name: str, path: str) -> None:
    if not path:
        return
    try:
        with open(path, "rb"):
            pass
    except OSError as fault:
        raise refused(name, path, str(fault.strerror)) from None


def show(context: ssl.SSLContext, tls: Tls) -> None:
    asked = []

    def password() -> str:
        # Always there: without it OpenSSL would ask at the terminal.
        asked.append(tls.key)
        return ""

    try:
        context.load_cert_chain(tls.cert, tls.key or None, password)
    except (ssl.SSLError, ValueError) as fault:
        key = tls.key or tls.cert
        if asked:
            raise refused("key", key, "is encrypted: write it without a password (openssl pkey)") from None
        if getattr(fault, "reason", "") == "KEY_VALUES_MISMATCH":
            raise refused("key", key, f"is not the key of {tls.cert}") from None
        if not tls.key:
            raise refused(
                "cert", tls.cert, "no PEM certificate with its key: name the key with key"
            ) from None
        raise refused("cert", tls.cert, f"with {key} it is no PEM certificate with its key") from None


def refused(name: str, path: str, problem: str) -> ConfigError:
    return ConfigError(Fault(name, path, "", problem))


async def open_tls_stream(host: str, port: int, context: ssl.SSLContext) -> trio.abc.Stream:
    """raises: OSError, or ConnectionLost with what is wrong with either side's certificate"""
    inner = await trio.open_tcp_stream(host, port)
    # MQTT says itself where it ends: a broker that closes without close_notify cuts nothing off unseen.
    stream = trio.SSLStream(inner, context, server_hostname=host, https_compatible=True)
    try:
        await stream.do_handshake()
    except trio.BrokenResourceError as fault:
        await trio.aclose_forcefully(inner)
        cause = fault.__cause__
        said = sentence(cause) if isinstance(cause, ssl.SSLError) else str(cause or fault)
        raise ConnectionLost(f"TLS with {host}:{port}: {said}") from fault
    except BaseException:
        await trio.aclose_forcefully(inner)
        raise
    return stream
