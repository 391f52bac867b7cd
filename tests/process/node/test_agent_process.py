"""The agent's process is ready once it shows its first view."""

import os
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from rumq.cluster.control.agent_messages import SOCKET_NAME, Here, Seen
from rumq.cluster.control.records import Versioned, View
from rumq.process.node.agent_process import announce
from rumq.supervision.supervisor import IS_READY
from tests.cluster.node.world import Agent, node_record, record


def test_it_is_ready_when_its_cluster_is_known_and_not_before(tmp_path: Path) -> None:
    (tmp_path / "_cluster").mkdir()
    ready, told = os.pipe()
    node: Any = SimpleNamespace(place=SimpleNamespace(data=str(tmp_path), ready=told))
    thread = threading.Thread(target=announce, args=(node,))
    thread.start()  # before there is an agent
    agent = Agent(tmp_path / SOCKET_NAME)
    while not agent.heard:
        agent.turn()
    assert isinstance(agent.heard[0], Here) and agent.heard[0].role == "operator"
    os.set_blocking(ready, False)
    agent.hang_up()  # it starts once more before it knows anything
    agent.heard.clear()
    while not agent.heard:
        agent.turn()
    view = View(
        cluster="c", node="n1#1", replicas=1, nodes=[node_record("n1#1")], shards=[Versioned(record("n1#1"), 1)],
        is_current=True,
    )  # fmt: skip
    try:
        early = os.read(ready, 1)
    except BlockingIOError:
        early = b""
    agent.say(Seen(view))
    thread.join(30)
    assert early == b"" and os.read(ready, 2) == IS_READY
    agent.close()
