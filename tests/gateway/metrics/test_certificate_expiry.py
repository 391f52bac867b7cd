"""When certificates expire, from their files: the earliest of a chain, and what was known stays while one is broken."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
import trustme

from rumq.gateway.metrics.certificate_expiry import CertificateExpiry, CertificateState, maybe_expiry

SOON, LATE = datetime(2040, 1, 1, tzinfo=UTC), datetime(2041, 1, 1, tzinfo=UTC)
KEY = ("nodes", "n.pem")


@pytest.fixture(scope="module")
def pem() -> dict[datetime, bytes]:
    ca = trustme.CA()
    return {end: ca.issue_cert("a.example", not_after=end).cert_chain_pems[0].bytes() for end in (SOON, LATE)}


@pytest.mark.parametrize("order", [(SOON, LATE), (LATE, SOON)])
def test_a_chain_expires_with_the_first_of_it(
    tmp_path: Path, pem: dict[datetime, bytes], order: tuple[datetime, datetime]
) -> None:
    file = tmp_path / "n.pem"
    file.write_bytes(b"".join(pem[end] for end in order))
    assert maybe_expiry(str(file)) == SOON.timestamp()


def test_what_is_no_certificate_has_no_expiry(tmp_path: Path) -> None:
    (tmp_path / "n.pem").write_text("not one")
    assert maybe_expiry(str(tmp_path / "n.pem")) is None
    assert maybe_expiry(str(tmp_path / "nowhere.pem")) is None


def test_a_file_that_is_broken_keeps_what_it_said_and_is_not_usable(tmp_path: Path, pem: dict[datetime, bytes]) -> None:
    file = tmp_path / "n.pem"
    expiry = CertificateExpiry(lambda: {KEY: str(file)})
    expiry.look()
    assert expiry.states == {}, "it never held one"
    file.write_bytes(pem[SOON])
    expiry.look()
    file.write_text("half a certificate")
    expiry.look()
    assert expiry.states == {KEY: CertificateState(SOON.timestamp(), False)}
    file.write_bytes(pem[LATE])
    expiry.look()
    assert expiry.states == {KEY: CertificateState(LATE.timestamp(), True)}


def test_a_file_that_the_settings_name_no_more_is_forgotten(tmp_path: Path, pem: dict[datetime, bytes]) -> None:
    file = tmp_path / "n.pem"
    file.write_bytes(pem[SOON])
    named = {KEY: str(file)}
    expiry = CertificateExpiry(lambda: named)
    expiry.look()
    named.clear()
    expiry.look()
    assert expiry.states == {}
