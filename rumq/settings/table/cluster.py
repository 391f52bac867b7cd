"""The table of settings, continued: [cluster]."""

from typing import Annotated

from msgspec import Struct

from rumq.settings.types.setting_types import DAY_SECONDS, RESTART, choice, listed, maybe_text, number, text

# fmt: off
# A table: a formatter would give each argument a line.


class Cluster(Struct, frozen=True, kw_only=True):
    """Several machines that keep each shard in several copies: docs/guides/cluster.md. No name, no cluster."""

    name: Annotated[
        str, maybe_text("name of the cluster, the same on all its nodes; empty: this broker is alone", RESTART)
    ] = ""
    node: Annotated[str, maybe_text("name of this node, which no other node of the cluster has", RESTART)] = ""
    etcd: Annotated[
        tuple[str, ...], listed(
            "addresses of etcd, which decides who leads", RESTART, 'URLs, such as ["http://10.0.0.1:2379"]'
        )
    ] = ()
    etcd_prefix: Annotated[str, text("beginning of all keys of rumq in etcd", RESTART, 200)] = "/rumq"
    etcd_user: Annotated[str, maybe_text("user of etcd; empty: none", RESTART)] = ""
    etcd_password_file: Annotated[
        str, maybe_text("file with the password of that user, on its first line", RESTART)
    ] = ""
    etcd_authority: Annotated[str, maybe_text("PEM file of the authorities of etcd's certificates", RESTART)] = ""
    etcd_certificate: Annotated[str, maybe_text("PEM file of this node's certificate for etcd", RESTART)] = ""
    etcd_key: Annotated[str, maybe_text("PEM file of the key of that certificate", RESTART)] = ""
    host: Annotated[str, text("address to listen on for other nodes", RESTART, 255)] = "localhost"
    port: Annotated[
        int, number("first TCP port for other nodes; each shard takes one of those behind it", RESTART, "", 1, 65_000)
    ] = 7883
    advertise: Annotated[
        str, maybe_text("address by which other nodes reach this one, host or host:port; empty: host and port", RESTART)
    ] = ""
    advertise_mqtt: Annotated[
        str, maybe_text(
            "address by which clients reach this node, host:port; empty: that of the first listener", RESTART
        )
    ] = ""
    tls_certificate: Annotated[
        str, maybe_text("PEM file of this node's certificate for the others; enables mutual TLS between nodes", RESTART)
    ] = ""
    tls_key: Annotated[str, maybe_text("PEM file of its private key; empty: in tls_certificate", RESTART)] = ""
    tls_authority: Annotated[
        str, maybe_text(
            "PEM file of the authority of all nodes' certificates (rumqd certs node), the cluster's own", RESTART
        )
    ] = ""
    insecure: Annotated[
        bool, choice(
            "accept other nodes without TLS on other addresses than loopback: whoever reaches the port is a node",
            RESTART
        )
    ] = False
    unnamed_certificates: Annotated[
        bool, choice(
            "accept nodes whose certificates name no node, as those of earlier versions; for an upgrade", RESTART
        )
    ] = False
    zone: Annotated[
        str, maybe_text("zone of this node, such as a data centre; copies are spread over zones", RESTART)
    ] = ""
    shards: Annotated[
        int, number(
            "shards of the cluster, divided among its nodes; fixed when it is created", RESTART, "shards", 1, 64
        )
    ] = 3
    replicas: Annotated[
        int, number("copies of each shard, each on a node of its own; a majority must live", RESTART, "copies", 1, 7)
    ] = 3
    replace_seconds: Annotated[
        int, number(
            "a node that is gone for so long is replaced by another one that has room; 0: never by itself",
            RESTART, "seconds", 0, 365 * DAY_SECONDS
        )
    ] = 1800
