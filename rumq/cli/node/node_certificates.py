"""TLS between nodes from the settings."""

from __future__ import annotations

import ssl

from rumq.cluster.connections.node_tls import NodeTls
from rumq.cluster.node.frame_link import LinkTls
from rumq.config import Settings
from rumq.errors import RumqError
from rumq.net.tls_options import TlsSettingsError


def node_tls(settings: Settings) -> NodeTls | None:
    """Of the pump's connections; None for plain bytes. raises: RumqError"""
    cluster = settings.cluster
    if not cluster.tls_certificate:
        return None
    try:
        return NodeTls(cluster.tls_certificate, cluster.tls_key, cluster.tls_authority)
    except TlsSettingsError as fault:
        raise RumqError(
            f"TLS between nodes, [cluster] tls_certificate, tls_key and tls_authority: {fault}"
        ) from fault


def link_tls(settings: Settings) -> LinkTls | None:
    """Of a standby's links. As `NodeTls`: any certificate of the authority will do, whatever name is in it."""
    cluster = settings.cluster
    if not cluster.tls_certificate:
        return None
    contexts = []
    for protocol in (ssl.PROTOCOL_TLS_SERVER, ssl.PROTOCOL_TLS_CLIENT):
        context = ssl.SSLContext(protocol)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_REQUIRED
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.load_cert_chain(cluster.tls_certificate, cluster.tls_key or None)
        context.load_verify_locations(cluster.tls_authority)
        contexts.append(context)
    return LinkTls(*contexts)
