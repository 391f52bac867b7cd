"""Settings of a TLS listener, and the ssl.SSLContext made from them. Options are mosquitto's, where it has them."""

from __future__ import annotations

import ssl
from typing import Literal

import msgspec

from rumq.errors import RumqError

TICKETS = 1  # a client keeps one connection; it gets a new ticket with each
MQTT_ALPN = ("mqtt",)
HTTP_ALPN = ("http/1.1",)


class TlsSettingsError(RumqError):
    """A TLS setting that does not work. key: which one; problem: why, and the way out"""

    def __init__(self, key: str, problem: str) -> None:
        super().__init__(key, problem)
        self.key, self.problem = key, problem

    def __str__(self) -> str:
        return f"{self.key}: {self.problem}"


class TlsOptions(msgspec.Struct, frozen=True, kw_only=True):
    """certfile, keyfile: the broker's chain and its key, PEM; keyfile "" if the key is in certfile

    cafile, capath: the authorities that clients' certificates may come from, and that the broker's own does
    client_certificates: "none" is asked for, "optional" (checked if given), "required"
    crlfile: revocation lists, PEM; a list must be there for each authority that has issued a client's certificate
    ciphers: of TLS 1.2, as of `openssl ciphers`; ciphersuites: of TLS 1.3
    """

    certfile: str
    keyfile: str = ""
    key_password: str = ""
    cafile: str = ""
    capath: str = ""
    crlfile: str = ""
    client_certificates: Literal["none", "optional", "required"] = "none"
    version_min: Literal["1.2", "1.3"] = "1.2"
    ciphers: str = ""
    ciphersuites: str = ""
    alpn: tuple[str, ...] = MQTT_ALPN


def make_context(options: TlsOptions) -> ssl.SSLContext:
    """raises: TlsSettingsError"""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3 if options.version_min == "1.3" else ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION | ssl.OP_CIPHER_SERVER_PREFERENCE
    context.num_tickets = TICKETS
    load_certificate(context, options)
    if options.alpn:
        context.set_alpn_protocols(list(options.alpn))
    if options.ciphers:
        try:
            context.set_ciphers(options.ciphers)
        except ssl.SSLError:
            raise TlsSettingsError(
                "ciphers", f"{options.ciphers!r} names none that OpenSSL has: see `openssl ciphers`"
            ) from None
    if options.ciphersuites:
        set_ciphersuites(context, options.ciphersuites)
    load_authorities(context, options)
    return context


def load_certificate(context: ssl.SSLContext, options: TlsOptions) -> None:
    if not options.certfile:
        raise TlsSettingsError("certfile", "a TLS listener needs a certificate")
    key = options.keyfile or options.certfile
    for name, path in (("certfile", options.certfile), ("keyfile", key)):
        try:
            with open(path, "rb"):
                pass
        except OSError as fault:
            raise TlsSettingsError(name, f"{path}: {fault.strerror}") from None
    if are_swapped(options.certfile, key):
        raise TlsSettingsError(
            "certfile",
            f"{options.certfile} holds a private key and {key} a certificate: exchange the two names",
        )
    asked = []

    def password() -> str:
        # Always there: without it OpenSSL would ask at the terminal.
        asked.append(key)
        return options.key_password

    try:
        context.load_cert_chain(options.certfile, key, password)
    except ssl.SSLError as fault:
        if asked and fault.reason != "KEY_VALUES_MISMATCH":
            raise TlsSettingsError("key_password", f"it does not open {key}") from None
        raise TlsSettingsError(*key_problem(fault, options.certfile, key)) from None
    except (OSError, ValueError) as fault:
        raise TlsSettingsError("keyfile", f"{key}: {fault}") from None


def are_swapped(certfile: str, key: str) -> bool:
    return certfile != key and pem_kinds(certfile) == {"key"} and pem_kinds(key) == {"certificate"}


def pem_kinds(path: str) -> set[str]:
    """Which of "key" and "certificate" a PEM file holds; RFC 7468, 2. raises: OSError"""
    with open(path, "rb") as file:
        content = file.read()
    marks = {"key": b"PRIVATE KEY-----", "certificate": b"-----BEGIN CERTIFICATE-----"}
    return {kind for kind, mark in marks.items() if mark in content}


def key_problem(fault: ssl.SSLError, certfile: str, key: str) -> tuple[str, str]:
    reason = fault.reason or ""
    if reason == "KEY_VALUES_MISMATCH":
        return "keyfile", f"{key} is not the key of {certfile}"
    if reason in ("EE_KEY_TOO_SMALL", "CA_MD_TOO_WEAK", "CA_KEY_TOO_SMALL"):
        return "certfile", f"{certfile}: too weak ({reason.replace('_', ' ').lower()})"
    return "certfile", f"{certfile}, {key}: no PEM certificate with its key ({reason or fault})"


def set_ciphersuites(context: ssl.SSLContext, names: str) -> None:
    setter = getattr(context, "set_ciphersuites", None)
    if setter is None:
        raise TlsSettingsError(
            "ciphersuites",
            "this Python cannot choose among TLS 1.3's (3.15 can): leave it out, all three are good",
        )
    try:
        setter(names)
    except ssl.SSLError:
        raise TlsSettingsError("ciphersuites", f"{names!r} names none that OpenSSL has") from None


def load_authorities(context: ssl.SSLContext, options: TlsOptions) -> None:
    """Load the authorities of clients' certificates. OpenSSL also completes the broker's own chain from them, if its
    file has none, so they are loaded even if clients need no certificate: SSL_CTX_set_mode(3), auto chain."""
    wanted = options.client_certificates
    if wanted == "none" and not options.cafile and not options.capath:
        return
    if not options.cafile and not options.capath:
        raise TlsSettingsError("cafile", "to check clients' certificates, name their authorities here or in capath")
    try:
        context.load_verify_locations(options.cafile or None, options.capath or None)
    except ssl.SSLError:
        raise TlsSettingsError("cafile", f"{options.cafile}: no PEM certificates") from None
    except OSError as fault:
        raise TlsSettingsError("cafile", f"{options.cafile or options.capath}: {fault.strerror}") from None
    if wanted == "none":
        return
    if options.crlfile:
        try:
            context.load_verify_locations(options.crlfile)
        except ssl.SSLError:
            raise TlsSettingsError("crlfile", f"{options.crlfile}: no PEM revocation lists") from None
        except OSError as fault:
            raise TlsSettingsError("crlfile", f"{options.crlfile}: {fault.strerror}") from None
        context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF
    context.verify_mode = ssl.CERT_REQUIRED if wanted == "required" else ssl.CERT_OPTIONAL
