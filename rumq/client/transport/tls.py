"""TLS of the client: trusted authorities, client certificate, handshake. RFC 8446; RFC 6125.

Options have mosquitto_pub's names."""

from __future__ import annotations

import ssl
from dataclasses import dataclass

import trio

from rumq.client.transport.tls_faults import sentence
from rumq.errors import ConfigError, ConnectionLost, Fault


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """cafile, capath: PEM of the authorities trusted to sign the broker's certificate; neither: the system's

    cert, key: PEM of the client certificate, and its key; key "" if it is in cert
    insecure: accept a certificate for another host name; its signature is still verified
    """

    cafile: str = ""
    capath: str = ""
    cert: str = ""
    key: str = ""
    insecure: bool = False


def ssl_context(tls: Tls) -> ssl.SSLContext:
    """raises: ConfigError for an invalid file"""
    if tls.key and not tls.cert:
        raise refused("key", tls.key, "is a key without a certificate: name the certificate with cert")
    for name in ("cafile", "cert", "key"):
        check_readable(name, getattr(tls, name))
    try:
        context = ssl.create_default_context(cafile=tls.cafile or None, capath=tls.capath or None)
    except ssl.SSLError:
        raise refused("cafile", tls.cafile, "contains no PEM certificates") from None
    except OSError as fault:
        raise refused("capath", tls.capath, str(fault.strerror or fault)) from None
    # The default since Python 3.13 requires extensions in a CA certificate that OpenSSL's tools do not require.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.check_hostname = not tls.insecure
    if tls.cert:
        load_client_certificate(context, tls)
    return context


def check_readable(name: str, path: str) -> None:
    if not path:
        return
    try:
        with open(path, "rb"):
            pass
    except OSError as fault:
        raise refused(name, path, str(fault.strerror)) from None


def load_client_certificate(context: ssl.SSLContext, tls: Tls) -> None:
    prompts = []

    def password() -> str:
        # Without this callback OpenSSL would prompt at the terminal.
        prompts.append(tls.key)
        return ""

    try:
        context.load_cert_chain(tls.cert, tls.key or None, password)
    except (ssl.SSLError, ValueError) as fault:
        key = tls.key or tls.cert
        if prompts:
            raise refused("key", key, "is encrypted: write it without a password (openssl pkey)") from None
        if getattr(fault, "reason", "") == "KEY_VALUES_MISMATCH":
            raise refused("key", key, f"is not the key of {tls.cert}") from None
        if not tls.key:
            raise refused("cert", tls.cert, "has no PEM certificate with its key: name the key with key") from None
        raise refused("cert", tls.cert, f"with {key} is not a PEM certificate and its key") from None


def refused(name: str, path: str, problem: str) -> ConfigError:
    return ConfigError(Fault(name, path, "", problem))


async def open_tls_stream(host: str, port: int, context: ssl.SSLContext) -> trio.abc.Stream:
    """raises: OSError, or ConnectionLost that says which certificate was refused and why"""
    inner = await trio.open_tcp_stream(host, port)
    # MQTT frames its own end: a close without close_notify cannot truncate unnoticed.
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
