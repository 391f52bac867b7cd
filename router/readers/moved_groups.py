"""Which shared groups may stand elsewhere than before, so that nobody has to look at all the others.

Refuses to know what a group is, and who looks."""
# compiled: hot

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from router.readers.shared_group import SharedGroup


class MovedGroups:
    """maybe_behind: those that may have something to hand out; who looks takes out the others, and such as ended"""

    __slots__ = ("_moved", "maybe_behind")

    def __init__(self) -> None:
        self._moved: dict[SharedGroup, None] = {}
        self.maybe_behind: dict[SharedGroup, None] = {}

    def mark(self, share: SharedGroup) -> None:
        """Its members, cursors or ranges may have changed."""
        self._moved[share] = None
        self.maybe_behind[share] = None

    def take(self) -> list[SharedGroup]:
        """Those that were marked since the last call; also such as ended."""
        moved = list(self._moved)
        self._moved.clear()
        return moved
