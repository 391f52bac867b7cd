"""A router whose chunks may go to many groups at once: what each reader gets, in which form and in which order."""

from collections import defaultdict
from dataclasses import dataclass
from typing import Any, NamedTuple

from router import commands as c
from router.effects import Deliver, Scatter
from router.readers.reader import Reader
from router.readers.subscriber import Subscriber
from router.readers.subscription import DeliveryOptions
from tests.router.world import UNLIMITED, Client, World, form_of


@dataclass(frozen=True)
class May:
    """Receive these topics."""

    topics: frozenset[str]

    def may_receive(self, topic: str) -> bool:
        return topic in self.topics


class Row(NamedTuple):
    lsn: int
    form: DeliveryOptions


class Scattered(World):
    """got_by[client, reader's number or shared group]: its rows, in order; withheld_from: lsns that it may not have

    effects: how chunks left the router"""

    def __init__(self) -> None:
        super().__init__(hot=1 << 20)
        self.got_by: dict[tuple[str, object], list[Row]] = defaultdict(list)
        self.withheld_from: dict[tuple[str, object], list[int]] = defaultdict(list)
        self.effects: list[Deliver | Scatter] = []

    def another_shard(self, name: str, topic_filter: str) -> Client:
        client = self.client(name)
        del self.clients[client.subscriber]
        client.subscriber = Subscriber(name, None, is_shard=True)
        self.clients[client.subscriber] = client
        self.attach(client)
        self.do(c.SubscribeShard(client.subscriber, [topic_filter], [0]))
        return client

    def turn(self, visits: int = UNLIMITED) -> None:
        """A turn with so many visits for matching."""
        self.shard.begin_turn()
        self.shard.groups.visits_left = visits
        self.do(c.GoOn())

    def _carry_out(self, effect: Any, waiting: list[c.Command]) -> None:
        if isinstance(effect, Scatter):
            self.effects.append(effect)
            for part in effect.parts:
                rows = list(part[3][part[4] : part[5]])
                assert rows and rows == sorted(rows) and effect.first <= rows[0] and rows[-1] < effect.stop
                super()._carry_out(effect.as_delivery(part), waiting)
            return
        if isinstance(effect, Deliver):
            self.effects.append(effect)
        super()._carry_out(effect, waiting)

    def _offer(self, effect: Deliver, reader: Reader, waiting: list[c.Command]) -> None:
        client = reader.sink
        assert isinstance(client, Client)
        key = client.name, reader.number if reader.share is None else reader.share.key
        before, blocked, base = len(client.forms), len(waiting), effect.chunk.base_lsn
        super()._offer(effect, reader, waiting)
        stop = effect.stop
        if len(waiting) > blocked:
            (command,) = waiting[blocked:]
            assert isinstance(command, c.Blocked)
            stop = command.lsn - base
        lsns = [base + row for row in range(effect.first, stop) if form_of(effect, row)]
        self.got_by[key] += [Row(*each) for each in zip(lsns, client.forms[before:], strict=True)]
        if effect.denied is not None:
            self.withheld_from[key] += [
                base + row
                for row in range(effect.first, stop)
                if effect.denied[effect.places[row] if effect.places is not None else 0]
            ]
