"""Programs of node/: gRPC's own client for Node.js, and buf. Skips with the reason where they cannot be installed."""

import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent / "node"
NO_NETWORK = ("ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ETIMEDOUT", "ENETUNREACH", "ENOTCACHED")


def install() -> None:
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("Node.js and npm are not installed")
    lock, done = HERE / "package-lock.json", HERE / "node_modules" / ".package-lock.json"
    if done.exists() and done.stat().st_mtime >= lock.stat().st_mtime:
        return
    command = ["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"]
    try:
        ended = subprocess.run(command, cwd=HERE, check=False, timeout=250, capture_output=True, text=True)
    except subprocess.TimeoutExpired:
        pytest.skip("npm reaches no registry in time, so @grpc/grpc-js and buf cannot be installed")
    if ended.returncode and any(name in ended.stderr for name in NO_NETWORK):
        pytest.skip("npm reaches no registry, so @grpc/grpc-js and buf cannot be installed")
    assert ended.returncode == 0, ended.stderr


def in_node_modules(program: str, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    path = str(HERE / "node_modules/.bin" / program)
    return subprocess.run([path, *arguments], cwd=cwd, check=False, timeout=120, capture_output=True, text=True)


def node(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = ["node", script, *arguments]
    return subprocess.run(command, cwd=HERE, check=False, timeout=120, capture_output=True, text=True)
