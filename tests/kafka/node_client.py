"""Programs of Node.js with Kafka clients of npm. Skips with the reason where these cannot be installed."""

import json
from pathlib import Path
from typing import Any

from tests.services.node_client import install, node

HERE = Path(__file__).parent / "node"


def in_node(script: str, *arguments: str) -> Any:
    """What a script printed."""
    install(HERE)
    done = node(script, *arguments, folder=HERE)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])
