"""Certificate authorities and what they issue: X.509 certificates and their keys, as files. RFC 5280.

What a certificate is for stands in it: a server's is refused where a client shows one, and a client's where a server
does. New keys are of the curve P-256."""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from rumq.errors import RumqError

SERVER, CLIENT = ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH
EARLIER = timedelta(hours=1)  # clocks of machines differ
KEY_MODE, CERTIFICATE_MODE = 0o600, 0o644
NAME_CHARACTERS_MAX = 64  # of a common name: RFC 5280, A.1
LABEL = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
HOST_NAME = re.compile(rf"(\*\.)?{LABEL}(\.{LABEL})*")  # RFC 1123, 2.1


class Validity(NamedTuple):
    start: datetime
    end: datetime


class Authority(NamedTuple):
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey


class Issued(NamedTuple):
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey


def for_days(days: int) -> Validity:
    """From now on, and an hour before."""
    now = datetime.now(UTC)
    return Validity(now - EARLIER, now + timedelta(days=days))


def new_authority(organization: str, name: str, validity: Validity) -> Authority:
    """One that issues certificates, and makes no other authorities. name: at most 64 characters"""
    key = ec.generate_private_key(ec.SECP256R1())
    own = distinguished_name(name, organization)
    made = (
        builder(own, own, key, validity)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(key_usage(signs_certificates=True), critical=True)
    )
    return Authority(made.sign(key, hashes.SHA256()), key)


def issue(
    authority: Authority,
    subject: x509.Name,
    names: Sequence[x509.GeneralName],
    purposes: Sequence[x509.ObjectIdentifier],
    validity: Validity,
) -> Issued:
    """names: what the certificate is compared by, may be empty; purposes: of SERVER and CLIENT"""
    key = ec.generate_private_key(ec.SECP256R1())
    made = (
        builder(subject, authority.certificate.subject, key, validity)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(key_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
        .add_extension(issuer_identifier(authority.certificate), critical=False)
    )
    if names:
        made = made.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return Issued(made.sign(authority.key, hashes.SHA256()), key)


def builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, validity: Validity
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(validity.start)
        .not_valid_after(validity.end)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def distinguished_name(name: str, organization: str = "") -> x509.Name:
    """name: the common name, at most 64 characters"""
    parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization)] if organization else []
    return x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, name)])


def key_usage(signs_certificates: bool) -> x509.KeyUsage:
    """Of an authority, or of an end of connections: its key signs handshakes, and encrypts no other key."""
    return x509.KeyUsage(
        digital_signature=not signs_certificates, content_commitment=False, key_encipherment=False,
        data_encipherment=False, key_agreement=False, key_cert_sign=signs_certificates, crl_sign=signs_certificates,
        encipher_only=False, decipher_only=False,
    )  # fmt: skip


def issuer_identifier(certificate: x509.Certificate) -> x509.AuthorityKeyIdentifier:
    """The issuer as it names itself; by its key, if it does not."""
    try:
        own = certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    except x509.ExtensionNotFound:
        key = certificate.public_key()
        assert isinstance(key, ec.EllipticCurvePublicKey | rsa.RSAPublicKey)
        return x509.AuthorityKeyIdentifier.from_issuer_public_key(key)
    return x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(own)


def host(name: str) -> x509.GeneralName:
    """An IPv4 or IPv6 address, or a host name, which may begin with "*.". raises: ValueError"""
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        pass
    try:
        encoded = name.encode("idna").decode("ascii").lower()
    except UnicodeError as fault:
        raise ValueError(f"{name!r} is no host name: {fault}") from None
    if not HOST_NAME.fullmatch(encoded) or len(encoded) > 253:
        raise ValueError(
            f"{name!r} is no address and no host name: expected letters, digits, and - within parts of at most 63"
        )
    return x509.DNSName(encoded)


def read_authority(certificate: str, key: str) -> Authority:
    """The authority of two files. raises: RumqError"""
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
    if not isinstance(private, ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey):
        raise RumqError(f"{key}: expected a key of an elliptic curve, as rumqd certs makes it, or of RSA")
    if found.public_key() != private.public_key():
        raise RumqError(f"{key} is not the key of {certificate}")
    return Authority(found, private)


def write_pair(made: Authority | Issued, path: str) -> None:
    """path.key, which only its owner reads, and path.pem. raises: OSError, FileExistsError too"""
    write(f"{path}.key", pem_of(made.key), KEY_MODE)
    write(f"{path}.pem", made.certificate.public_bytes(serialization.Encoding.PEM), CERTIFICATE_MODE)


def pem_of(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def write(path: str, content: bytes, mode: int) -> None:
    """A new file with its final mode, so that a key is never readable by others. raises: OSError"""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(fd, "wb") as file:
        file.write(content)
