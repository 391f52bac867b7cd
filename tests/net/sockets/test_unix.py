"""Unix sockets: who may use them, and what is done with one that is there already."""

import os
import socket
import stat
from pathlib import Path

import pytest

from rumq.net.listening.transports import PLAIN
from rumq.net.sockets.unix import open_unix_socket, remove
from rumq.unix_address import Address
from tests.net.site import Site


def connected(path: str) -> socket.socket:
    sock = socket.socket(socket.AF_UNIX)
    sock.connect(path)
    return sock


def test_bytes_go_both_ways(site: Site, tmp_path: Path) -> None:
    path = str(tmp_path / "rumq.sock")
    assert site.listen(PLAIN, open_unix_socket(path, 0o660, 10)) == path
    assert site.listeners[0].address == (path, 0)
    sock = connected(path)
    sock.sendall(b"hello")
    site.until(lambda: site.links and site.links[0].got)
    site.turn()
    assert sock.recv(10) == b"hello"
    assert site.links[0].transport.peer == f"unix:{os.getpid()}"
    sock.close()


@pytest.mark.parametrize("mode", [0o600, 0o660, 0o666])
def test_the_file_has_the_mode_that_was_asked_for(tmp_path: Path, mode: int) -> None:
    before = os.umask(0o077)
    try:
        sock = open_unix_socket(str(tmp_path / "s"), mode, 10)
        assert os.umask(0o077) == 0o077
    finally:
        os.umask(before)
    found = os.stat(tmp_path / "s")
    assert stat.S_ISSOCK(found.st_mode) and stat.S_IMODE(found.st_mode) == mode
    sock.close()


def test_what_a_dead_broker_left_is_replaced(tmp_path: Path) -> None:
    path = str(tmp_path / "s")
    open_unix_socket(path, 0o600, 10).close()  # the file stays
    assert os.path.exists(path)
    sock = open_unix_socket(path, 0o600, 10)
    connected(path).close()
    sock.close()


def test_a_socket_that_is_listened_to_is_left_alone(tmp_path: Path) -> None:
    path = str(tmp_path / "s")
    sock = open_unix_socket(path, 0o600, 10)
    with pytest.raises(OSError, match="another process listens here"):
        open_unix_socket(path, 0o600, 10)
    connected(path).close()
    sock.close()


def test_a_busy_socket_is_left_alone(tmp_path: Path) -> None:
    path = str(tmp_path / "s")
    sock = open_unix_socket(path, 0o600, 1)
    waiting = [connected(path), connected(path)]
    with pytest.raises(OSError, match="another process listens here"):
        open_unix_socket(path, 0o600, 10)
    for each in (sock, *waiting):
        each.close()


def test_a_file_that_is_no_socket_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "s"
    path.write_text("precious")
    with pytest.raises(OSError, match="it is no socket"):
        open_unix_socket(str(path), 0o600, 10)
    assert path.read_text() == "precious"


def test_a_path_may_be_longer_than_an_address(tmp_path: Path) -> None:
    (tmp_path / ("x" * 108)).mkdir()
    path = str(tmp_path / ("x" * 108) / "s")
    with open_unix_socket(path, 0o600, 10), socket.socket(socket.AF_UNIX) as client, Address(path) as address:
        client.connect(address)
        with pytest.raises(OSError, match="another process listens here"):
            open_unix_socket(path, 0o600, 10)
    open_unix_socket(path, 0o600, 10).close()  # what was left is replaced


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        open_unix_socket(str(tmp_path / "none" / "s"), 0o600, 10)


def test_removing_twice_is_fine(tmp_path: Path) -> None:
    path = str(tmp_path / "s")
    open_unix_socket(path, 0o600, 10).close()
    remove(path)
    remove(path)
    assert not os.path.exists(path)
