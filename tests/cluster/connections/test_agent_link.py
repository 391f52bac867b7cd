"""The link to the agent: made anew whenever it is lost; the last view holds meanwhile."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rumq.cluster.connections.agent_link import AgentLink, here_of
from rumq.cluster.control.agent_messages import AgentMessage, Here, OrderResult, Seen
from rumq.cluster.control.records import View
from rumq.net.frames import MessageReader, encoded
from rumq.unix_address import Address
from tests.net.site import Site

HERE = Here("edge", -1, 4711)


def view(node: str) -> View:
    return View(cluster="c1", node=node, replicas=1, nodes=[], shards=[], is_current=True)


class World:
    def __init__(self, folder: Path) -> None:
        self.path = str(folder / "agent.sock")
        self.site = Site()
        self.seen: list[View] = []
        self.heard: list[AgentMessage] = []
        self.told: list[tuple[str, dict[str, str]]] = []
        self.link = AgentLink(
            self.site.pump,
            self.path,
            HERE,
            later=self.site.later,
            seen=self.seen.append,
            heard=self.heard.append,
            tell=lambda name, **fields: self.told.append((name, fields)),
        )
        self.agent: socket.socket | None = None

    def begin(self) -> None:
        """The agent starts."""
        Path(self.path).unlink(missing_ok=True)
        self.agent = socket.socket(socket.AF_UNIX)
        self.agent.bind(self.path)
        self.agent.listen(5)
        self.agent.setblocking(False)

    def accept(self) -> socket.socket:
        def accepted() -> Any:
            assert self.agent is not None
            self.site.now += 0.1
            try:
                return self.agent.accept()[0]
            except BlockingIOError:
                return None

        sock: socket.socket = self.site.until(accepted)
        sock.setblocking(False)
        return sock

    def message(self, sock: socket.socket) -> AgentMessage:
        frames: MessageReader[AgentMessage] = MessageReader(AgentMessage)

        def read() -> list[AgentMessage]:
            try:
                return [message for message, _ in frames.feed(sock.recv(1 << 16))]
            except BlockingIOError:
                return []

        found: AgentMessage = self.site.until(read)[0]
        return found


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.link.close()
    made.site.end()
    if made.agent is not None:
        made.agent.close()


def test_a_process_says_who_it_is_and_is_told_each_view(world: World) -> None:
    world.begin()
    world.link.open()
    with world.accept() as agent:
        assert world.message(agent) == HERE
        data = encoded(Seen(view("a"))) + encoded(Seen(view("b"))) + encoded(OrderResult(3))
        for byte in data:
            agent.send(bytes([byte]))
            world.site.turn()
        assert world.seen == [view("a"), view("b")] and world.heard == [OrderResult(3)]
        assert world.link.view == view("b")
        assert world.link.say(OrderResult(4)) and world.message(agent) == OrderResult(4)


def test_an_agent_that_is_not_there_yet_or_restarts_is_met_again(world: World) -> None:
    world.link.open()
    assert not world.link.say(HERE)
    world.begin()
    with world.accept() as agent:
        world.message(agent)
        agent.send(encoded(Seen(view("a"))))
        world.site.until(lambda: world.seen)
    assert world.agent is not None
    world.agent.close()
    world.site.until(lambda: not world.site.pump.connections)
    assert world.link.view == view("a") and not world.link.say(HERE)
    world.begin()
    with world.accept() as agent:
        assert world.message(agent) == HERE


def test_a_link_that_is_closed_stays_closed(world: World) -> None:
    world.begin()
    world.link.open()
    with world.accept() as agent:
        world.message(agent)
        world.link.close()
        world.site.turn(3)
        assert agent.recv(1) == b""
    world.site.now += 5.0
    world.site.turn(3)
    assert not world.site.pump.connections


def test_who_this_process_is() -> None:
    assert here_of("shard", 3) == Here("shard", 3, os.getpid())


def test_a_data_directory_may_be_deeper_than_a_sockets_address(tmp_path: Path) -> None:
    """unix(7): 107 bytes. The path itself is refused with "AF_UNIX path too long", which would be tried for ever."""
    deep = tmp_path / ("d" * 100) / ("e" * 100)
    deep.mkdir(parents=True)
    made = World(deep)
    with pytest.raises(OSError, match="too long"), socket.socket(socket.AF_UNIX) as probe:
        probe.connect(made.path)
    made.agent = socket.socket(socket.AF_UNIX)
    with Address(made.path) as address:
        made.agent.bind(address)
    made.agent.listen(5)
    made.agent.setblocking(False)
    made.link.open()
    with made.accept() as agent:
        assert made.message(agent) == HERE
    made.link.close()
    made.site.end()
    made.agent.close()


def test_an_agent_that_is_not_there_yet_is_no_news_and_a_fault_that_stays_is_told_once(world: World) -> None:
    """Otherwise a process would try for ever, and nobody would know why its node does nothing."""
    world.link.open()
    assert world.told == [] and not world.site.pump.connections
    Path(world.path).symlink_to(world.path)  # to itself: ELOOP
    for _ in range(3):
        world.site.now += 10
        world.site.turn(1)
    assert [name for name, _ in world.told] == ["cluster.agent_unreachable"]
    assert world.told[0][1]["path"] == world.path and "refused" not in world.told[0][1]["why"]


def test_an_agent_that_sends_what_is_no_message_is_left_and_met_again(world: World) -> None:
    world.begin()
    world.link.open()
    with world.accept() as agent:
        world.message(agent)
        agent.send(b"HTTP/1.1 400 no\r\n\r\n")
        with world.accept() as again:
            assert world.message(again) == HERE
