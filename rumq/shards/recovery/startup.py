"""The start of a shard: replay its journal, meet the other shards, restore what an earlier run left here and in their
logs. Shards that are missing for long are not waited for (`rumq.shards.recovery.late_shards`).

Nothing waits here: the caller asks after each turn whether the shard has got there."""

from __future__ import annotations

from collections.abc import Callable

from commitlog import Store
from router.effects import Effect
from rumq.session.journal.replayed_state import ReplayedState
from rumq.shards.bus.messages import Tags
from rumq.shards.bus.remote_partition import RemotePartition
from rumq.shards.peers.interest import Interest
from rumq.shards.peers.peers import Peers
from rumq.shards.peers.query_client import QueryClient
from rumq.shards.recovery.fit_to_log import fit_to_partitions
from rumq.shards.recovery.journal_reader import add_tags, replay
from rumq.shards.recovery.late_shards import LateShards
from rumq.shards.recovery.restore import Restorer


class Startup:
    def __init__(
        self, store: Store, peers: Peers, interest: Interest, queries: QueryClient, restorer: Restorer,
        late: LateShards, carry_out: Callable[[Effect], None], is_leading: Callable[[], bool] = lambda: True,
    ) -> None:  # fmt: skip
        """is_leading: in a cluster, whether a majority has the log as it was found"""
        self._store, self._peers, self._interest, self._queries = store, peers, interest, queries
        self._restorer, self._late = restorer, late
        self._carry_out, self._is_leading = carry_out, is_leading
        self._state = ReplayedState()
        self._ends = {p.index: p.next_lsn for p in store.partitions if not p.is_mirrored}
        self._has_met = self._has_restored = False
        self._unanswered: set[int] = set()  # shards that have not said yet what their logs have of our sessions

    def read_journal(self, tell: Callable[..., None]) -> None:
        """First of all, before other shards are linked. tell: reports gaps of the journal. raises: OSError"""
        self._state = replay(self._store, self._restorer.journal.partition, tell)
        runs = dict(zip(self._state.layout, self._state.runs, strict=False))
        for partition, name in zip(self._store.partitions, self._layout, strict=True):
            if isinstance(partition, RemotePartition):
                partition.run.known = runs.get(name, (0, 0))
        if self._peers.others and self._is_leading():
            # In a cluster it does not lead yet, and its epoch is that of its term.
            self._restorer.write_epoch()

    def advance(self) -> bool:
        """Go on as far as is possible now; True, and not to be called again, once clients may come. raises: OSError"""
        peers, late = self._peers, self._late
        if not self._is_leading():
            return False
        if not self._has_met:
            is_complete = peers.all_known
            if not is_complete and not (late.are_given_up() and late.can_begin(self._state, self._layout)):
                return False
            if not is_complete:
                late.place(self._state, self._layout, self._restorer)
            self._has_met = True
            self._fit()
            if self._state.sessions:
                self._unanswered = set(peers.others)
                self._queries.find_tags(self._state.tags_from, self._tags_found)
        if self._unanswered and not late.are_given_up():
            return False
        self._fit()  # an owner may have died since, and lost what it had not written
        late.searched(self._state)
        wants_publishers = self._restorer.restore(self._state, self._carry_out, are_others=bool(peers.others))
        self._has_restored = True
        if peers.others:
            self._interest.begin(wants_publishers=wants_publishers)
            late.begin(self._state, self._unanswered)
        self._state = ReplayedState()  # it is several hundred bytes for each subscription
        return True

    @property
    def _layout(self) -> tuple[str, ...]:
        return self._restorer.journal.layout()

    def _fit(self) -> None:
        fit_to_partitions(self._state, self._layout, self._store.partitions, self._ends)

    def _tags_found(self, shard: int, found: Tags) -> None:
        self._late.searched_to(shard, found.ends)
        if self._has_restored:
            self._late.answered(shard, found.tags)
            return
        add_tags(self._state, found.tags)
        self._unanswered.discard(shard)
