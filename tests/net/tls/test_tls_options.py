"""TLS settings: one that does not work is named, with the way out."""

import shutil
from pathlib import Path

import pytest

from rumq.net.tls.tls_options import TlsOptions, TlsSettingsError, make_context
from tests.net.authorities import Authorities


@pytest.mark.parametrize(
    ("changed", "key", "words"),
    [
        ({"certfile": ""}, "certfile", "needs a certificate"),
        ({"certfile": "nowhere.pem"}, "certfile", "No such file"),
        ({"keyfile": "nowhere.key"}, "keyfile", "No such file"),
        ({"keyfile": "{client.key}"}, "keyfile", "is not the key of"),
        ({"keyfile": "{ca.pem}"}, "certfile", "no PEM certificate with its key"),
        ({"certfile": "{server.key}", "keyfile": "{server.pem}"}, "certfile", "exchange the two names"),
        ({"certfile": "{crl.pem}"}, "certfile", "no PEM certificate with its key"),
        ({"ciphers": "NONSENSE"}, "ciphers", "names none"),
        ({"client_certificates": "required"}, "cafile", "name their authorities"),
        ({"client_certificates": "required", "cafile": "{server.key}"}, "cafile", "no PEM certificates"),
        ({"client_certificates": "required", "cafile": "nowhere"}, "cafile", "No such file"),
        (
            {"client_certificates": "required", "cafile": "{ca.pem}", "crlfile": "nowhere"},
            "crlfile",
            "No such file",
        ),
        (
            {"client_certificates": "required", "cafile": "{ca.pem}", "crlfile": "{server.key}"},
            "crlfile",
            "no PEM",
        ),
    ],
)
def test_a_setting_that_does_not_work_is_named(
    authorities: Authorities, changed: dict[str, str], key: str, words: str
) -> None:
    def path(value: str) -> str:
        return str(authorities.folder / value[1:-1]) if value.startswith("{") else value

    with pytest.raises(TlsSettingsError) as caught:
        make_context(authorities.options(**{name: path(value) for name, value in changed.items()}))
    assert caught.value.key == key and words in str(caught.value)


def test_a_locked_key_opens_with_its_password(authorities: Authorities, tmp_path: Path) -> None:
    from cryptography.hazmat.primitives import serialization as s

    key = s.load_pem_private_key(Path(authorities.path("server", "key")).read_bytes(), None)
    locked = tmp_path / "locked.key"
    locked.write_bytes(key.private_bytes(s.Encoding.PEM, s.PrivateFormat.PKCS8, s.BestAvailableEncryption(b"open")))
    make_context(authorities.options(keyfile=str(locked), key_password="open"))
    for wrong in ("", "shut"):
        with pytest.raises(TlsSettingsError) as caught:
            make_context(authorities.options(keyfile=str(locked), key_password=wrong))
        assert caught.value.key == "key_password"


def test_a_key_may_be_with_its_certificate(authorities: Authorities, tmp_path: Path) -> None:
    both = tmp_path / "both.pem"
    with both.open("wb") as file:
        for path in (authorities.path("server"), authorities.path("server", "key")):
            with open(path, "rb") as part:
                shutil.copyfileobj(part, file)
    make_context(TlsOptions(certfile=str(both)))
