"""Consumer groups as a model: whatever clients do, a partition has one owner, and soon it has one."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from rumq.kafka.groups.group import ConsumerGroup, GroupState
from tests.kafka.groups.group_clients import BOUNDS, KEY, PARTITIONS, REBALANCE, SESSION, GroupClient, coordinator

CLIENTS_MAX = 6
WHO = st.integers(0, CLIENTS_MAX - 1)


class GroupMachine(RuleBasedStateMachine):
    """Clients come, step, die and lose answers, and the server is killed, in any order; some are static and are started
    again in their place."""

    @initialize()
    def begin(self) -> None:
        self.now = 1000.0
        self.groups = coordinator()
        self.clients: list[GroupClient] = []
        self.dead: list[GroupClient] = []
        self.told: list[tuple[int, str, list[int]]] = []

    @property
    def group(self) -> ConsumerGroup | None:
        return self.groups._groups.get(KEY)

    @rule(instance=st.sampled_from([None, None, "s1", "s2"]))
    def come(self, instance: str | None) -> None:
        if len(self.clients) < CLIENTS_MAX:
            self.clients.append(GroupClient(self.groups, f"c{len(self.clients)}", instance))

    @rule(who=WHO)
    def step(self, who: int) -> None:
        if self.clients:
            self.clients[who % len(self.clients)].step(self.now)

    @rule()
    def all_step(self) -> None:
        for each in self.clients:
            each.step(self.now)

    @rule()
    def settle(self) -> None:
        """Long enough for the group to be stable, if nobody hinders it."""
        for _ in range(12):
            self.all_step()
            self.now += 0.1
            self.groups.advance(self.now)
            self.a_partition_has_one_owner_who_may_commit()
            self.a_partition_is_given_once_in_a_generation()

    @rule(who=WHO)
    def die(self, who: int) -> None:
        """It goes on in its own belief: a consumer that hangs."""
        if self.clients:
            self.dead.append(self.clients.pop(who % len(self.clients)))

    @rule(who=WHO)
    def wake(self, who: int) -> None:
        """One that hung goes on where it was."""
        if self.dead and len(self.clients) < CLIENTS_MAX:
            self.clients.append(self.dead.pop(who % len(self.dead)))

    @rule(who=WHO)
    def lose_connection(self, who: int) -> None:
        if self.clients:
            self.clients[who % len(self.clients)].loses_connection()

    @rule(who=WHO)
    def leave(self, who: int) -> None:
        if self.clients:
            self.clients[who % len(self.clients)].leave(self.now)

    @rule(seconds=st.sampled_from([0.1, 0.5, 3.0, SESSION - 0.1, SESSION + 0.1, REBALANCE + 1]))
    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.groups.advance(self.now)

    @rule()
    def wait_until_something_is_due(self) -> None:
        if self.groups.next_at < float("inf"):
            self.now = max(self.now, self.groups.next_at)
            self.groups.advance(self.now)

    @rule()
    def restart(self) -> None:
        """The server is killed: it knows nobody, and clients go on in their belief. Its ids are none of before."""
        self.groups.__init__(BOUNDS, self.groups._new_id)  # type: ignore[misc]
        for each in [*self.clients, *self.dead]:
            each.loses_answers()

    @invariant()
    def a_partition_has_one_owner_who_may_commit(self) -> None:
        owners = [
            each for each in [*self.clients, *self.dead] if each.owned and each.is_stable and each.may_commit(self.now)
        ]
        owned = sorted(partition for each in owners for partition in each.owned)
        assert owned == sorted(set(owned)), [(each.sender, each.owned) for each in owners]

    @invariant()
    def a_partition_is_given_once_in_a_generation(self) -> None:
        """Of one group: one that was forgotten begins anew."""
        given: dict[tuple[int, int], str] = {}
        for each in [*self.clients, *self.dead]:
            told, each.told = each.told, []
            self.told += told
        for generation, who, owned in self.told:
            for partition in owned:
                assert given.setdefault((generation, partition), who) == who
        if self.group is None:
            self.told = []

    @invariant()
    def generations_go_up_and_counts_agree(self) -> None:
        group = self.group
        if group is None:
            assert not self.groups._sizes and not +self.groups._held
            return
        assert group.members or group.pending
        assert self.groups._sizes[KEY] == group.size == self.groups._held["all"]
        assert (group.state == GroupState.EMPTY) == (not group.members)
        waiting = [each for each in group.members.values() if each.joining or each.syncing]
        assert not waiting or group.state in (GroupState.JOINING, GroupState.ASSIGNING)
        assert self.groups.next_at < float("inf") or not group.members

    def teardown(self) -> None:
        """Whoever still lives, and steps: each partition has an owner within two rebalances."""
        if not hasattr(self, "clients"):
            return
        until = self.now + 2 * (REBALANCE + SESSION)
        while self.now < until:
            for each in self.clients:
                each.step(self.now)
            self.now += 0.5
            self.groups.advance(self.now)
        live = [each for each in self.clients if not each.is_fenced]
        if live:
            assert sorted(partition for each in live for partition in each.owned) == list(range(PARTITIONS))
            assert all(each.may_commit(self.now) for each in live)
            assert self.group is not None and len(self.group.members) == len(live)
        else:
            assert self.group is None


GroupMachine.TestCase.settings = settings(max_examples=300, stateful_step_count=40, deadline=None)
test_groups_as_a_model = GroupMachine.TestCase
