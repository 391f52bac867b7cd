"""amqtt's broker in a process that prints its port: `python -m tests.client.amqtt_broker`. Ends with its stdin."""

import asyncio
import sys

from amqtt.broker import Broker

CONFIG = {
    "listeners": {"default": {"type": "tcp", "bind": "127.0.0.1:0"}},
    "plugins": {"amqtt.plugins.authentication.AnonymousAuthPlugin": {"allow_anonymous": True}},
}


async def main() -> None:
    broker = Broker(CONFIG)
    await broker.start()
    [server] = broker._servers.values()
    print(server.instance.sockets[0].getsockname()[1], flush=True)
    await asyncio.to_thread(sys.stdin.read)
    await broker.shutdown()


if __name__ == "__main__":
    asyncio.run(main())
