"""Records of a rumq broker's log, from a place in the past on. docs/reference/replay.md.

A replay has a connection of its own: one that is read slowly delays nothing else of the client. After a loss of the
connection it begins again, and leaves out what it has given already: lsns tell."""

import math
import re
from collections.abc import AsyncIterator
from typing import Any

import trio

from rumq.client.patterns.client_port import OpenAnother, receive_from
from rumq.client.session.back_off import BackOff, Reconnect
from rumq.client.session.connection import is_temporary
from rumq.client.session.messages import Message
from rumq.errors import ClientError

FROM, END = "rumq-from", "rumq-end"  # user properties of SUBSCRIBE
END_TOPIC = "$log/end"  # of the message that says that the end is reached
AGO = re.compile(r"(.*-)(\d+)([smhdw])")
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}


class ReplayRecords:
    """An iterator over records. next_lsns: partition -> the lsn behind the last record that was given"""

    def __init__(self, another: OpenAnother, topic_filter: str, start: str, *, follow: bool) -> None:
        self._another, self._filter, self._start, self._follow = another, topic_filter, start, follow
        self.next_lsns: dict[str, int] = {}
        self._begun = trio.current_time()

    async def records(self, policy: Reconnect | None) -> AsyncIterator[Message]:
        """Each record once, in the order of its partition. policy: how to go on after a loss; None: not at all

        raises: Refused, ConnectionLost"""
        back_off = BackOff(policy) if policy is not None else None
        while True:
            connected_at = trio.current_time()
            try:
                async for message in self._connection():
                    yield message
                return
            except ClientError as lost:
                if back_off is None or not is_temporary(lost):
                    raise
                back_off.connected_for(trio.current_time() - connected_at)
                if (pause := back_off.maybe_pause()) is None:
                    raise
            await trio.sleep(pause)

    async def _connection(self) -> AsyncIterator[Message]:
        """What is new of one connection."""
        options: dict[str, Any] = {
            "client_id": "", "clean_start": True, "session_expiry": 0, "will": None, "version": 5, "reconnect": False,
            "manual_acknowledge": True, "begin_offline": False,
        }  # fmt: skip
        client = await self._another(options)
        try:
            start = earlier(self._start, trio.current_time() - self._begun)
            wanted = [(FROM, start)] if self._follow else [(FROM, start), (END, "yes")]
            # QoS 0 loses nothing here: the broker reads the log on as the connection takes it.
            await client.subscribe(self._filter, qos=0, user_properties=wanted)
            while True:
                for message in await receive_from(client):
                    if message.topic == END_TOPIC:
                        await client.leave()
                        return
                    if self._is_new(message):
                        yield message
        finally:
            client.stop()

    def _is_new(self, message: Message) -> bool:
        if (partition := message.partition) is None or (lsn := message.lsn) is None:
            return True
        if lsn < self.next_lsns.get(partition, 0):
            return False
        self.next_lsns[partition] = lsn + 1
        return True


def earlier(start: str, seconds: float) -> str:
    """The same start, said so many seconds later: "-1h" is "-3605s" then."""
    found = AGO.fullmatch(start)
    if found is None or seconds < 1:
        return start
    return f"{found[1]}{int(found[2]) * UNITS[found[3]] + math.ceil(seconds)}s"
