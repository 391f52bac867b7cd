"""The connections of a pump by their descriptors, which are small numbers: a list, 8 bytes each. It owns no socket."""
# compiled: warm

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, Protocol, TypeVar


class Descriptor(Protocol):
    """fd: -1 once the pump no longer serves it"""

    fd: int


C = TypeVar("C", bound=Descriptor)


class ConnectionTable(Generic[C]):
    """by_fd: for the pump, which finds here whose socket is ready; it stays the same list"""

    def __init__(self) -> None:
        self.by_fd: list[C | None] = []
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __contains__(self, connection: C) -> bool:
        fd = connection.fd
        return 0 <= fd < len(self.by_fd) and self.by_fd[fd] is connection

    def add(self, connection: C) -> None:
        by_fd, fd = self.by_fd, connection.fd
        if fd >= len(by_fd):
            by_fd += [None] * (fd + 1 - len(by_fd))
        self._count += by_fd[fd] is None
        by_fd[fd] = connection

    def remove(self, connection: C) -> None:
        """One that is in it."""
        self.by_fd[connection.fd] = None
        self._count -= 1

    def values(self) -> Iterator[C]:
        """In the order of their descriptors. Take a list of them before any is added or removed."""
        return (connection for connection in self.by_fd if connection is not None)
