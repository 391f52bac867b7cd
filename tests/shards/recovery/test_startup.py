"""One of several shards starts: it waits for the others, and for what their logs have of its sessions; for a while."""

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

from commitlog.testing.simulated_files import SimulatedFiles
from rumq.session.journal.replayed_state import ReplayedState
from rumq.shards.bus.messages import Tags
from rumq.shards.recovery.startup import Startup
from tests.shards.recovery.world import Run


class Late:
    """In the place of `LateShards`. begun: the shards that had not answered"""

    def __init__(self) -> None:
        self.is_given_up, self.has_positions = False, True
        self.placed = 0
        self.begun: list[set[int]] = []
        self.found: list[tuple[int, list[tuple[str, int]]]] = []
        self.searched_ends: list[tuple[int, dict[int, int]]] = []
        self.searched_before: list[list[int]] = []

    def are_given_up(self) -> bool:
        return self.is_given_up

    def can_begin(self, state: ReplayedState, layout: tuple[str, ...]) -> bool:
        return self.has_positions

    def place(self, state: ReplayedState, layout: tuple[str, ...], restorer: Any) -> None:
        self.placed += 1

    def searched(self, state: ReplayedState) -> None:
        assert not self.searched_before, "once"
        self.searched_before.append(list(state.tags_from))

    def searched_to(self, shard: int, ends: Mapping[int, int]) -> None:
        self.searched_ends.append((shard, dict(ends)))

    def begin(self, state: ReplayedState, unanswered: set[int]) -> None:
        self.begun.append(set(unanswered))

    def answered(self, shard: int, tags: list[tuple[str, int]]) -> None:
        self.found.append((shard, tags))


class World:
    def __init__(self, *, leads: bool = True, others: tuple[int, ...] = (1, 2)) -> None:
        """leads: when the journal is read"""
        run = Run(SimulatedFiles())
        run.session("pump")
        run.flush()
        self.peers: Any = SimpleNamespace(all_known=False, others=dict.fromkeys(others))
        self.epochs = 0  # written
        self.begun: list[bool] = []
        self.restored: list[ReplayedState] = []
        self.found: Callable[[int, Tags], None] | None = None
        interest: Any = SimpleNamespace(begin=lambda wants_publishers: self.begun.append(wants_publishers))
        queries: Any = SimpleNamespace(find_tags=self._find_tags)
        restorer: Any = SimpleNamespace(journal=run.journal, restore=self._restore, write_epoch=self._write_epoch)
        self.leads = leads
        self.late: Any = Late()
        self.startup = Startup(
            run.store, self.peers, interest, queries, restorer, self.late, lambda effect: None, lambda: self.leads
        )
        self.startup.read_journal(run.hand.tell)

    def _write_epoch(self) -> None:
        self.epochs += 1

    def _find_tags(self, from_lsns: list[int], done: Any) -> None:
        self.found = done

    def _restore(self, state: ReplayedState, carry_out: Any, *, are_others: bool) -> bool:
        assert are_others
        self.restored.append(state)
        return True


def test_a_leader_asks_other_shards_only_once_its_term_is_open() -> None:
    world = World()
    world.peers.all_known, world.leads = True, False
    assert not world.startup.advance() and world.found is None
    world.leads = True
    assert not world.startup.advance() and world.found is not None


def test_a_run_has_its_writer_epoch_on_disk_before_others_are_told_of_it() -> None:
    """In a cluster the epoch is that of its term, and nothing is written before that is open."""
    assert World().epochs == 1
    assert World(others=()).epochs == World(leads=False).epochs == 0


def test_clients_come_once_all_shards_are_met_and_have_answered() -> None:
    world = World()
    assert not world.startup.advance() and world.found is None
    world.peers.all_known = True
    assert not world.startup.advance() and world.found is not None
    world.found(1, Tags(1, []))
    assert not world.startup.advance()
    world.found(2, Tags(1, [("pump", 7)], {0: 5}))
    assert world.startup.advance() and world.begun == [True]
    (state,) = world.restored
    assert [session.qos2_open for session in state.sessions.values()] == [{7}]
    assert not world.late.placed and world.late.begun == [set()]
    assert world.late.searched_ends == [(1, {}), (2, {0: 5})]
    assert world.late.searched_before == [[0]], "the first checkpoint of this run goes on from there"


def test_a_shard_that_is_not_met_for_long_is_not_waited_for() -> None:
    """What it has is asked all the same, and is its own matter once clients come."""
    world = World()
    assert not world.startup.advance() and world.found is None
    world.late.is_given_up = True
    assert world.startup.advance() and world.found is not None
    assert world.late.placed == 1 and world.late.begun == [{1, 2}]
    world.found(2, Tags(1, [("pump", 7)], {0: 5}))
    assert world.late.found == [(2, [("pump", 7)])]
    (state,) = world.restored
    assert [session.qos2_open for session in state.sessions.values()] == [set()]


def test_a_shard_that_is_met_and_answers_nothing_is_not_waited_for_either() -> None:
    """Below a majority it commits nothing, so it cannot say what it has."""
    world = World()
    world.peers.all_known = True
    assert not world.startup.advance() and world.found is not None
    world.found(1, Tags(1, []))
    world.late.is_given_up = True
    assert world.startup.advance()
    assert not world.late.placed and world.late.begun == [{2}]


def test_without_positions_in_the_journal_all_are_waited_for() -> None:
    world = World()
    world.late.is_given_up, world.late.has_positions = True, False
    assert not world.startup.advance() and world.found is None
