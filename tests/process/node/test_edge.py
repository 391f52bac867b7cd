"""The edge as a process: from its start to its end by a signal."""

import multiprocessing
import os
import select
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from rumq.cluster.control.agent_messages import AgentMessage, Here, Seen
from rumq.net.frames import MessageReader, encoded
from rumq.net.sockets.fd_passing import FdPassing, make_shard_sockets
from rumq.process.listeners.listening_sockets import open_listening_sockets
from rumq.process.node.edge import EdgePlace, serve_edge
from rumq.settings.table import Settings
from rumq.supervision.supervisor import HAS_RELOADED, IS_READY
from tests.cluster.edge.world import HERE, World, connect_of

SECONDS_MAX = 60.0


class Process:
    """An edge in a process of its own; the test is its agent and the leader of shard 0."""

    def __init__(self, folder: Path) -> None:
        (folder / "_cluster").mkdir()
        self.agent = socket.socket(socket.AF_UNIX)
        self.agent.bind(str(folder / "_cluster/agent.sock"))
        self.agent.listen(5)
        self.agent.settimeout(SECONDS_MAX)
        defaults = Settings()
        settings = msgspec.structs.replace(
            defaults,
            listener=msgspec.structs.replace(defaults.listener, host="127.0.0.1", port=0),
            data=msgspec.structs.replace(defaults.data, dir=str(folder)),
        )
        self.doors = make_shard_sockets(3)
        sockets = open_listening_sockets(settings).sockets
        self.address: Any = sockets[0].sock.getsockname()
        self.ready, ready = os.pipe()
        place = EdgePlace(str(folder), self.doors, sockets, ready)
        fork = multiprocessing.get_context("fork")
        self.process = fork.Process(target=self._run, args=(settings, place))
        self.process.start()
        os.close(ready)

    @staticmethod
    def _run(settings: Settings, place: EdgePlace) -> None:
        os._exit(serve_edge(settings, place, lambda: settings))

    def told(self) -> bytes:
        assert select.select([self.ready], [], [], SECONDS_MAX)[0]
        return os.read(self.ready, 1)

    def end(self) -> None:
        if self.process.is_alive():
            self.process.kill()
        self.process.join()
        self.agent.close()
        os.close(self.ready)
        for door in self.doors:
            door.inside.close()
            door.outside.close()


@pytest.fixture
def process(tmp_path: Path) -> Iterator[Process]:
    made = Process(tmp_path)
    yield made
    made.end()


def test_it_meets_its_agent_passes_clients_on_and_ends_at_a_signal(process: Process) -> None:
    assert process.told() == IS_READY
    agent, _ = process.agent.accept()
    frames: MessageReader[AgentMessage] = MessageReader(AgentMessage)
    assert [message for message, _ in frames.feed(agent.recv(1 << 16))] == [Here("edge", -1, process.process.pid or 0)]
    world = World()
    agent.sendall(encoded(Seen(world.view({0: HERE, 1: HERE}))))
    world.end()
    with socket.create_connection(process.address) as client:
        client.sendall(connect_of(0))
        here = FdPassing(process.doors, 0, lambda seconds, call: None)
        taken: list[bytes] = []

        def take(sock: socket.socket, peer: str, data: bytes, listener: int) -> None:
            taken.append(data)
            sock.send(b"welcome")
            sock.close()

        here.takers["client"] = take
        while not taken:
            assert select.select([here.fd], [], [], SECONDS_MAX)[0]
            here.hear()
        assert taken == [connect_of(0)]
        client.settimeout(SECONDS_MAX)
        assert client.recv(9) == b"welcome"
    os.kill(process.process.pid or 0, signal.SIGHUP)
    assert process.told() == HAS_RELOADED
    with socket.create_connection(process.address) as waiting:
        os.kill(process.process.pid or 0, signal.SIGTERM)
        process.process.join(SECONDS_MAX)
        assert process.process.exitcode == 0
        waiting.settimeout(SECONDS_MAX)
        try:
            assert waiting.recv(1) == b""
        except ConnectionResetError:
            pass
    agent.close()
