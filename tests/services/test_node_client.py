"""The contract of rumq.v1 by a client in another language: gRPC's own for Node.js, from the same proto files."""

import json
from pathlib import Path

import pytest

from tests.services.conftest import GrpcBroker
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
