"""TLS between nodes from the settings."""

import ssl
from pathlib import Path
from typing import Any

import msgspec
import pytest

from rumq.cli.node.node_certificates import link_tls, node_tls
from rumq.config import Settings
from rumq.errors import RumqError
from tests.net.authorities import Authorities
from tests.net.conftest import authorities as authorities


def settings(**cluster: Any) -> Settings:
    plain = Settings()
    return msgspec.structs.replace(plain, cluster=msgspec.structs.replace(plain.cluster, **cluster))


def of(authorities: Authorities) -> Settings:
    return settings(
        tls_certificate=authorities.path("server"), tls_key=authorities.path("server", "key"),
        tls_authority=authorities.path("ca"),
    )  # fmt: skip


def test_without_a_certificate_bytes_are_plain() -> None:
    assert node_tls(settings()) is None and link_tls(settings()) is None


def test_both_ends_show_a_certificate_and_ask_for_one(authorities: Authorities) -> None:
    tls = link_tls(of(authorities))
    assert tls is not None and node_tls(of(authorities)) is not None
    for context in tls:
        assert context.verify_mode is ssl.CERT_REQUIRED
        assert context.minimum_version is ssl.TLSVersion.TLSv1_3


def test_what_is_wrong_with_the_files_is_said_with_the_settings(tmp_path: Path) -> None:
    with pytest.raises(RumqError, match=r"\[cluster\] tls_certificate, tls_key and tls_authority"):
        node_tls(settings(tls_certificate=str(tmp_path / "none.pem"), tls_authority=str(tmp_path / "ca.pem")))
