"""Authorities, certificates and revocation lists of a test run, as files."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from rumq.cli.admin.authority import Authority, write_pair
from rumq.cli.admin.node_certs import issue_node
from rumq.cluster.links.node_names import node_uri
from rumq.net.tls.tls_options import TlsOptions

LONG_AGO = datetime(2020, 2, 3, 4, 5, 6, tzinfo=UTC)
IDENTITIES = ("device@example.org", "pump-7.example.org")


class Authorities:
    """files: every path by its name; the authority that the broker believes has issued all but "stranger"."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ca = trustme.CA(organization_name="Works, Inc.")
        self.other = trustme.CA(organization_name="Somebody else")
        self.ca.cert_pem.write_to_path(folder / "ca.pem")
        self.other.cert_pem.write_to_path(folder / "other-ca.pem")
        self._write("server", self.ca.issue_cert("localhost", "127.0.0.1", "::1"))
        self._write("server2", self.ca.issue_cert("localhost", "127.0.0.1", common_name="the second one"))
        self._write("client", self.ca.issue_cert(*IDENTITIES, common_name="pump-7", organization_unit_name="A+B"))
        late = self.ca.issue_cert(
            "late.example.org", common_name="late", not_before=LONG_AGO - timedelta(9), not_after=LONG_AGO
        )
        self._write("expired", late)
        self._write("revoked", self.ca.issue_cert("lost.example.org", common_name="lost"))
        self._write("stranger", self.other.issue_cert("foe.example.org", common_name="foe"))
        self._write_revocations(self.path("revoked"))

    def path(self, name: str, kind: str = "pem") -> str:
        return str(self.folder / f"{name}.{kind}")

    def options(self, **more: object) -> TlsOptions:
        """A listener that asks for no certificate, unless told."""
        return TlsOptions(**{"certfile": self.path("server"), "keyfile": self.path("server", "key"), **more})  # type: ignore[arg-type]

    def mutual(self, **more: object) -> TlsOptions:
        return self.options(**{"cafile": self.path("ca"), "client_certificates": "required", **more})

    def node(self, cluster: str, *names: str, of_other: bool = False) -> str:
        """Write a certificate with the names of nodes, by default of one, and return the name of its files.

        of_other: of the authority "other-ca" """
        ca = self.other if of_other else self.ca
        key = serialization.load_pem_private_key(ca.private_key_pem.bytes(), None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        authority = Authority(x509.load_pem_x509_certificate(ca.cert_pem.bytes()), key)
        made = issue_node(authority, names[0], [node_uri(cluster, each) for each in names])
        file = "-".join([cluster, *names, *(["other"] if of_other else [])])
        for kind in ("pem", "key"):  # of an earlier test of the session
            Path(self.path(file, kind)).unlink(missing_ok=True)
        write_pair(made, str(self.folder / file))
        return file

    def _write(self, name: str, issued: trustme.LeafCert) -> None:
        issued.private_key_pem.write_to_path(self.path(name, "key"))
        os.chmod(self.path(name, "key"), 0o600)
        with open(self.path(name), "wb") as file:
            file.write(b"".join(blob.bytes() for blob in issued.cert_chain_pems))

    def _write_revocations(self, path: str) -> None:
        key = serialization.load_pem_private_key(self.ca.private_key_pem.bytes(), None)
        authority = x509.load_pem_x509_certificate(self.ca.cert_pem.bytes())
        with open(path, "rb") as file:
            gone = x509.load_pem_x509_certificate(file.read())
        now = datetime.now(UTC)
        entry = x509.RevokedCertificateBuilder().serial_number(gone.serial_number).revocation_date(LONG_AGO)
        made = (
            x509.CertificateRevocationListBuilder()
            .issuer_name(authority.subject)
            .last_update(LONG_AGO)
            .next_update(now + timedelta(365))
            .add_revoked_certificate(entry.build())
            .sign(key, hashes.SHA256())  # type: ignore[arg-type]
        )
        with open(self.path("crl"), "wb") as file:
            file.write(made.public_bytes(serialization.Encoding.PEM))
