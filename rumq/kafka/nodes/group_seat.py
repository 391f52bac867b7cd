"""Whether this node coordinates consumer groups: while it leads shard 0, it takes over what groups have committed, and
serves them until another node can have taken office.

docs/decisions/0073-kafka-groups-follow-shard-0.md"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import trio

from rumq.admin.socket.held_values import Ask
from rumq.cluster.control.records import View
from rumq.kafka.groups.commit_store import CommitsLost
from rumq.kafka.groups.group_service import GroupService
from rumq.kafka.nodes.kafka_nodes import KafkaNodes
from rumq.kafka.nodes.shard_commits import ShardCommits, take_over
from rumq.kafka.protocol.errors import ErrorCode

AGAIN_SECONDS = 0.1  # after the shard's leader did not answer: it is taking office, or has left it
CONFIRM_SECONDS = 0.5
TURN_BITS, GENERATION_BITS = 14, 16  # of a generation: which coordinator it is of, and its number there
Event = Callable[..., None]


class GroupSeat:
    """nodes: of the last view; groups: while this node serves them, else None

    refusal: why no node of these settings serves groups; empty: it does"""

    def __init__(
        self, nodes: KafkaNodes, ask: Ask, make: Callable[[ShardCommits], Awaitable[GroupService]], event: Event,
        refusal: str = "",
    ) -> None:  # fmt: skip
        """make: a service of what was taken over; raises: CommitsLost"""
        self.nodes, self._ask, self._make, self._event = nodes, ask, make, event
        self.refusal = refusal
        self.groups: GroupService | None = None
        self._changed = trio.Event()
        self._told = ""

    def see(self, view: View) -> None:
        self.nodes.take(view)
        self._changed.set()

    @property
    def error(self) -> ErrorCode:
        """What a request of a group is answered where this node does not serve them."""
        if self.refusal:
            return ErrorCode.GROUP_AUTHORIZATION_FAILED
        if self.nodes.leads_here:
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return ErrorCode.NOT_COORDINATOR

    @property
    def where(self) -> str:
        """For the operator: why this node does not answer about groups, and which one does."""
        if self.refusal:
            return f"consumer groups are not served: {self.refusal}"
        if self.nodes.unable:
            return f"consumer groups are not served while {why_unable(self.nodes.unable)}"
        if self.nodes.leads_here:
            return f"node {self.nodes.name} takes consumer groups over: ask again in a moment"
        if not self.nodes.coordinator_name:
            return "nobody coordinates consumer groups now: shard 0 has no leader; ask again in a moment"
        other = self.nodes.coordinator_name
        if self.nodes.coordinator is None:
            return f"node {other} leads shard 0, and its Kafka server does not run: start it there (kafka.port)"
        return f"node {other} coordinates consumer groups: ask there"

    async def run(self) -> None:
        """Take office and leave it, until cancelled."""
        while True:
            self._changed = trio.Event()
            if self.refusal or not self.nodes.leads_here or not self._is_able():
                await self._changed.wait()
                continue
            try:
                commits = await take_over(self._ask)
                groups = await self._make(commits)
            except CommitsLost:
                await trio.sleep(AGAIN_SECONDS)
                continue
            await self._serve(commits, groups)

    def _is_able(self) -> bool:
        why = why_unable(self.nodes.unable) if self.nodes.unable else ""
        if why and why != self._told:
            self._event("kafka.groups_refused", why=why)
        self._told = why
        return not why

    async def _serve(self, commits: ShardCommits, groups: GroupService) -> None:
        self._event("kafka.groups_led", turn=commits.turn, groups=len(groups.offsets.groups))
        self.groups = groups
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(groups.run)
                nursery.start_soon(self._confirm, commits)
                await commits.lost.wait()
                nursery.cancel_scope.cancel()
        finally:
            self.groups = None
            groups.end()
            self._event("kafka.groups_left", turn=commits.turn)

    async def _confirm(self, commits: ShardCommits) -> None:
        """Members must not believe for long a coordinator that has been replaced."""
        while self._is_able() and await commits.is_current():
            await trio.sleep(CONFIRM_SECONDS)
        commits.close()


def first_generation(turn: int) -> int:
    """Behind which the generations of a coordinator begin: no other one has given those. 32 bits are all there are."""
    return turn % (1 << TURN_BITS) << GENERATION_BITS


def why_unable(names: list[str]) -> str:
    return f"node {', '.join(names)} has a version that would lose what they commit: upgrade it"
