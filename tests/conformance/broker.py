"""Start the broker under test on a free port, wait until it accepts, and end it. Knows no MQTT."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from bench.peers.peer import free_port

Address = tuple[str, int]
START_S = 60.0


def accepts(address: Address) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(address, timeout=0.5):
        return True
    return False


def command(name: str, port: int, websocket_port: int, folder: Path) -> list[str]:
    """How to run broker `name` (rumqd or mosquitto) with everything it keeps in `folder`."""
    if name == "mosquitto":
        settings = folder / "mosquitto.conf"
        settings.write_text(
            f"allow_anonymous true\nmax_packet_size 8388608\nlistener {port} 127.0.0.1\n"
            f"listener {websocket_port} 127.0.0.1\nprotocol websockets\n"
        )
        return ["mosquitto", "-c", str(settings)]
    config = folder / "config.toml"
    config.write_text(
        f'[[listener]]\nport = {port}\n[[listener]]\nport = {websocket_port}\nprotocol = "websocket"\n'
        # The longest that the standard knows.
        "[mqtt]\ntopic_bytes_max = 65535\nclient_id_bytes_max = 65535\n"
    )
    return [sys.executable, "-m", "rumq", "run", "--config", str(config), "--data", str(folder / "data")]


@contextlib.contextmanager
def running(name: str, folder: Path) -> Iterator[tuple[Address, Address]]:
    """Run broker `name`; give its (MQTT, WebSocket) addresses. raises: RuntimeError with its last words."""
    host, port, websocket_port = "127.0.0.1", free_port(), free_port()
    words = folder / "broker.log"
    environment = os.environ | {"PATH": f"{os.environ.get('PATH', '')}:/usr/sbin"}
    with words.open("wb") as sink:
        process = subprocess.Popen(
            command(name, port, websocket_port, folder), stdout=sink, stderr=sink, env=environment
        )
    try:
        until = time.monotonic() + START_S
        while not accepts((host, port)):
            if process.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"{name} does not accept on {port}: {words.read_text()[-2000:]}")
            time.sleep(0.02)
        yield (host, port), (host, websocket_port)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(START_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
