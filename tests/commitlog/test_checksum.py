"""Checksums are zlib's CRC-32, whichever library takes them."""

import importlib
import sys
import zlib
from collections.abc import Iterator
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commitlog import checksum


@pytest.fixture
def without_isal(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    with monkeypatch.context() as patched:
        patched.setitem(sys.modules, "isal", None)
        patched.setitem(sys.modules, "isal.isal_zlib", None)
        yield importlib.reload(checksum)
    importlib.reload(checksum)


@given(data=st.binary(max_size=300), more=st.binary(max_size=300))
def test_it_is_that_of_zlib_also_of_pieces(data: bytes, more: bytes) -> None:
    assert checksum.crc32(memoryview(data)) == zlib.crc32(data)
    assert checksum.crc32(more, checksum.crc32(bytearray(data))) == zlib.crc32(data + more)


def test_of_large_pieces_too() -> None:
    data = bytes(range(256)) * 4097
    assert checksum.crc32(data) == zlib.crc32(data)


def test_without_isa_l_it_is_zlib_itself(without_isal: ModuleType) -> None:
    assert without_isal.crc32 is zlib.crc32
