"""Events of a shard, and faults of ours: reported, and confined to the task or the connection that they occur in."""
# compiled: warm

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rumq.session.connection.broker_port import ClientInfo


def is_told(times: int) -> bool:
    """Of what happens again and again the 1st, 2nd, 4th, 8th ... time is reported."""
    return times & (times - 1) == 0


class ShardEvents:
    """The `EventSink` and the `FaultGuard` of a shard. refused: clients, by reason, if somebody counts them"""

    __slots__ = ("refused", "tell")

    def __init__(self, tell: Callable[..., None], refused: Mapping[str, int] | None = None) -> None:
        self.tell = tell
        self.refused = refused if refused is not None else {}

    def of_client(self, name: str, client: ClientInfo, **fields: object) -> None:
        """An event that concerns a client's connection."""
        self.tell(name, client_id=client.client_id, peer=client.transport.peer, **fields)

    def crashed(self, connection: Any) -> None:
        link = connection.link
        if link.is_bus:
            if is_told(link.attempt):
                self.tell("shard.link_failed", peer=connection.peer, times=link.attempt, exc_info=True)
            link.end()
            return
        self.tell("client.crashed", client_id=link.client_id, peer=connection.peer, exc_info=True)
        try:
            link.end(with_will=True)
        except Exception:
            self.failed("end of a client")

    def given_up(self, link: Any, fault: BaseException) -> None:
        try:
            raise fault
        except Exception:
            self.crashed(link.transport)

    def alone(self, task: str, call: Callable[[], None]) -> None:
        try:
            call()
        except Exception:
            self.failed(task)

    def failed(self, task: str) -> None:
        self.tell("task.failed", task=task, exc_info=True)
