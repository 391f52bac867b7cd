"""Programs of Node.js with Kafka clients of npm. Skips with the reason where these cannot be installed."""

import json
from pathlib import Path
from typing import Any

from tests.services.node_client import install, node

HERE = Path(__file__).parent / "node"


def in_node(script: str, *arguments: str) -> Any:
    """The JSON that a script printed last."""
    return json.loads(lines_of_node(script, *arguments)[-1])


def lines_of_node(script: str, *arguments: str, seconds_max: float = 120) -> list[str]:
    install(HERE)
    done = node(script, *arguments, folder=HERE, seconds_max=seconds_max)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()
