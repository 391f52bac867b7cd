"""What a certificate says of a client, in the words of openssl. RFC 2253, RFC 5280."""

import shutil
import ssl
import subprocess
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.name import _ASN1Type
from cryptography.x509.oid import NameOID, ObjectIdentifier
from hypothesis import given, settings
from hypothesis import strategies as st

from rumq.net.certificate import BadDer, common_name, names, peer_certificate, rfc2253

BEFORE, AFTER = datetime(1999, 12, 31, 23, 59, 58, tzinfo=UTC), datetime(2051, 2, 3, 4, 5, 6, tzinfo=UTC)
CN, ORG, OU = NameOID.COMMON_NAME, NameOID.ORGANIZATION_NAME, NameOID.ORGANIZATIONAL_UNIT_NAME
Pair = tuple[ObjectIdentifier, str] | tuple[ObjectIdentifier, str, _ASN1Type]

SUBJECTS: dict[str, tuple[list[list[Pair]], str | None]] = {
    "CN=pump-7": ([[(CN, "pump-7")]], "pump-7"),
    "CN=pump-7,OU=Line 2,O=Works,C=DE": (
        [[(NameOID.COUNTRY_NAME, "DE")], [(ORG, "Works")], [(OU, "Line 2")], [(CN, "pump-7")]], "pump-7",
    ),
    "OU=b+CN=a": ([[(OU, "b"), (CN, "a")]], "a"),
    r"CN=a\,b\+c\"d\\e\<f\>g\;h": ([[(CN, 'a,b+c"d\\e<f>g;h')]], 'a,b+c"d\\e<f>g;h'),
    r"CN=\#x": ([[(CN, "#x")]], "#x"),
    r"CN=x#": ([[(CN, "x#")]], "x#"),
    r"CN=\ x y\ ": ([[(CN, " x y ")]], " x y "),
    r"CN=P\C3\BCmp": ([[(CN, "Pümp")]], "Pümp"),
    r"CN=\E6\B3\B5": ([[(CN, "泵", _ASN1Type.BMPString)]], "泵"),
    r"CN=a\0Ab": ([[(CN, "a\nb")]], "a\nb"),
    r"CN=a\00b": ([[(CN, "a\0b")]], None),
    "CN=second,CN=first": ([[(CN, "first")], [(CN, "second")]], "first"),
    "UID=u,DC=org,DC=example,emailAddress=a@b.c,serialNumber=7": (
        [
            [(NameOID.SERIAL_NUMBER, "7")], [(NameOID.EMAIL_ADDRESS, "a@b.c")], [(NameOID.DOMAIN_COMPONENT, "example")],
            [(NameOID.DOMAIN_COMPONENT, "org")], [(NameOID.USER_ID, "u")],
        ],
        None,
    ),
    "GN=g,SN=s,title=t,L=l,ST=st,street=r": (
        [
            [(NameOID.STREET_ADDRESS, "r")], [(NameOID.STATE_OR_PROVINCE_NAME, "st")], [(NameOID.LOCALITY_NAME, "l")],
            [(NameOID.TITLE, "t")], [(NameOID.SURNAME, "s")], [(NameOID.GIVEN_NAME, "g")],
        ],
        None,
    ),
    "1.2.3.4=#0C026F77": ([[(ObjectIdentifier("1.2.3.4"), "ow")]], None),
    "": ([], None),
}  # fmt: skip


@cache
def key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def certificate(subject: list[list[Pair]]) -> x509.Certificate:
    relative = [x509.RelativeDistinguishedName([x509.NameAttribute(*pair) for pair in pairs]) for pairs in subject]
    return (
        x509.CertificateBuilder()
        .subject_name(x509.Name(relative))
        .issuer_name(x509.Name([x509.NameAttribute(CN, "the authority")]))
        .public_key(key().public_key())
        .serial_number(1)
        .not_valid_before(BEFORE)
        .not_valid_after(AFTER)
        .sign(key(), hashes.SHA256())
    )


def der(subject: list[list[Pair]]) -> bytes:
    return certificate(subject).public_bytes(serialization.Encoding.DER)


@pytest.mark.parametrize("text", SUBJECTS)
def test_a_subject_is_text_as_rfc_2253_has_it(text: str) -> None:
    subject, name = SUBJECTS[text]
    found = names(der(subject))
    assert rfc2253(found.subject) == text
    assert common_name(found.subject) == name
    assert rfc2253(found.issuer) == "CN=the authority"
    assert (found.not_before, found.not_after) == ("1999-12-31 23:59:58Z", "2051-02-03 04:05:06Z")


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
@pytest.mark.parametrize("text", SUBJECTS)
def test_openssl_has_the_same_words(text: str, tmp_path: Path) -> None:
    path = tmp_path / "c.der"
    path.write_bytes(der(SUBJECTS[text][0]))
    said = subprocess.run(
        ["openssl", "x509", "-inform", "DER", "-in", str(path), "-noout", "-subject", "-nameopt", "RFC2253"],
        capture_output=True,
        check=True,
    )
    assert said.stdout.decode().rstrip("\n") == f"subject={text}"


def test_the_facts_of_a_certificate() -> None:
    decoded = {
        "notAfter": "Feb  3 04:05:06 2051 GMT",
        "subjectAltName": (
            ("DNS", "a.example"),
            ("email", "a@b.c"),
            ("URI", "urn:x"),
            ("IP Address", "::1"),
            ("DNS", "b"),
        ),
    }
    found = peer_certificate(der([[(CN, "pump-7")]]), decoded)
    assert (found.common_name, found.subject) == ("pump-7", "CN=pump-7")
    assert (found.dns, found.email, found.uri) == (("a.example", "b"), ("a@b.c",), ("urn:x",))
    assert found.not_after == AFTER.timestamp() == ssl.cert_time_to_seconds(decoded["notAfter"])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("tag", "content", "text"),
    [
        (20, b"P\xfcmp\xe9xyz", r"CN=P\C3\BCmp\C3\A9xyz"),
        (19, b"a@b*c_d&", "CN=a@b*c_d&"),
    ],
    ids=["latin-1 in T61String", "at in PrintableString"],
)
def test_a_name_that_openssl_accepts_and_cryptography_refuses_is_read(tag: int, content: bytes, text: str) -> None:
    right = der([[(CN, "abcdefgh")]])
    assert right.count(b"\x0c\x08abcdefgh") == 1
    wrong = right.replace(b"\x0c\x08abcdefgh", bytes((tag, 8)) + content)
    assert rfc2253(names(wrong).subject) == text
    with pytest.raises(ValueError, match="asn1"):
        assert x509.load_der_x509_certificate(wrong).subject.rdns


@given(st.binary(max_size=200))
@settings(max_examples=200, deadline=None)
def test_bytes_that_are_no_certificate_are_none(data: bytes) -> None:
    with pytest.raises(BadDer):
        names(data)


@given(at=st.integers(0, 250), byte=st.integers(0, 255), end=st.integers(0, 400))
@settings(max_examples=300, deadline=None)
def test_a_damaged_one_is_read_or_refused(at: int, byte: int, end: int) -> None:
    data = bytearray(der([[(ORG, "Works"), (OU, "Line 2")], [(CN, "pump-7")]]))
    data[at] = byte
    try:
        rfc2253(names(bytes(data[: end if end < 200 else None])).subject)
    except BadDer:
        pass
