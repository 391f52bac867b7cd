"""mosquitto, as Debian packages it, running for a block."""

import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.broker_process import ENVIRONMENT, SECONDS_MAX

MOSQUITTO = shutil.which("mosquitto", path="/usr/sbin:/usr/local/sbin:/usr/bin")


def why_not() -> str:
    """Why it cannot run here; empty where it can."""
    return "" if MOSQUITTO else "mosquitto is not installed here (Debian's package mosquitto)"


@contextmanager
def running(command: list[str], port: int) -> Iterator[None]:
    """Any command that serves a port, until the end of the block."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=ENVIRONMENT)
    try:
        until = time.monotonic() + SECONDS_MAX
        while True:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            assert process.poll() is None, command
            assert time.monotonic() < until, command
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(SECONDS_MAX)
