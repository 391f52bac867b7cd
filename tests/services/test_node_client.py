"""The contract of rumq.v1 by a client in another language: gRPC's own for Node.js, from the same proto files."""

import json
from pathlib import Path

import pytest

from tests.services.conftest import GrpcBroker, grpc_broker
from tests.services.node_client import node

PROTO = Path(__file__).parents[2] / "rumq/services/proto"


@pytest.mark.node
@pytest.mark.usefixtures("node_packages")
def test_the_story_of_a_program_in_node(server: GrpcBroker) -> None:
    ended = node("story.mjs", server.target, str(PROTO))
    assert ended.returncode == 0, ended.stderr
    seen = json.loads(ended.stdout)
    assert seen["ids"] == [1, 2, 3]
    assert seen["stream"] == {"ids": [1, 0, 2, 4], "refusals": [[1, "TOPIC_INVALID"]]}
    assert seen["fetched"] == "2"
    assert seen["past"]["records"] == [
        ["node/a", 2, "2"], ["node/a", 3, "3"], ["node/b", 1, "1"], ["node/b", 2, "2"], ["node/a", 4, "4"],
    ]  # fmt: skip
    assert seen["rest"]["records"] == [["node/b", 3, "live"]]
    assert seen["live"]["records"] == [["node/live", 1, "1"], ["node/live", 2, "2"]]
    assert seen["topics"] == [["node/a", 4], ["node/b", 3], ["node/live", 2]]
    role = ["PERMISSION_DENIED", "ROLE_MISSING"]
    assert seen["faults"] == [
        ["INVALID_ARGUMENT", "ID_UNKNOWN"], ["INVALID_ARGUMENT", "TOPIC_INVALID"], role, role, role,
    ]  # fmt: skip


@pytest.mark.node
@pytest.mark.usefixtures("node_packages")
def test_the_story_of_a_program_with_queues_in_node(tmp_path: Path) -> None:
    with grpc_broker(tmp_path / "data", "--set", "queues.enabled=true") as broker:
        ended = node("queues.mjs", broker.target, str(PROTO))
    assert ended.returncode == 0, ended.stderr
    seen = json.loads(ended.stdout)
    assert seen["queue"] == ["node", 600, 10_000, "WHEN_FULL_REFUSE"]
    assert seen["channel"] == ["node-all", "node", "", "$share/node-all/$queues/node/#"]
    assert seen["ids"] == ["1@__none__", "1@t", ""]
    assert seen["stream"] == ["2@__none__", "2@t"]
    consumed = seen["consumed"]["messages"]
    assert sorted(consumed[:4]) == [["1@__none__", "1", 1], ["1@t", "2", 1], ["2@__none__", "3", 1], ["2@t", "4", 1]]
    assert seen["consumed"]["answered"] == [2, ["99@t"]]
    tries = {each[0]: each[2] for each in seen["subscribed"]["messages"]}
    assert tries == {each[0]: 2 if each[0] == consumed[1][0] else 1 for each in consumed[1:4]}
    assert seen["subscribed"]["answered"] == 3
    assert seen["automatic"] == [["3@__none__", "5", 1]]
    assert seen["peeked"] == [["1@t", "2", 0], ["2@t", "4", 0]]
    assert seen["topics"] == ["__none__", "t"]
    assert seen["rebuilt"] == ["node", ["queues"], [], False]
    assert seen["listed"] == [["node", "node.dead"], ["node-all"], ["node-all"], "node-all"]
    assert seen["purged"] == ["number", "number", 0]
    assert seen["heartbeat"] == [True, True, True]
    assert seen["faults"] == [
        ["NOT_FOUND", "QUEUE_UNKNOWN"], ["NOT_FOUND", "QUEUE_UNKNOWN"], ["INVALID_ARGUMENT", "ARGUMENT_INVALID"],
        ["INVALID_ARGUMENT", "ARGUMENT_INVALID"],
    ]  # fmt: skip
