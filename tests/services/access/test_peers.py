"""What gRPC says of the other end: addresses, and certificates as MQTT's listeners see them."""

import pytest
import trustme

from rumq.services.access.peers import address_of, maybe_certificate


@pytest.mark.parametrize(
    ("peer", "address"),
    [("ipv4:10.0.0.1:4711", "10.0.0.1"), ("ipv6:%5B2001:db8::1%5D:4711", "2001:db8::1"),
     ("ipv6:[::1]:80", "::1"), ("ipv6:%5Bfe80::1%25eth0%5D:1", "fe80::1%eth0"), ("unix:/tmp/x", "unix:/tmp/x")],
)  # fmt: skip
def test_addresses(peer: str, address: str) -> None:
    assert address_of(peer) == address


def test_a_certificate() -> None:
    made = trustme.CA().issue_cert("pump-7.example", "a@b.example", common_name="pump-7", organization_name="Plant")
    found = maybe_certificate({"x509_pem_cert": [made.cert_chain_pems[0].bytes()]})
    assert found is not None
    assert found.common_name == "pump-7" and found.subject.startswith("CN=pump-7,") and "O=Plant" in found.subject
    assert set(found.names) == {"pump-7.example", "a@b.example"}
    assert maybe_certificate({}) is None


def test_what_is_no_certificate() -> None:
    with pytest.raises(ValueError):
        maybe_certificate({"x509_pem_cert": [b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"]})
