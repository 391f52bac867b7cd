"""A broker with queues and its gateway, which can be killed and started again where it was."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import trio

from rumq.client import Client, connect
from tests.broker_process import Rumqd
from tests.gateway.conftest import Gateway, started

WAIT_SECONDS = 60.0


class QueueBroker:
    def __init__(self, path: Path) -> None:
        self.gateway: Gateway = started(path, "queues.enabled=true")
        self.broker: Rumqd = self.gateway.broker
        self.url = f"http://127.0.0.1:{self.gateway.port}"
        self.token = self.gateway.secrets["ops"]

    def client(self, **options: Any) -> AbstractAsyncContextManager[Client]:
        """Over MQTT, which knows the gateway besides."""
        return connect(*self.broker.address, gateway=self.url, token=self.token, **options)

    def kill_and_start(self) -> None:
        """kill -9, and again with the same ports and data."""
        port = self.broker.address.port
        self.broker.kill()
        self.broker.flags += ("--port", str(port), "--set", f"gateway.port={self.gateway.port}")
        self.broker.start()

    def end(self) -> None:
        self.broker.end()


async def until(is_so: Callable[[], bool]) -> None:
    with trio.fail_after(WAIT_SECONDS):
        while not is_so():
            await trio.sleep(0.02)
