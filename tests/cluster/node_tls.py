"""TLS between nodes for tests: contexts over the certificates of `tests.net.authorities`."""

import ssl
from collections.abc import Callable
from typing import Any

from rumq.cluster.connections.node_tls import NodeTls
from rumq.cluster.links.node_names import NodeNames
from rumq.cluster.node.link_handshake import LinkTls
from rumq.cluster.orders.leader_stream import AgentTls
from tests.net.authorities import Authorities

NODES = ("n1", "n2", "n3", "n0", "n5", "n6", "n9")


def named(authorities: Authorities, cluster: str = "c1") -> str:
    """Files of a certificate that is good for each node of the tests' worlds."""
    return authorities.node(cluster, *NODES)


def pump_tls(
    authorities: Authorities, file: str = "", authority: str = "ca", cluster: str = "c1", *, unnamed: bool = False,
    tell: Callable[..., Any] = lambda name, **fields: None,
) -> NodeTls:  # fmt: skip
    """file: by default one that is good for all nodes; unnamed: certificates without names are accepted"""
    name = file or named(authorities, cluster)
    names = NodeNames(cluster, unnamed)
    return NodeTls(authorities.path(name), authorities.path(name, "key"), authorities.path(authority), names, tell)


def context(authorities: Authorities, protocol: int, file: str, authority: str = "ca") -> ssl.SSLContext:
    made = ssl.SSLContext(protocol)
    made.check_hostname = False
    made.verify_mode = ssl.CERT_REQUIRED
    made.load_verify_locations(authorities.path(authority))
    if file:
        made.load_cert_chain(authorities.path(file), authorities.path(file, "key"))
    return made


def link_tls(
    authorities: Authorities, file: str = "", authority: str = "ca", cluster: str = "c", *, unnamed: bool = False
) -> LinkTls:
    name = file or named(authorities, cluster)
    server = context(authorities, ssl.PROTOCOL_TLS_SERVER, name, authority)
    client = context(authorities, ssl.PROTOCOL_TLS_CLIENT, name, authority)
    return LinkTls(server, client, NodeNames(cluster, unnamed))


def agent_tls(authorities: Authorities, file: str = "", cluster: str = "c", authority: str = "ca") -> AgentTls:
    """file: "-" for none"""
    name = "" if file == "-" else file or named(authorities, cluster)
    return AgentTls(context(authorities, ssl.PROTOCOL_TLS_CLIENT, name, authority), NodeNames(cluster))
