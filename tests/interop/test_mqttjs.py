"""MQTT.js, run by Node: the story is in story.mjs."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
pytestmark = [
    pytest.mark.node,
    pytest.mark.skipif(
        shutil.which("node") is None or shutil.which("npm") is None,
        reason="Node.js and npm are not installed",
    ),
]


@pytest.fixture(scope="module")
def installed() -> None:
    if not (HERE / "node_modules" / "mqtt").is_dir():
        command = ["npm", "install", "--no-audit", "--no-fund", "--no-save", "--no-package-lock"]
        subprocess.run(command, cwd=HERE, check=True, timeout=110, capture_output=True)


@pytest.mark.parametrize("version", ["4", "5"])
def test_the_story(installed: None, port: int, topic: str, version: str) -> None:
    command = ["node", str(HERE / "story.mjs"), str(port), topic, version]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    numbers = [str(n) for n in range(20)]
    assert seen["qos"] == {"0": numbers, "1": numbers, "2": numbers}
    assert seen["away"] == numbers[:10]
    assert seen["will"] == ["gone"]
    assert seen["replay"] == [*numbers[:10], "live"]
