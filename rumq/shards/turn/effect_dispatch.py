"""The router's effects, each to the part that carries it out: a table from the kind of effect to a call."""
# compiled: warm

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from router.effects import Deliver, Effect, Merged, ReplayEnded, ReplayStarted
from rumq.mqtt.encode import encode
from rumq.mqtt.packets import Publish
from rumq.mqtt.properties import Properties
from rumq.session.flow_control.delivery_window import DeliveryWindow
from rumq.session.journal.recorder import JournalRecorder
from rumq.session.state.session import Session
from rumq.shards.delivery.fan_out import FanOut

END_TOPIC = "$log/end"


class EffectDispatch:
    """The `EffectSink` of a shard."""

    __slots__ = ("_fan_out", "_handlers")

    def __init__(self) -> None:
        self._handlers: dict[type, Callable[[Any], None]] = {}
        self._fan_out: FanOut | None = None

    def deliver_by(self, fan_out: FanOut) -> None:
        """Have it carry out `Deliver`, most of all effects."""
        self._fan_out = fan_out

    def handle(self, handlers: Mapping[type, Callable[[Any], None]]) -> None:
        """Have effects of some kinds carried out by these calls."""
        self._handlers.update(handlers)

    def carry_out(self, effect: Effect) -> None:
        if type(effect) is Deliver and self._fan_out is not None:
            self._fan_out.deliver(effect)
        else:
            self._handlers[type(effect)](effect)


class JournalEffects:
    """Effects that only the journal needs to know of: where readers of sessions begin, and which have become one."""

    def __init__(self, sessions: dict[str, Session], journal: JournalRecorder) -> None:
        self._sessions, self._journal = sessions, journal

    def started(self, effect: ReplayStarted) -> None:
        session = self._sessions.get(effect.reader.key)
        if session is not None:
            self._journal.replay_started(session, effect.reader.number, effect.reader.cursors)

    def merged(self, effect: Merged) -> None:
        session = self._sessions.get(effect.key)
        if session is not None:
            self._journal.merged(session, effect.asked, effect.reader.number)


def send_replay_end(effect: ReplayEnded) -> None:
    """Tell a client that its replay has reached the end: a message of QoS 0 behind the records.

    docs/reference/replay.md, "The end"."""
    flow = effect.reader.sink
    if not isinstance(flow, DeliveryWindow) or not flow.is_open:
        return
    (subscription,) = effect.reader.group.subscriptions
    properties = Properties()
    if subscription.identifier:
        properties["subscription_identifiers"] = [subscription.identifier]
    flow.outbox.write(encode(Publish(END_TOPIC, subscription.topic_filter.encode(), properties=properties), 5))
