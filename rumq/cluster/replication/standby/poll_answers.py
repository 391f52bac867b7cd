"""What replicas answer when one of them asks whether there is a leader. Sans-IO. C4, docs/explanation/replication.md"""

from __future__ import annotations

from collections.abc import Iterable

from rumq.cluster.replication.messages import Polled


class PollAnswers:
    """node: that asks"""

    def __init__(self, node: str) -> None:
        self._node = node
        self._polled: dict[str, Polled] = {}
        self._silent: set[str] = set()

    def answered(self, peer: str, answer: Polled) -> None:
        self._polled[peer] = answer

    def unreachable(self, peer: str) -> None:
        """A process that is gone hears nobody; it has no vote in this either, but is not waited for."""
        self._silent.add(peer)

    def are_complete(self, peers: Iterable[str]) -> bool:
        """Whether none of these is waited for."""
        return all(peer in self._polled or peer in self._silent for peer in peers)

    def deaf(self) -> list[str]:
        """Who does not hear the leader, the asking node too."""
        return [self._node, *(peer for peer, answer in self._polled.items() if not answer.hears_leader)]

    def better(self, order: list[str], mine: tuple[int, int]) -> list[str]:
        """Who should claim first. order: the voters; mine: the epoch that is opened here, and the count of records"""
        return [  # an answer may be late, of one that has no vote any more
            peer for peer, answer in self._polled.items()
            if peer in order and not answer.hears_leader and (
                (answer.opened, answer.records) > mine
                or ((answer.opened, answer.records) == mine and order.index(peer) < order.index(self._node))
            )
        ]  # fmt: skip
