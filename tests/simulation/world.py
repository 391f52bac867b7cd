"""A broker of some shards and clients by hand: for tests that need one thing to happen, and not another."""

from random import Random
from typing import Any

from rumq.net.client_placement import home_of
from tests.simulation.client import Client
from tests.simulation.history import History, Message
from tests.simulation.machine import Build, Machine

CALM = Build(2, 2, "disk", 0.0, 1 << 20, 1 << 18, 1 << 20)


class World:
    def __init__(self, build: Build = CALM) -> None:
        self.machine = Machine(build, Random(0), None)
        self.history = History()
        self.machine.settle()
        self._connections = 0

    def client(
        self,
        home: int = 0,
        *,
        clean: bool = True,
        window: int = 0,
        lazy: bool = False,
        aliases_max: int = 0,
        has_few_ids: bool = False,
    ) -> Client:
        """One that lives in a shard, not connected yet."""
        count = self.machine.build.shards
        some = next(n for n in range(self._connections * 100, 1 << 30) if home_of(f"c{n}", count) == home)
        self._connections += 1
        return Client(
            f"c{some}", 5, self.history, self.machine.tell, clean=clean, lazy=lazy, window=window,
            aliases_max=aliases_max, has_few_ids=has_few_ids,
        )  # fmt: skip

    def joined(self, home: int = 0, **about: Any) -> Client:
        client = self.client(home, **about)
        self.connect(client)
        self.machine.settle()
        assert client.is_up
        return client

    def joined_now(self, home: int = 0, **about: Any) -> Client:
        """As `joined`, and no shard that is dead is started for it."""
        client = self.client(home, **about)
        self.connect(client)
        self.machine.run(200)
        assert client.is_up
        return client

    def connect(self, client: Client, will: Message | None = None) -> None:
        """To the shard that it lives in."""
        ours, theirs = self.machine.network.pair(client.client_id, "accepted")
        self._connections += 1
        client.connect(ours, self._connections, clean_start=client.clean, will=will, delay=0.0)
        shard = self.machine.shards[home_of(client.client_id, self.machine.build.shards)]
        assert shard is not None
        shard.accept(theirs, client.client_id)

    def had(self, client: Client) -> list[int]:
        """The numbers of the messages that it was given."""
        assert client.session is not None
        return [seen.message for seen in client.session.deliveries]
