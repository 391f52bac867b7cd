"""A shard's store, router, sessions and journal without its turn: restarts are another one over the same files."""

from itertools import starmap
from typing import Any

from commitlog import OpenOptions, StoreLayout, StreamSpec, open_store
from commitlog.testing.simulated_files import SimulatedFiles
from router.effects import Effect
from router.shard import ShardRouter
from rumq.loop.scheduler import Lifecycle
from rumq.mqtt.topics import matches
from rumq.session.flow_control.limits import Limits
from rumq.session.journal.entries import KeptValue
from rumq.session.journal.recorder import JournalRecorder
from rumq.session.state.registry import Registry
from rumq.session.state.session import Session
from rumq.shards.recovery.fit_to_log import fit_to_partitions
from rumq.shards.recovery.journal_reader import replay
from rumq.shards.recovery.journal_writer import JournalWriter
from rumq.shards.recovery.restore import Restorer
from tests.commitlog.records import DEAD, NOW, numbers, write
from tests.shards.bus.world import Hand

STATE = StreamSpec("_state", (), 1, "disk", 1 << 20, 86_400)


class Run:
    """One run of the shard. carried_out: effects that the restart asked for; orders, kept: in force, as of
    `ReplayedState`"""

    def __init__(self, files: SimulatedFiles, seed: int = 0, state: StreamSpec = STATE) -> None:
        """state: the stream of the journal"""
        self.hand = Hand()
        self.hand.now_us = NOW
        self.lifecycle = Lifecycle()
        self.store = open_store(
            files,
            "data",
            StoreLayout([StreamSpec("main", ("#",))], matches, internal=state),
            OpenOptions(NOW, random=numbers(seed), direct_bytes_min=1 << 30),
            holder=DEAD,
        )
        assert self.store.internal is not None
        self.router = ShardRouter(self.store.partitions)
        self.recorder = JournalRecorder()
        self.registry = Registry(self.hand, lambda session, will: None, self.recorder, self.store.release_publishers)
        self.journal = JournalWriter(
            self.store.internal, self.store.partitions, self.recorder, self.router, self.registry.sessions.get,
            self.hand, self.lifecycle, lambda: [*self.orders.values(), *starmap(KeptValue, self.kept.items())],
        )  # fmt: skip
        self.carried_out: list[Effect] = []
        self.state = replay(self.store, self.store.internal, self.hand.tell)
        self.orders, self.kept = dict(self.state.orders), dict(self.state.kept)
        fit_to_partitions(self.state, self.journal.layout(), self.store.partitions)
        restorer = restorer_of(self)
        self.wants_publishers = restorer.restore(self.state, self.carried_out.append)

    def session(self, client_id: str, expiry_seconds: int = 3600) -> Session:
        """A session whose client is connected, as CONNECT makes it."""
        session, _ = self.registry.open(client_id, None, personal=False, clean_start=False)
        session.expiry_seconds = expiry_seconds
        self.recorder.connected(session)
        return session

    def flush(self) -> None:
        """The facts so far are on disk."""
        self.journal.flush(self.hand.now_us)
        self.write()

    def write(self) -> None:
        assert self.store.internal is not None
        write(self.store.internal)
        write(self.store.own[0])

    def find(self, client_id: str) -> Session | None:
        found = [session for session in self.registry.sessions.values() if session.client_id == client_id]
        return found[0] if found else None


def restorer_of(run: Any) -> Restorer:
    return Restorer(run.store, run.router, run.registry, run.journal, run.hand, run.lifecycle, Limits())
