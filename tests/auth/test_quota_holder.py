"""Quotas of clients without a user name count for an IPv4 address, or for an IPv6 /64. RFC 6177."""

import pytest

from rumq.auth.quota_holder import holder_of, holder_of_peer


@pytest.mark.parametrize(
    ("address", "holder"),
    [
        ("10.0.0.1", "10.0.0.1"), ("2001:db8::1", "2001:db8::/64"), ("2001:db8::ffff:1:2:3", "2001:db8::/64"),
        ("[2001:db8:0:1::1]", "2001:db8:0:1::/64"), ("fe80::1%eth0", "fe80::/64"), ("::ffff:10.0.0.1", "10.0.0.1"),
        ("unix:4711", "unix"), ("no:address", "no:address"), ("", ""),
    ],
)  # fmt: skip
def test_the_holder_of_an_address(address: str, holder: str) -> None:
    assert holder_of(address) == holder


@pytest.mark.parametrize(
    ("peer", "holder"),
    [
        ("10.0.0.1:1883", "10.0.0.1"),
        ("2001:db8::1:1883", "2001:db8::/64"),
        ("unix:12", "unix"),
        ("odd", "odd"),
    ],
)
def test_a_peer_has_a_port_behind_its_address(peer: str, holder: str) -> None:
    assert holder_of_peer(peer) == holder
