"""The address of a client's end takes 6 bytes where it is one of IPv4, and comes back letter by letter."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kernel_forms import forms

kernels = pytest.mark.parametrize("kernel", forms("rumq.net.kernels.addresses"))
PARTS = st.integers(0, 255)


def back(kernel: Any, peer: str) -> str | None:
    number = kernel.packed(peer)
    return None if number == -1 else kernel.unpacked(number >> 16, number & 0xFFFF)


@kernels
@given(parts=st.tuples(PARTS, PARTS, PARTS, PARTS), port=st.integers(0, 65535))
def test_an_address_of_ipv4_comes_back(kernel: Any, parts: tuple[int, ...], port: int) -> None:
    peer = f"{'.'.join(map(str, parts))}:{port}"
    assert back(kernel, peer) == peer


@kernels
@given(peer=st.text("0123456789.:a ", max_size=24) | st.text())
def test_any_other_text_stays_one_and_none_comes_back_changed(kernel: Any, peer: str) -> None:
    assert back(kernel, peer) in (None, peer)


@kernels
@pytest.mark.parametrize(
    "peer",
    ["", "unix:4711", "::1:1883", "192.0.2.1", "192.0.2.1:", "192.0.2:1883", "192.0.2.01:1883", "192.0.2.256:1",
     "192.0.2.1:65536", "192.0.2.1:01", "192.0.2.1:1883 ", "1.2.3.4.5:6", "1..2.3:4", "1.2.3.4:5:6", "1.2.3.4:٣"],
)  # fmt: skip
def test_what_is_no_such_address_is_kept_as_text(kernel: Any, peer: str) -> None:
    assert kernel.packed(peer) == -1
