"""Reload and shutdown concern the node that is asked; a token protects from a shutdown that was not meant."""

import signal

import pytest
import trio

from rumq.admin import requests as q
from rumq.cluster.admin.node_signals import NodeSignals
from tests.cluster.admin.world import run_at_once


class Node(NodeSignals):
    """sent: the signals"""

    def __init__(self) -> None:
        self.sent: list[signal.Signals] = []
        super().__init__(self.sent.append)


@run_at_once
async def test_the_signal_follows_the_answer() -> None:
    for act, number in (
        (lambda node: node.reload(), signal.SIGHUP),
        (lambda node: node.shutdown(q.Shutdown()), signal.SIGTERM),
        (lambda node: node.shutdown(q.Shutdown(graceful=False)), signal.SIGKILL),
    ):
        node = Node()
        act(node)
        assert node.sent == []
        await trio.sleep(1)
        assert node.sent == [number]


@run_at_once
async def test_a_token_is_good_once_and_for_its_time() -> None:
    node = Node()
    first, token = node.prepare(q.Prepare()), node.prepare(q.Prepare(seconds=10))
    for wrong in (first, token, ""):  # any try uses it up
        with pytest.raises(ValueError, match="not that of the last"):
            node.shutdown(q.Shutdown(token=wrong))
    node.shutdown(q.Shutdown(token=node.prepare(q.Prepare(seconds=10))))
    late = node.prepare(q.Prepare(seconds=10))
    await trio.sleep(11)
    with pytest.raises(ValueError, match="too old"):
        node.shutdown(q.Shutdown(token=late))
    assert node.sent == [signal.SIGTERM]
