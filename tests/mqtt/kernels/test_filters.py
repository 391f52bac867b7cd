"""What is put before each filter of a list, compiled and as plain Python, against a list."""

from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kernel_forms import forms

KERNEL = pytest.mark.parametrize("kernel", forms("rumq.mqtt.kernels.filters"))


@KERNEL
@given(
    asked=st.lists(st.binary(max_size=20) | st.sampled_from([b"$share/g/a", b"$share/g", b"$log/1/a/b"]), max_size=9),
    options=st.sampled_from([0, 1]), head=st.binary(max_size=4), cut=st.integers(1, 30),
)  # fmt: skip
def test_each_filter_has_the_prefix_and_the_rest_stays(
    kernel: ModuleType, asked: list[bytes], options: int, head: bytes, cut: int
) -> None:
    body, wanted = head, b""
    for each in asked:
        body += len(each).to_bytes(2, "big") + each + b"\x01" * options
        begin = 0
        if each.startswith((b"$share/", b"$log/")) and each.count(b"/") > 1:
            begin = each.index(b"/", each.index(b"/") + 1) + 1
        made = each[:begin] + b"site/" + each[begin:] if each[begin:] else each
        wanted += len(made).to_bytes(2, "big") + made + b"\x01" * options
    assert kernel.measured(body, len(head), options, 5) == len(asked)
    assert kernel.prefixed(body, len(head), options, b"site/") == wanted
    if asked and cut < len(asked[-1]) + 2 + options:
        assert kernel.measured(body[:-cut], len(head), options, 5) == -1


@KERNEL
def test_the_longest_filter_has_room_for_no_more(kernel: ModuleType) -> None:
    body = b"\xff\xff" + bytes(65_535)
    assert kernel.measured(body, 0, 0, 0) == 1
    assert kernel.measured(body, 0, 0, 1) == -2
    assert kernel.measured(b"", 0, 1, 9) == 0
