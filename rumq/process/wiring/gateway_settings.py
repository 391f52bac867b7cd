"""Files that the gateway's settings name, tokens and certificates: the broker checks them before it starts one."""

from __future__ import annotations

import os
import re
import ssl
from collections.abc import Iterable

from rumq.auth.credentials.files import read_secrets
from rumq.auth.errors import SecretsError
from rumq.errors import ConfigError, Fault
from rumq.gateway.access.origins import origin_problem
from rumq.gateway.access.tokens import Token, parse
from rumq.settings.table import Settings

HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 9110, 5.6.2


def check_gateway(settings: Settings) -> None:
    """raises: ConfigError for settings that the gateway could not start with"""
    tokens_of(settings)
    trace_headers(settings)
    for origin in settings.gateway.cors_origins:
        if why := origin_problem(origin):
            raise ConfigError(Fault("", "gateway.cors_origins", f'"{origin}"', why))
    if settings.gateway.tls_certificate:
        tls_of(settings)


def tokens_of(settings: Settings) -> dict[str, Token]:
    """None yet where the file is missing. raises: ConfigError, also for tokens of users that listeners hold to more"""
    path = tokens_path(settings)
    if not settings.gateway.tokens_file and not os.path.exists(path):
        return {}
    try:
        found = parse(read_secrets(path, strict=settings.auth.exposed_files == "refuse"), path)
    except SecretsError as fault:
        raise ConfigError(Fault("", "gateway.tokens_file", "", str(fault))) from None
    check_tokens(settings, found.values())
    return found


def check_tokens(settings: Settings, tokens: Iterable[Token]) -> None:
    """Refuse tokens of users whom listeners hold to rules or mount points that the gateway would not know.

    A token belongs to no listener: it has the rules of the gateway, on topics as they are in the log, so a tenant's
    token would reach what its listener keeps from it. raises: ConfigError"""
    named = next((each for each in tokens if each.user), None)
    where = kept_by_listeners(settings)
    if named is None or not where or settings.gateway.rules_file:
        return
    path = tokens_path(settings)
    raise ConfigError(
        Fault(
            path, f"token {named.name}.user", f'"{named.user}"',
            f"expected no user, or gateway.rules_file as well: {where} holds for a listener, and a token belongs to "
            "none; gateway.rules_file names the rules for users of tokens, on topics with their mount points",
        )
    )  # fmt: skip


def kept_by_listeners(settings: Settings) -> str:
    """The first setting of a listener that keeps its clients to topics; "": none.

    Users who come by another door, with a token or by Flight, do not come under it."""
    for number, listener in enumerate(settings.listeners):
        section = "listener" if number == 0 else f"listener[{number}]"
        if listener.mount_point:
            return f'{section}.mount_point = "{listener.mount_point}"'
        if listener.rules_file and not settings.auth.rules_file:
            return f'{section}.rules_file = "{listener.rules_file}"'
    return ""


def tokens_path(settings: Settings) -> str:
    return settings.gateway.tokens_file or f"{settings.data.dir}/gateway-tokens"


def trace_headers(settings: Settings) -> dict[str, str]:
    """HTTP headers for the OTLP endpoint. raises: ConfigError"""
    path = settings.trace.headers_file
    if not path:
        return {}
    found = {}
    try:
        text = read_secrets(path, strict=settings.auth.exposed_files == "refuse")
    except SecretsError as fault:
        raise ConfigError(Fault("", "trace.headers_file", f'"{path}"', str(fault))) from None
    for number, line in enumerate(text.splitlines(), 1):
        name, colon, value = line.partition(":")
        if not line.strip() or line.startswith("#"):
            continue
        if not colon or HEADER_NAME.fullmatch(name.strip()) is None or not value.strip().isprintable():
            expected = f'line {number}: expected "name: value"'
            raise ConfigError(Fault("", "trace.headers_file", f'"{path}"', expected))
        found[name.strip().lower()] = value.strip()
    return found


def tls_of(settings: Settings) -> ssl.SSLContext | None:
    """raises: ConfigError"""
    gateway = settings.gateway
    if not gateway.tls_certificate:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.set_alpn_protocols(["http/1.1"])
    try:
        if settings.auth.exposed_files == "refuse":
            read_secrets(gateway.tls_key or gateway.tls_certificate)
        context.load_cert_chain(gateway.tls_certificate, gateway.tls_key or None)
    except SecretsError as fault:
        raise ConfigError(Fault("", "gateway.tls_key", "", str(fault))) from None
    except (OSError, ssl.SSLError) as fault:
        raise ConfigError(
            Fault("", "gateway.tls_certificate", f'"{gateway.tls_certificate}"', f"cannot be used: {fault}")
        ) from None
    return context


def certificates_of(settings: Settings) -> dict[tuple[str, str], str]:
    """Files of all certificates of this node, by whose they are and the path."""
    named = [("listeners", each.tls_certificate) for each in settings.listeners]
    named += [
        ("nodes", settings.cluster.tls_certificate), ("gateway", settings.gateway.tls_certificate),
        ("flight", settings.flight.tls_certificate if settings.flight.port else ""),
        ("grpc", settings.grpc.tls_certificate if settings.grpc.port else ""),
        ("kafka", settings.kafka.tls_certificate if settings.kafka.port else ""),
    ]  # fmt: skip
    return {(of, path): path for of, path in named if path}
