"""TLS between nodes from the settings: files, the names that certificates must have, and this node's own among them."""

from __future__ import annotations

import ssl
from collections.abc import Callable

from cryptography import x509

from rumq.cluster.connections.node_tls import NodeTls
from rumq.cluster.links.node_names import SCHEME, NodeNames, node_uri
from rumq.cluster.node.link_handshake import LinkTls
from rumq.errors import ConfigError, Fault, RumqError
from rumq.events.event_log import tell
from rumq.net.tls.tls_options import TlsSettingsError
from rumq.process.certificates.secret_files import check_secret_files
from rumq.process.listeners.certificate_watch import CertificateWatch
from rumq.settings.table import Settings


def node_tls(settings: Settings) -> NodeTls | None:
    """Of the pump's connections; None for plain bytes. raises: RumqError"""
    cluster = settings.cluster
    if not cluster.tls_certificate:
        return None
    try:
        return NodeTls(cluster.tls_certificate, cluster.tls_key, cluster.tls_authority, node_names(settings), tell)
    except TlsSettingsError as fault:
        raise unusable(fault) from fault


def link_tls(settings: Settings) -> LinkTls | None:
    """Of a standby's links, and of what the agent dials."""
    if not settings.cluster.tls_certificate:
        return None
    server = node_context(settings, ssl.PROTOCOL_TLS_SERVER)
    server.num_tickets = 0  # each link is proved anew, by a certificate that is valid now
    return LinkTls(server, node_context(settings, ssl.PROTOCOL_TLS_CLIENT), node_names(settings))


def watched_node_tls(settings: Settings, tls: NodeTls | None) -> CertificateWatch | None:
    """Has new connections of the pump use files that have changed; None for plain bytes."""

    def renew() -> None:
        check_node_certificates(settings)
        assert tls is not None
        try:
            tls.reload()
        except TlsSettingsError as fault:
            raise unusable(fault) from fault

    return CertificateWatch("nodes", lambda: node_files(settings), renew, tell) if tls is not None else None


def watched_link_tls(settings: Settings, use: Callable[[LinkTls], None]) -> CertificateWatch | None:
    """The same of a standby, and of the agent. use: takes fresh contexts"""

    def renew() -> None:
        check_node_certificates(settings)
        fresh = link_tls(settings)
        assert fresh is not None
        use(fresh)

    watched = settings.cluster.tls_certificate
    return CertificateWatch("nodes", lambda: node_files(settings), renew, tell) if watched else None


def node_files(settings: Settings) -> list[str]:
    cluster = settings.cluster
    return [cluster.tls_certificate, cluster.tls_key, cluster.tls_authority]


def unusable(fault: TlsSettingsError) -> RumqError:
    return RumqError(f"TLS between nodes, [cluster] tls_certificate, tls_key and tls_authority: {fault}")


def node_context(settings: Settings, protocol: int) -> ssl.SSLContext:
    cluster = settings.cluster
    context = ssl.SSLContext(protocol)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_REQUIRED
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.load_cert_chain(cluster.tls_certificate, cluster.tls_key or None)
    context.load_verify_locations(cluster.tls_authority)
    return context


def node_names(settings: Settings) -> NodeNames:
    return NodeNames(settings.cluster.name, settings.cluster.unnamed_certificates)


def check_node_certificates(settings: Settings) -> None:
    """Everything that is wrong with TLS between nodes and the cluster's secrets. raises: RumqError"""
    check_secret_files(settings)
    if node_tls(settings) is None:
        return
    cluster = settings.cluster
    problem = node_names(settings).maybe_problem(uris_in(cluster.tls_certificate), cluster.node)
    if problem is not None:
        wanted = node_uri(cluster.name, cluster.node)
        found = ", ".join(each for each in uris_in(cluster.tls_certificate) if each.startswith(SCHEME))
        raise ConfigError(
            Fault(
                "", "cluster.tls_certificate", f'"{cluster.tls_certificate}"',
                f"expected a certificate with the URI {wanted}, found {found or 'none of a node'}: the other nodes "
                f"would refuse this one; rumqd certs node DIR --cluster {cluster.name} --node {cluster.node} makes one"
                + ("" if found else "; while nodes are upgraded, cluster.unnamed_certificates = true does without"),
            )
        )  # fmt: skip


def tell_what_is_open(settings: Settings) -> None:
    """At each start: settings that let others in than named nodes."""
    cluster = settings.cluster
    if cluster.insecure and not cluster.tls_certificate:
        tell("cluster.insecure", host=cluster.host, why=INSECURE)
    if cluster.unnamed_certificates and cluster.tls_certificate:
        tell("cluster.unnamed_certificates", why=UNNAMED)


INSECURE = (
    "cluster.insecure = true: whoever reaches the ports for other nodes reads and writes every message, connects as "
    "any user and stops this node; rumqd certs node makes certificates for TLS between nodes"
)
UNNAMED = (
    "cluster.unnamed_certificates = true: any certificate of cluster.tls_authority without the name of a node is taken "
    "for a node's; when all nodes have certificates of rumqd certs node, remove the setting"
)


def uris_in(path: str) -> list[str]:
    """URIs of the first certificate in a PEM file; none if it cannot be read, which is told elsewhere."""
    try:
        with open(path, "rb") as file:
            found = x509.load_pem_x509_certificate(file.read())
        names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        return names.get_values_for_type(x509.UniformResourceIdentifier)
    except (OSError, ValueError, x509.ExtensionNotFound):
        return []
