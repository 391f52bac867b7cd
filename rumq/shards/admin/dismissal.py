"""The end of a client's connection, and of its session, by order of the operator."""

from __future__ import annotations

from rumq.admin import requests as q
from rumq.admin.operations import UNKNOWN
from rumq.loop.ports import EventSink
from rumq.mqtt.reasons import Reason
from rumq.session.state.registry import Registry
from rumq.shards.admin.listings.listings import Answer


class Dismissal:
    """Both apply to the sessions with a client id, of whatever owner, and answer how many there were."""

    def __init__(self, registry: Registry, events: EventSink) -> None:
        self._registry, self._events = registry, events

    def disconnect(self, asked: q.OneClient) -> Answer:
        """Disconnect a client (0x98); its session stays."""
        return self._end(asked.client, drops=False)

    def drop(self, asked: q.OneClient) -> Answer:
        """Disconnect a client (0x98) and end its session."""
        return self._end(asked.client, drops=True)

    def _end(self, client: str, *, drops: bool) -> Answer:
        found = [s for s in self._registry.sessions.values() if s.client_id == client]
        disconnected = 0
        for session in found:
            if session.link is not None:
                disconnected += 1
                session.link.dismiss(Reason.ADMINISTRATIVE_ACTION, "the operator ended this connection")
            if drops:
                self._registry.end(session)
        if found:
            self._events.tell("session.dropped" if drops else "client.dismissed", client_id=client, sessions=len(found))
        answer: Answer = {"disconnected": disconnected, "dropped": len(found) if drops else 0}
        return answer if found else {**answer, UNKNOWN: True}
