"""Events of what changes queues, as REST reports them."""

from __future__ import annotations

from collections.abc import Callable

from rumq.services.calls.call import Call


class QueueAudit:
    """event: reports events"""

    def __init__(self, event: Callable[..., None]) -> None:
        self._event = event

    def done(self, call: Call, action: str, **what: object) -> None:
        caller = call.caller
        name = caller.token.name if caller.token is not None else caller.name
        self._event("admin.action", action=action, token=name, what=what, why="", result=None)
