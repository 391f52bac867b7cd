"""From `pip install` of the wheel to the first message, in a new environment whose PATH has no compiler.

Dependencies come from the index that pip is set up for; here that is a mirror on the local network. Building the wheel
is not counted: who installs it has none."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.peers.peer import free_port

NEEDED = ("env", "cat", "ls", "sh", "uname")  # of the system; no compiler among them
SECONDS_MAX = 300.0


def install(wheel: Path | None = None) -> dict[str, float]:
    """wheel: None: one is built from this clone"""
    with tempfile.TemporaryDirectory(prefix="rumq-bench-") as name:
        folder = Path(name)
        built = wheel or build(folder)
        tools = folder / "tools"
        tools.mkdir()
        for tool in NEEDED:
            (tools / tool).symlink_to(str(shutil.which(tool)))
        run(sys.executable, "-m", "venv", str(folder / "venv"))
        home = folder / "venv/bin"
        environment = {**os.environ, "PATH": f"{home}:{tools}"}
        if any(shutil.which(each, path=environment["PATH"]) for each in ("gcc", "cc", "clang")):
            raise RuntimeError("there is a compiler")
        started = time.monotonic()
        run(str(home / "pip"), "install", "--no-cache-dir", "--quiet", str(built), env=environment)
        installed = time.monotonic()
        first_message(home, folder, environment)
        ended = time.monotonic()
        said = run(str(home / "rumqd"), "--version", env=environment)
        if "kernels: compiled" not in said:
            raise RuntimeError(said)
    return {
        "pip install, s": installed - started,
        "first start to first message, s": ended - installed,
        "together, s": ended - started,
    }


def build(folder: Path) -> Path:
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), os.getcwd())
    (wheel,) = folder.glob("rumq-*.whl")
    return wheel


def first_message(home: Path, folder: Path, environment: dict[str, str]) -> None:
    """Start the broker, subscribe, publish; return when it has come."""
    port = str(free_port())
    broker = subprocess.Popen(
        [home / "rumqd", "run", "--port", port, "--data", folder / "data"],
        stderr=subprocess.PIPE, env=environment,
    )  # fmt: skip
    try:
        assert broker.stderr is not None
        for line in broker.stderr:
            if b"broker.ready" in line:
                break
        run(str(home / "rumqd"), "pub", "first", "-m", "hello", "-q", "1", "--port", port, env=environment)
        got = run(
            str(home / "rumqd"),
            "sub",
            "first",
            "--from",
            "earliest",
            "--count",
            "1",
            "--port",
            port,
            env=environment,
        )
        if got.strip() != "hello":
            raise RuntimeError(f"not the message: {got!r}")
    finally:
        broker.terminate()
        broker.communicate(timeout=SECONDS_MAX)


def run(*command: str, env: dict[str, str] | None = None) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_MAX, env=env, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command[:4])}: {done.stderr[-500:]}")
    return done.stdout
