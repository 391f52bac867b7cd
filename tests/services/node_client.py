"""Programs of Node.js with packages of npm. Skips with the reason where these cannot be installed."""

import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent / "node"
NO_NETWORK = ("ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ETIMEDOUT", "ENETUNREACH", "ENOTCACHED")


def install(folder: Path = HERE) -> None:
    """folder: has a package-lock.json"""
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("Node.js and npm are not installed")
    lock, done = folder / "package-lock.json", folder / "node_modules" / ".package-lock.json"
    if done.exists() and done.stat().st_mtime >= lock.stat().st_mtime:
        return
    command = ["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"]
    try:
        ended = subprocess.run(command, cwd=folder, check=False, timeout=250, capture_output=True, text=True)
    except subprocess.TimeoutExpired:
        pytest.skip(f"npm reaches no registry in time, so {folder.name}'s packages cannot be installed")
    if ended.returncode and any(name in ended.stderr for name in NO_NETWORK):
        pytest.skip(f"npm reaches no registry, so {folder.name}'s packages cannot be installed")
    assert ended.returncode == 0, ended.stderr


def in_node_modules(program: str, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    path = str(HERE / "node_modules/.bin" / program)
    return subprocess.run([path, *arguments], cwd=cwd, check=False, timeout=120, capture_output=True, text=True)


def node(
    script: str, *arguments: str, folder: Path = HERE, seconds_max: float = 120
) -> subprocess.CompletedProcess[str]:
    command = ["node", script, *arguments]
    return subprocess.run(command, cwd=folder, check=False, timeout=seconds_max, capture_output=True, text=True)
