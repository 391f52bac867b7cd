"""Names and their numbers, compiled and as plain Python, against a dictionary."""

from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kernel_forms import forms

KERNEL = pytest.mark.parametrize("kernel", forms("rumq.mqtt.kernels.topics"))
NAMES = st.one_of(st.binary(max_size=20), st.integers(0, 300).map(lambda n: b"plant/%d" % n), st.just(b"x" * 65535))


@KERNEL
@settings(max_examples=100, deadline=None)
@given(
    changes=st.lists(st.tuples(NAMES, st.integers(-(2**63), 2**63 - 1)), max_size=40),
    before=st.sampled_from([0, 680, 700, 1400]),  # about where the table grows
)
def test_a_name_leads_to_its_number(kernel: ModuleType, changes: list[tuple[bytes, int]], before: int) -> None:
    table = kernel.TopicTable(2**64 - 7)
    model: dict[bytes, int] = {}
    for name, value in [*((b"before/%d" % n, n) for n in range(before)), *changes]:
        assert table.get(name) == model.get(name)
        table[name] = model[name] = value
        assert table[name] == value and name in table
    assert len(table) == len(model)
    assert {name: table.get(name) for name in model} == model
    assert dict(table.items()) == model
    assert table.get(b"another") is None and b"another" not in table
    with pytest.raises(KeyError):
        table[b"another"]


@KERNEL
def test_no_name_is_lost_while_the_table_grows(kernel: ModuleType) -> None:
    table = kernel.TopicTable(2**64 - 7)
    for n in range(20_000):
        table[b"plant/%d/line" % n] = n
        assert table.get(b"plant/%d/line" % (n // 2)) == n // 2
        if n % 7 == 0:  # names that have not been moved yet are given another number
            table[b"plant/%d/line" % (n // 3)] = n // 3
    assert len(table) == 20_000
    assert all(table.get(b"plant/%d/line" % n) == n for n in range(20_000))
    assert all(table.get(b"plant/%d/lines" % n) is None for n in range(20_000))
