"""MQTT.js, run by Node: the story is in story.mjs."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.broker_process import Address
from tests.interop.conftest import BROKER

HERE = Path(__file__).parent
NUMBERS = [str(n) for n in range(20)]
pytestmark = [
    pytest.mark.node,
    pytest.mark.skipif(
        shutil.which("node") is None or shutil.which("npm") is None,
        reason="Node.js and npm are not installed",
    ),
]


def told(broker: Address, topic: str, version: str) -> dict[str, Any]:
    replay = "replay" if BROKER == "rumqd" else "plain"
    command = ["node", str(HERE / "story.mjs"), broker.host, str(broker.port), topic, version, replay]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert isinstance(seen, dict)
    return seen


@pytest.mark.parametrize("version", ["4", "5"])
def test_the_story(installed: None, broker: Address, topic: str, version: str) -> None:
    seen = told(broker, topic, version)
    assert seen["qos"] == {"0": NUMBERS, "1": NUMBERS, "2": NUMBERS}
    assert seen["away"] == NUMBERS[:10]
    assert seen["will"] == ["gone"]
    assert seen["retained"] == [["on", True]]
    if version == "5":
        assert seen["topics"] == ["/5/0", "/5/1"] * 3
        assert seen["numbered"] == [300] * 6
        assert seen["properties"] == {
            "userProperties": {"a": ["1", "2"]},
            "responseTopic": "answers/here",
            "contentType": "text/plain",
            "correlationData": [0, 255],
        }
        assert 990 < seen["expiry"] <= 1000
    if BROKER == "rumqd":
        assert seen["replay"] == [*NUMBERS[:10], "live"]
        refusal = "Topic Filter invalid" if version == "5" else "Unspecified error"  # its words for 0x8F and 0x80
        assert seen["refused"] == f"Subscribe error: {refusal}"
    if BROKER == "rumqd" and version == "5":
        assert seen["aliases"] == 6, "the broker uses the aliases that it may"
        assert [payload for payload, _ in seen["places"]] == ["8", "9", "live"]
        assert [where["rumq-offset"] for _, where in seen["places"]] == ["8", "9", "10"]
        assert all(
            set(where) == {"rumq-offset", "rumq-lsn", "rumq-partition", "rumq-time"} for _, where in seen["places"]
        )
