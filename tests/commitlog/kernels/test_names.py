"""From a name back to its number, compiled and as plain Python, against a dictionary."""

from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kernel_forms import forms

KERNEL = pytest.mark.parametrize("kernel", forms("commitlog.kernels.names"))


@KERNEL
@settings(max_examples=60, deadline=None)
@given(
    before=st.lists(st.binary(max_size=3), max_size=20),
    after=st.lists(st.binary(max_size=3), max_size=20),
    many=st.sampled_from([0, 160, 600]),  # about where the index grows
)
def test_a_name_leads_back_to_its_number(
    kernel: ModuleType, before: list[bytes], after: list[bytes], many: int
) -> None:
    names = [b"name/%d" % n for n in range(many)] + before
    index = kernel.NumberOf(names)
    for name in after:
        names.append(name)
        index.add(len(names) - 1)
    model = {name: number for number, name in enumerate(names)}
    assert {name: index.get(name) for name in model} == model
    assert all(name in index and index[name] == number for name, number in model.items())
    assert dict(index.items()) == model and len(index) == len(model)
    assert index.get(b"another") is None and b"another" not in index
    with pytest.raises(KeyError):
        index[b"another"]
