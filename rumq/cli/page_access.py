"""What `rumqd --page` sets up: a port for the web page, and a token.

docs/decisions/0056-the-page-is-in-every-install.md"""

from __future__ import annotations

import argparse
import socket
import time

from rumq.cli.setting_flags import loaded_settings
from rumq.errors import RumqError
from rumq.process.wiring.gateway_settings import tokens_path
from rumq.settings.table import Settings

FIRST_PORT, PORTS = 8080, 20
TOKEN_NAME = "page"  # replaced at each start with --page
TOKEN_SECONDS = 7 * 86_400


def add_page(args: argparse.Namespace) -> None:
    """Give the settings of --page a gateway, unless they have one already. raises: ConfigError, RumqError"""
    if not loaded_settings(args).settings.gateway.port:
        args.settings = [*args.settings, ("gateway.port", str(free_page_port()), "--page")]


def free_page_port() -> int:
    """The first port from 8080 on that is free on localhost. raises: RumqError"""
    for port in range(FIRST_PORT, FIRST_PORT + PORTS):
        if is_free(port):
            return port
    last = FIRST_PORT + PORTS - 1
    raise RumqError(f"--page: the ports from {FIRST_PORT} to {last} are in use: choose one with --set gateway.port=N")


def is_free(port: int) -> bool:
    for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
        try:
            with socket.socket(family) as sock:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the gateway: TIME_WAIT is no obstacle
                sock.bind((host, port))
        except OSError:
            if family == socket.AF_INET or socket.has_dualstack_ipv6():
                return False  # else this machine has no IPv6
    return True


def make_page_token(settings: Settings) -> str:
    """Put a new token `page` into the file of tokens, in place of the one of an earlier start; returns its secret.

    raises: RumqError"""
    from rumq.auth.errors import SecretsError
    from rumq.gateway.access.credential_files import CredentialFiles, NoSuchCredential
    from rumq.gateway.access.tokens import ROLES, Token, hash_of, new_secret

    path = tokens_path(settings)
    secret = new_secret()
    expires_us = time.time_ns() // 1000 + TOKEN_SECONDS * 1_000_000
    credentials = CredentialFiles(path, "", lambda token: None)  # it has no user, so listeners hold it to nothing
    try:
        try:
            credentials.remove_token(TOKEN_NAME)
        except NoSuchCredential:
            pass
        credentials.add_token(Token(TOKEN_NAME, frozenset(ROLES), "", hash_of(secret), expires_us))
    except SecretsError as fault:
        raise RumqError(f"--page: {fault}") from None
    except OSError as fault:
        raise RumqError(
            f"--page: no token can be written to {path}: {fault.strerror}; start without --page, and sign in with a "
            "token of rumqd token"
        ) from None
    return secret
