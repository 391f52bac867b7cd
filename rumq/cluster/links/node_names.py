"""Names of nodes in their certificates: a URI among the alternative names, `rumq://CLUSTER/node/NAME`. Sans-IO.

A greeting says who comes, and a view says whom a dialled address is; here that is compared with what the authority of
the nodes has signed. RFC 5280, 4.2.1.6"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

SCHEME = "rumq://"


def node_uri(cluster: str, node: str) -> str:
    """cluster, node: names, as of the settings"""
    return f"{SCHEME}{cluster}/node/{node}"


def node_name(node_id: str) -> str:
    """The name in the id of a node, "name#disk"."""
    return node_id.partition("#")[0]


def uris_of(certificate: Mapping[str, Any] | None) -> tuple[str, ...]:
    """certificate: as `ssl.SSLSocket.getpeercert` gives it"""
    names = (certificate or {}).get("subjectAltName", ())
    return tuple(value for kind, value in names if kind == "URI")


class NodeNames(NamedTuple):
    """What a certificate must say. cluster: its name; accepts_unnamed: also certificates without any name of a node,
    which those of versions before this rule are; one with another name is refused in any case"""

    cluster: str
    accepts_unnamed: bool = False

    def maybe_problem(self, uris: Iterable[str], node_id: str) -> str | None:
        """Why a certificate is not that of a node; None if it is. uris: of the certificate"""
        wanted = node_uri(self.cluster, node_name(node_id))
        found = [each for each in uris if each.startswith(SCHEME)]
        if wanted in found or (not found and self.accepts_unnamed):
            return None
        if found:
            return f"it shows the certificate of {', '.join(found)}, not of {wanted}"
        return (
            f"its certificate names no node, expected {wanted}: rumqd certs node makes one; for the time of an upgrade "
            "cluster.unnamed_certificates = true accepts it"
        )
