"""A Unix socket is reached however deep its directory is."""

import os
import socket
from pathlib import Path

from rumq.unix_address import ADDRESS_BYTES_MAX, Address


def test_a_short_path_is_used_as_it_is() -> None:
    with Address("/tmp/x.sock") as address:
        assert address == "/tmp/x.sock"


def test_a_long_path_is_bound_and_connected(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 100) / ("e" * 100)
    deep.mkdir(parents=True)
    path, before = str(deep / "agent.sock"), len(os.listdir("/proc/self/fd"))
    assert len(path) > ADDRESS_BYTES_MAX
    with socket.socket(socket.AF_UNIX) as bound, socket.socket(socket.AF_UNIX) as near:
        with Address(path) as address:
            bound.bind(address)
        bound.listen()
        with Address(path) as address:
            near.connect(address)
    assert len(os.listdir("/proc/self/fd")) == before
