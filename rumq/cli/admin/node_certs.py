"""Certificates of a cluster's nodes: an authority of their own, and for each node a certificate with its name as a URI.

What a name is compared with: `rumq.cluster.links.node_names`. RFC 5280"""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from rumq.cluster.links.node_names import node_uri
from rumq.errors import RumqError

AUTHORITY_DAYS, NODE_DAYS = 20 * 365, 5 * 365
EARLIER = timedelta(hours=1)  # clocks of nodes differ
KEY_MODE, CERTIFICATE_MODE = 0o600, 0o644


class Authority(NamedTuple):
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey


def make_node_certificates(folder: str, cluster: str, nodes: list[str]) -> list[str]:
    """Write NAME.pem and NAME.key of each node, and ca.pem and ca.key if there is no authority yet.

    returns: nodes that have certificates already, which are kept. raises: RumqError, OSError"""
    os.makedirs(folder, 0o750, exist_ok=True)
    authority = authority_in(folder, cluster)
    kept = []
    for node in nodes:
        if os.path.exists(f"{folder}/{node}.pem"):
            kept.append(node)
            continue
        certificate, key = issued(authority, node, [node_uri(cluster, node)])
        write(f"{folder}/{node}.key", pem_of(key), KEY_MODE)
        write(f"{folder}/{node}.pem", certificate.public_bytes(serialization.Encoding.PEM), CERTIFICATE_MODE)
    return kept


def authority_in(folder: str, cluster: str) -> Authority:
    """The one that is there, or a new one. raises: RumqError, OSError"""
    certificate, key = f"{folder}/ca.pem", f"{folder}/ca.key"
    if os.path.exists(certificate) or os.path.exists(key):
        return read_authority(certificate, key)
    made = new_authority(cluster)
    write(key, pem_of(made.key), KEY_MODE)
    write(certificate, made.certificate.public_bytes(serialization.Encoding.PEM), CERTIFICATE_MODE)
    return made


def read_authority(certificate: str, key: str) -> Authority:
    """raises: RumqError"""
    try:
        with open(certificate, "rb") as file:
            found = x509.load_pem_x509_certificate(file.read())
        with open(key, "rb") as file:
            private = serialization.load_pem_private_key(file.read(), None)
    except FileNotFoundError as fault:
        raise RumqError(
            f"{fault.filename}: the authority's other file is there, and this one is not: put it back, or name another "
            "folder for a new authority"
        ) from None
    except OSError as fault:
        raise RumqError(f"{fault.filename}: {fault.strerror}") from None
    except (ValueError, TypeError) as fault:
        raise RumqError(f"{certificate}, {key}: no authority with its key: {fault}") from None
    if not isinstance(private, ec.EllipticCurvePrivateKey):
        raise RumqError(f"{key}: expected an elliptic curve key, as rumqd certs makes it")
    if found.public_key() != private.public_key():
        raise RumqError(f"{key} is not the key of {certificate}")
    return Authority(found, private)


def new_authority(cluster: str) -> Authority:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([
        x509.NameAttribute(NameOID.ORGANIZATION_NAME, "rumq"),
        x509.NameAttribute(NameOID.COMMON_NAME, f"nodes of {cluster}"[:64]),
    ])  # fmt: skip
    usage = x509.KeyUsage(
        digital_signature=False, content_commitment=False, key_encipherment=False, data_encipherment=False,
        key_agreement=False, key_cert_sign=True, crl_sign=True, encipher_only=False, decipher_only=False,
    )  # fmt: skip
    made = (
        builder(name, name, key, AUTHORITY_DAYS)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    return Authority(made.sign(key, hashes.SHA256()), key)


def issued(
    authority: Authority, node: str, uris: Sequence[str]
) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    """uris: what the certificate is compared by; the common name is for people"""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, node)])
    names = x509.SubjectAlternativeName([x509.UniformResourceIdentifier(uri) for uri in uris])
    usage = x509.KeyUsage(
        digital_signature=True, content_commitment=False, key_encipherment=False, data_encipherment=False,
        key_agreement=False, key_cert_sign=False, crl_sign=False, encipher_only=False, decipher_only=False,
    )  # fmt: skip
    both = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]  # a node dials and is dialled
    made = (
        builder(name, authority.certificate.subject, key, NODE_DAYS)
        .add_extension(names, critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.ExtendedKeyUsage(both), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key()), critical=False
        )
    )
    return made.sign(authority.key, hashes.SHA256()), key


def builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, days: int
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - EARLIER)
        .not_valid_after(now + timedelta(days=days))
    )


def pem_of(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def write(path: str, content: bytes, mode: int) -> None:
    """A new file with its final mode, so that a key is never readable by others. raises: OSError"""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(fd, "wb") as file:
        file.write(content)
