"""Certificates of a cluster's nodes: an authority of their own, and for each node a certificate with its name as a URI.

What a name is compared with: `rumq.cluster.links.node_names`. RFC 5280"""

from __future__ import annotations

import os
from collections.abc import Sequence

from cryptography import x509

from rumq.cli.admin.authority import (
    CLIENT,
    NAME_CHARACTERS_MAX,
    SERVER,
    Authority,
    Issued,
    distinguished_name,
    for_days,
    issue,
    new_authority,
    read_authority,
    write_pair,
)  # fmt: skip
from rumq.cluster.links.node_names import node_uri

AUTHORITY_DAYS, NODE_DAYS = 20 * 365, 5 * 365


def make_node_certificates(folder: str, cluster: str, nodes: list[str]) -> list[str]:
    """Write NAME.pem and NAME.key of each node, and ca.pem and ca.key if there is no authority yet.

    returns: nodes that have certificates already, which are kept. raises: RumqError, OSError"""
    os.makedirs(folder, 0o750, exist_ok=True)
    authority = authority_in(folder, cluster)
    kept = []
    for node in nodes:
        if os.path.exists(f"{folder}/{node}.pem"):
            kept.append(node)
        else:
            write_pair(issue_node(authority, node, [node_uri(cluster, node)]), f"{folder}/{node}")
    return kept


def authority_in(folder: str, cluster: str) -> Authority:
    """The one that is there, or a new one. raises: RumqError, OSError"""
    certificate, key = f"{folder}/ca.pem", f"{folder}/ca.key"
    if os.path.exists(certificate) or os.path.exists(key):
        return read_authority(certificate, key)
    made = new_authority("rumq", f"nodes of {cluster}"[:NAME_CHARACTERS_MAX], for_days(AUTHORITY_DAYS))
    write_pair(made, f"{folder}/ca")
    return made


def issue_node(authority: Authority, node: str, uris: Sequence[str]) -> Issued:
    """uris: what the certificate is compared by; the common name is for people"""
    names = [x509.UniformResourceIdentifier(uri) for uri in uris]
    # A node dials others and is dialled.
    return issue(authority, distinguished_name(node), names, [SERVER, CLIENT], for_days(NODE_DAYS))
