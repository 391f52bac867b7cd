"""The agent as a process, on a real etcd: it announces its node, serves its socket, and leaves at SIGTERM."""

import json
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from rumq.cluster.agent.agent_process import REFUSED, STOPPED
from rumq.cluster.connections.agent_socket import AgentSocket
from rumq.cluster.control.agent_messages import SOCKET_NAME, AgentMessage, AgentStatus, AskStatus, Seen
from rumq.cluster.control.etcd import Etcd
from rumq.cluster.control.etcd_control import EtcdControl
from rumq.cluster.control.records import NodeRecord, View
from tests.cluster.etcd_processes import Etcd as EtcdCluster
from tests.cluster.etcd_processes import needs_etcd, running_etcd

SECONDS_MAX = 60.0
PROGRAM = """
import json, sys
from rumq.cluster.agent.agent_process import serve_agent
from rumq.cluster.agent.agent_settings import AgentSettings
from rumq.events.output import setup_events
setup_events("json")
sys.exit(serve_agent(AgentSettings(**json.loads(sys.argv[1])), ready=lambda: print("ready", flush=True)))
"""


@pytest.fixture(scope="module")
def etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdCluster]:
    with running_etcd(tmp_path_factory.mktemp("etcd")) as cluster:
        yield cluster


def agent(data: Path, name: str, cluster: str, endpoints: list[str], **more: object) -> "subprocess.Popen[str]":
    settings = {
        "data": str(data), "cluster": cluster, "node": name, "shards": 3, "replicas": 3, "host": name, "port": 7883,
        "mqtt": [], "version": "1", "endpoints": endpoints, **more,
    }  # fmt: skip
    command = [sys.executable, "-c", PROGRAM, json.dumps(settings)]

    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def messages(link: AgentSocket) -> Iterator[AgentMessage]:
    deadline = time.monotonic() + SECONDS_MAX
    while time.monotonic() < deadline:
        yield from link.receive()
        select.select([link], [], [], 1.0)
    raise AssertionError("what was waited for did not come")


def formed(link: AgentSocket) -> View:
    return next(
        message.view
        for message in messages(link)
        if isinstance(message, Seen) and all(each.revision for each in message.view.shards)
    )


def nodes_in(endpoints: list[str], cluster: str) -> list[NodeRecord]:
    async def main() -> list[NodeRecord]:
        plane = EtcdControl(Etcd(endpoints), "/rumq", cluster)
        try:
            return await plane.nodes()
        finally:
            await plane.close()

    return trio.run(main)


@needs_etcd
def test_three_agents_form_a_cluster_and_leave_at_sigterm(tmp_path: Path, etcd: EtcdCluster) -> None:
    names = ["n1", "n2", "n3"]
    agents = [agent(tmp_path / name, name, "three", etcd.endpoints) for name in names]
    try:
        for each in agents:
            assert each.stdout is not None and each.stdout.readline() == "ready\n"
        links = [AgentSocket(str(tmp_path / name / SOCKET_NAME), "operator") for name in names]
        views = [formed(link) for link in links]
        assert views[0].shards == views[1].shards == views[2].shards
        links[0].send(AskStatus(1))
        status = next(message for message in messages(links[0]) if isinstance(message, AgentStatus))
        assert status.health.kind == "etcd" and status.requests < 50
        assert [node.name for node in nodes_in(etcd.endpoints, "three")] == names
        for each in agents:
            each.send_signal(signal.SIGTERM)
        assert [each.wait(SECONDS_MAX) for each in agents] == [STOPPED] * 3
        assert nodes_in(etcd.endpoints, "three") == []  # not only when their leases end
    finally:
        for each in agents:
            each.kill()
            each.communicate()


def refusal(each: "subprocess.Popen[str]") -> str:
    _, events = each.communicate(timeout=SECONDS_MAX)
    assert each.returncode == REFUSED
    [told] = [json.loads(line) for line in events.splitlines() if "cluster.refused" in line]
    return str(told["why"])


@needs_etcd
def test_a_directory_of_another_cluster_is_told_in_a_sentence(tmp_path: Path, etcd: EtcdCluster) -> None:
    first = agent(tmp_path, "n1", "one", etcd.endpoints)
    assert first.stdout is not None and first.stdout.readline() == "ready\n"
    first.send_signal(signal.SIGTERM)
    first.communicate(timeout=SECONDS_MAX)
    assert "set cluster.name to 'one'" in refusal(agent(tmp_path, "n1", "two", etcd.endpoints))


def test_a_node_alone_needs_no_etcd(tmp_path: Path) -> None:
    each = agent(tmp_path, "n1", "demo", [], replicas=1)
    try:
        assert each.stdout is not None and each.stdout.readline() == "ready\n"
        view = formed(AgentSocket(str(tmp_path / SOCKET_NAME), "edge"))
        assert [shard.record.replicas for shard in view.shards] == [[view.node]] * 3
    finally:
        each.send_signal(signal.SIGTERM)
        each.communicate(timeout=SECONDS_MAX)
    assert each.returncode == STOPPED
