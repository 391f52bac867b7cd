"""Certificates for development: an authority, the broker's certificate, and one for each client that is named."""

from __future__ import annotations

import os
import secrets
import socket
from datetime import UTC, datetime

from rumq.cli.admin.authority import (
    CLIENT,
    SERVER,
    Authority,
    Issued,
    Validity,
    distinguished_name,
    host,
    issue,
    new_authority,
    read_authority,
    write_pair,
)
from rumq.errors import RumqError

HERE = ("localhost", "127.0.0.1", "::1")
ORGANIZATION = "rumq development"
# For good, and for machines whose clock was never set.
VALIDITY = Validity(datetime(2000, 1, 1, tzinfo=UTC), datetime(3000, 1, 1, tzinfo=UTC))


def make_development_certificates(folder: str, client: str, hosts: list[str]) -> None:
    """Write client.pem and client.key, and what is missing of the authority and the broker.

    hosts: more names of the broker. raises: RumqError, OSError, FileExistsError too"""
    os.makedirs(folder, exist_ok=True)
    authority = authority_in(folder)
    if not os.path.exists(f"{folder}/server.pem"):
        write_pair(issue_server(authority, hosts), f"{folder}/server")
    write_pair(issue_client(authority, client), f"{folder}/{client}")


def make_server_certificate(folder: str, hosts: list[str]) -> None:
    """Write server.pem and server.key, and the authority if there is none. raises: RumqError, OSError"""
    write_pair(issue_server(authority_in(folder), hosts), f"{folder}/server")


def authority_in(folder: str) -> Authority:
    """The one that is there, or a new one. raises: RumqError, OSError"""
    certificate, key = f"{folder}/ca.pem", f"{folder}/ca.key"
    if os.path.exists(certificate) or os.path.exists(key):
        return read_authority(certificate, key)
    name = f"authority {secrets.token_hex(4)}"  # so that two of them are told apart
    made = new_authority(ORGANIZATION, name, VALIDITY)
    write_pair(made, f"{folder}/ca")
    return made


def issue_server(authority: Authority, more: list[str]) -> Issued:
    """A certificate for all names of this machine that a certificate can contain. raises: RumqError"""
    try:
        names = [host(name) for name in dict.fromkeys((*HERE, *more))]
    except ValueError as fault:
        raise RumqError(f"--host: {fault}") from None
    try:
        own = host(socket.gethostname())
        names += [own] if own not in names else []
    except ValueError:
        pass  # a machine may have a name that no certificate can have
    return issue(authority, distinguished_name("rumq", ORGANIZATION), names, [SERVER], VALIDITY)


def issue_client(authority: Authority, name: str) -> Issued:
    """The broker knows a client by its common name; another name is there for verifiers that ask for one."""
    try:
        names = [host(f"{name}.client.invalid")]
    except ValueError:
        names = []
    return issue(authority, distinguished_name(name, ORGANIZATION), names, [CLIENT], VALIDITY)
