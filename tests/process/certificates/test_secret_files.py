"""Secret files of a cluster that others can read keep a node from starting, as a listener's key does."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from rumq.errors import ConfigError
from rumq.process.certificates import secret_files
from rumq.process.certificates.secret_files import check_secret_files
from rumq.settings.table import Settings

KEY = "-----BEGIN PRIVATE KEY-----\n"


def settings(exposed_files: str = "refuse", **cluster: Any) -> Settings:
    plain = Settings()
    return msgspec.structs.replace(
        plain, cluster=msgspec.structs.replace(plain.cluster, name="c", node="n1", **cluster),
        auth=msgspec.structs.replace(plain.auth, exposed_files=exposed_files),
    )  # fmt: skip


@pytest.mark.parametrize("key", ["tls_key", "etcd_key", "etcd_password_file"])
def test_a_file_that_everybody_reads_is_refused_with_the_remedy(key: str, tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_text(KEY)
    for mode in (0o600, 0o640):
        path.chmod(mode)
        check_secret_files(settings(**{key: str(path)}))
    path.chmod(0o644)
    with pytest.raises(ConfigError, match=rf"cluster\.{key}.*chmod o-rw {path}"):
        check_secret_files(settings(**{key: str(path)}))


@pytest.mark.parametrize(("certificate", "key"), [("tls_certificate", "tls_key"), ("etcd_certificate", "etcd_key")])
def test_a_certificate_with_its_key_in_it_is_one_too(certificate: str, key: str, tmp_path: Path) -> None:
    path = tmp_path / "both.pem"
    path.write_text(KEY)
    path.chmod(0o644)
    with pytest.raises(ConfigError, match=rf"cluster\.{key}"):
        check_secret_files(settings(**{certificate: str(path)}))
    path.write_text("-----BEGIN CERTIFICATE-----\n")
    check_secret_files(settings(**{certificate: str(path)}))


def test_a_setting_takes_them_and_each_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[str, str]] = []
    monkeypatch.setattr(secret_files, "tell", lambda name, **fields: told.append((name, fields["path"])))
    path = tmp_path / "password"
    path.write_text("x")
    path.chmod(0o644)
    check_secret_files(settings("warn", etcd_password_file=str(path)), says_exposed=True)
    assert told == [("secrets.exposed", str(path))]
