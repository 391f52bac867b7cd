"""What a turn gathers for its next step: commands for the router, and connections whose readers go on."""
# compiled: warm

from __future__ import annotations

from typing import Any

from router.commands import Command


class StepQueue:
    """The `CommandQueue` of a shard. items: in the order in which they were put, until they are taken"""

    __slots__ = ("items",)

    def __init__(self) -> None:
        self.items: list[Command] = []

    def put(self, command: Command, /) -> None:
        self.items.append(command)

    def take(self) -> list[Command]:
        """Everything that was put; the queue is empty then."""
        commands, self.items = self.items, []
        return commands


class ReadyLinks:
    """Links whose readers go on: in this turn's next step, or in the next turn's."""

    __slots__ = ("next_turn", "now")

    def __init__(self) -> None:
        self.now: dict[Any, None] = {}  # links; in order, each once
        self.next_turn: list[Any] = []  # connections: each may have another link, or none, by then

    def add(self, link: object) -> None:
        self.now[link] = None

    def add_next_turn(self, connection: Any) -> None:
        """Go on in the next turn, others in between."""
        self.next_turn.append(connection)

    def begin_turn(self) -> None:
        if self.next_turn:
            for connection in self.next_turn:
                self.now[connection.link] = None
            self.next_turn.clear()

    def take(self) -> dict[Any, None]:
        links, self.now = self.now, {}
        return links
