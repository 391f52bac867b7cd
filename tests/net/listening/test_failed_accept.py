"""A connection that cannot be served is closed, and nothing else: its descriptor may be another's a moment later."""

import gc
import os
import socket
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from rumq.net.listening.listener import Acceptor, open_sockets


class Setup:
    """One that fails, with the object or the descriptor of the connection still in its hands."""

    def __init__(self, *, is_bare: bool) -> None:
        self.is_bare = is_bare
        self.pump: Any = SimpleNamespace(
            pending_logins=[], connections=[], lingering=None, watch=lambda fd, call: None, unwatch=lambda fd: None
        )
        self.given: list[Any] = []

    def accept(self, sock: Any, peer: str, host: str | None) -> None:
        self.given.append(sock)
        raise RuntimeError("planted")

    def accept_bare(self, fd: int, peer: str) -> None:
        self.accept(fd, peer, None)


@pytest.mark.parametrize("is_bare", [True, False])
def test_a_connection_that_cannot_be_served_is_closed_once(is_bare: bool) -> None:
    setup, opened, told = Setup(is_bare=is_bare), list[int](), list[str]()

    def event(name: str, **fields: Any) -> None:
        told.append(name)
        opened.append(os.open(os.devnull, os.O_RDONLY))  # gets the lowest number that is free

    (listening,) = open_sockets("127.0.0.1", 0, 10)
    acceptor = Acceptor(listening, setup, connections_max=10, event=event, later=lambda *_: None)  # type: ignore[arg-type]
    client = socket.create_connection(acceptor.address)
    try:
        acceptor.accept()
        assert told == ["task.failed"] and sys.exc_info()[0] is None
        number = setup.given[0] if is_bare else opened[0]
        setup.given.clear()
        gc.collect()
        assert opened == [number]
        assert os.path.samestat(os.fstat(opened[0]), os.stat(os.devnull))
        assert client.recv(1) == b"", "it is closed"
    finally:
        client.close()
        acceptor.close()
        os.close(opened[0])
