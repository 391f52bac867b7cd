"""One of several shards starts: it waits for the others, and for what their logs have of its sessions."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from commitlog.testing.simulated_files import SimulatedFiles
from rumq.session.journal.replayed_state import ReplayedState
from rumq.shards.recovery.startup import Startup
from tests.shards.recovery.world import Run


class World:
    def __init__(self) -> None:
        run = Run(SimulatedFiles())
        run.session("pump")
        run.flush()
        self.peers: Any = SimpleNamespace(all_known=False, others={1: None, 2: None})
        self.begun: list[bool] = []
        self.restored: list[ReplayedState] = []
        self.found: Callable[[int, list[tuple[str, int]]], None] | None = None
        interest: Any = SimpleNamespace(begin=lambda wants_publishers: self.begun.append(wants_publishers))
        queries: Any = SimpleNamespace(find_tags=self._find_tags)
        restorer: Any = SimpleNamespace(journal=run.journal, restore=self._restore)
        self.leads = True
        self.startup = Startup(
            run.store, self.peers, interest, queries, restorer, lambda effect: None, lambda: self.leads
        )
        self.startup.read_journal(run.hand.tell)

    def _find_tags(self, from_lsns: list[int], done: Any) -> None:
        self.found = done

    def _restore(self, state: ReplayedState, carry_out: Any) -> bool:
        self.restored.append(state)
        return True


def test_a_leader_asks_other_shards_only_once_its_term_is_open() -> None:
    world = World()
    world.peers.all_known, world.leads = True, False
    assert not world.startup.advance() and world.found is None
    world.leads = True
    assert not world.startup.advance() and world.found is not None


def test_clients_come_once_all_shards_are_met_and_have_answered() -> None:
    world = World()
    assert not world.startup.advance() and world.found is None
    world.peers.all_known = True
    assert not world.startup.advance() and world.found is not None
    world.found(1, [])
    assert not world.startup.advance()
    world.found(2, [("pump", 7)])
    assert world.startup.advance() and world.begun == [True]
    (state,) = world.restored
    assert [session.qos2_open for session in state.sessions.values()] == [{7}]
