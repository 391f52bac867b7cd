"""What the client of an admin socket makes of the other side: a line, a silence, an end."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio
import trio.testing

from rumq.admin.socket.admin_client import ask_socket, socket_name
from rumq.unix_address import Address


@pytest.fixture
def listening(tmp_path: Path) -> Iterator[tuple[str, socket.socket]]:
    """A data directory too deep for an address, and a socket in it."""
    deep = tmp_path / ("d" * 100) / ("e" * 100)
    deep.mkdir(parents=True)
    with socket.socket(socket.AF_UNIX) as sock:
        with Address(f"{deep}/ask.sock") as address:
            sock.bind(address)
        sock.listen(5)
        yield str(deep), sock


def answer(listening: socket.socket, reply: bytes) -> bytes:
    taken, _ = listening.accept()
    with taken:
        question = taken.recv(100)
        taken.sendall(reply)
    return question


async def asked(directory: str, listening: socket.socket, reply: bytes) -> tuple[bytes, bytes]:
    questions = []

    async def other_side() -> None:
        questions.append(await trio.to_thread.run_sync(answer, listening, reply))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(other_side)
        found = await ask_socket(directory, "ask.sock", b"{}\n")
    return questions[0], found


def test_a_line_for_a_line(listening: tuple[str, socket.socket]) -> None:
    before = len(os.listdir("/proc/self/fd"))
    assert trio.run(asked, *listening, b'{"yes": 1}\n') == (b"{}\n", b'{"yes": 1}\n')
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize("reply", [b"", b'{"ye'])
def test_a_connection_that_ends_before_the_line_does_is_no_answer(
    listening: tuple[str, socket.socket], reply: bytes
) -> None:
    with pytest.RaisesGroup(pytest.RaisesExc(ConnectionResetError, match="closed the connection")):
        trio.run(asked, *listening, reply)


def test_silence_ends_with_its_seconds(listening: tuple[str, socket.socket]) -> None:
    directory, _ = listening

    async def ask() -> None:
        with pytest.raises(TimeoutError, match="no answer within 10 s"):
            await ask_socket(directory, "ask.sock", b"{}\n")

    trio.run(ask, clock=trio.testing.MockClock(autojump_threshold=0.01))


def test_nobody_there_is_told_with_its_errno(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        trio.run(ask_socket, str(tmp_path), "ask.sock", b"{}\n")


def test_names_of_sockets() -> None:
    assert [socket_name(shard) for shard in (0, 1, 12)] == ["ask.sock", "ask-1.sock", "ask-12.sock"]
