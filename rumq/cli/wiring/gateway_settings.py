"""Files that the gateway's settings name, tokens and certificates: the broker checks them before it starts one."""

from __future__ import annotations

import os
import ssl

from rumq.auth.errors import SecretsError
from rumq.auth.files import read_secrets
from rumq.config import Settings
from rumq.errors import ConfigError, Fault
from rumq.gateway.tokens import Token, parse


def check_gateway(settings: Settings) -> None:
    """raises: ConfigError for settings that the gateway could not start with"""
    tokens_of(settings)
    if settings.gateway.tls_certificate:
        tls_of(settings)


def tokens_of(settings: Settings) -> dict[str, Token]:
    """None yet where the file is missing. raises: ConfigError"""
    path = settings.gateway.tokens_file or f"{settings.data.dir}/gateway-tokens"
    if not settings.gateway.tokens_file and not os.path.exists(path):
        return {}
    try:
        return parse(read_secrets(path, strict=settings.auth.exposed_files == "refuse"), path)
    except SecretsError as fault:
        raise ConfigError(Fault("", "gateway.tokens_file", "", str(fault))) from None


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
