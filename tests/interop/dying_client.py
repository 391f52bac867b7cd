"""A client with a will, as a process of its own that is killed.

python -m tests.interop.dying_client KIND HOST PORT TOPIC says "connected" once it is, then waits for its end.
`Killed` is how a test runs it."""

import asyncio
import subprocess
import sys
from types import TracebackType
from typing import Self

from tests.broker_process import Address


class Killed:
    """A `with` block in which the client is connected; it is killed at the end of it."""

    def __init__(self, kind: str, at: Address, topic: str) -> None:
        command = [sys.executable, "-m", "tests.interop.dying_client", kind, at.host, str(at.port), topic]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)

    def __enter__(self) -> Self:
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == b"connected\n"
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.process.kill()
        self.process.communicate()


async def with_aiomqtt(at: Address, topic: str) -> None:
    import aiomqtt

    async with aiomqtt.Client(at.host, at.port, will=aiomqtt.Will(topic, b"gone", 1)):
        await forever()


async def with_amqtt(at: Address, topic: str) -> None:
    from amqtt.client import MQTTClient

    will = {"topic": topic, "message": "gone", "qos": 1, "retain": False}
    client = MQTTClient(config={"auto_reconnect": False, "will": will})
    await client.connect(f"mqtt://{at.host}:{at.port}/")
    await forever()


async def forever() -> None:
    print("connected", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    clients = {"aiomqtt": with_aiomqtt, "amqtt": with_amqtt}
    asyncio.run(clients[sys.argv[1]](Address(sys.argv[2], int(sys.argv[3])), sys.argv[4]))
