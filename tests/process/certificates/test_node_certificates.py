"""TLS between nodes from the settings."""

import ssl
from pathlib import Path
from typing import Any

import msgspec
import pytest

from rumq.errors import ConfigError, RumqError
from rumq.process.certificates import node_certificates
from rumq.process.certificates.node_certificates import (
    check_node_certificates,
    link_tls,
    node_tls,
    tell_what_is_open,
)
from rumq.settings.table import Settings
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
    for context in (tls.server, tls.client):
        assert context.verify_mode is ssl.CERT_REQUIRED
        assert context.minimum_version is ssl.TLSVersion.TLSv1_3


def test_what_is_wrong_with_the_files_is_said_with_the_settings(tmp_path: Path) -> None:
    with pytest.raises(RumqError, match=r"\[cluster\] tls_certificate, tls_key and tls_authority"):
        node_tls(settings(tls_certificate=str(tmp_path / "none.pem"), tls_authority=str(tmp_path / "ca.pem")))


def named(authorities: Authorities, file: str, **more: Any) -> Settings:
    return settings(
        name="plant", node="n1", tls_certificate=authorities.path(file), tls_key=authorities.path(file, "key"),
        tls_authority=authorities.path("ca"), **more,
    )  # fmt: skip


def test_a_node_does_not_start_with_a_certificate_that_the_others_would_refuse(
    authorities: Authorities,
) -> None:
    for file in ("server", authorities.node("plant", "n1"), authorities.node("plant", "n2")):
        Path(authorities.path(file, "key")).chmod(0o600)
    check_node_certificates(named(authorities, "plant-n1"))
    for file, found in (("server", "none of a node"), ("plant-n2", "rumq://plant/node/n2")):
        with pytest.raises(ConfigError) as refused:
            check_node_certificates(named(authorities, file))
        says = str(refused.value)
        assert f'cluster.tls_certificate = "{authorities.path(file)}"' in says
        assert "the URI rumq://plant/node/n1" in says and f"found {found}" in says
        assert "rumqd certs node DIR --cluster plant --node n1" in says
    check_node_certificates(named(authorities, "server", unnamed_certificates=True))
    with pytest.raises(ConfigError):
        check_node_certificates(named(authorities, "plant-n2", unnamed_certificates=True))


def test_what_lets_strangers_in_is_told_at_each_start(
    authorities: Authorities, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    monkeypatch.setattr(node_certificates, "tell", lambda name, **fields: told.append(name))
    tell_what_is_open(settings(name="c"))
    tell_what_is_open(named(authorities, "server"))
    assert not told
    tell_what_is_open(settings(name="c", insecure=True, host="10.0.0.1"))
    tell_what_is_open(named(authorities, "server", unnamed_certificates=True))
    assert told == ["cluster.insecure", "cluster.unnamed_certificates"]
