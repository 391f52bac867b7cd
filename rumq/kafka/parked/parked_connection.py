"""One parked connection: takes what its socket has, knows whether that repeats an empty fetch, and answers it.

Whatever else comes, and what would be answered otherwise, ends the parking: the connection goes on by itself with what
was received. Time is an argument; the socket does not block."""

from __future__ import annotations

import os
from typing import NamedTuple

import trio

from rumq.kafka.answers.connected_client import KafkaClient
from rumq.kafka.parked.empty_fetch import EmptyFetch, EmptyFetches
from rumq.kafka.parked.shared_deadlines import tick_at

RECEIVE_BYTES = 1 << 14
NO_FETCHES = EmptyFetches()  # nothing is added to it


class Unparked(NamedTuple):
    """What a connection is to go on with. received: b"" at the end of the stream; None: nothing came

    unsent: of the last answer; asked_at: when what was received was a whole request; None: now, or it is not"""

    received: bytes | None = None
    unsent: bytes = b""
    asked_at: float | None = None


class ParkedConnection:
    """descriptor: of its socket; fetches: whose repetitions are answered

    has_more: something came that was not taken; has_ended: nothing comes behind it
    due_at: the tick at which the question that waits is answered
    idle_at: it is left then, unless it asks again, and so `idle_seconds_max` after each answer"""

    __slots__ = (
        "_asked", "_asked_at", "_client", "_idle_seconds_max", "_unparked", "_waiting", "_woken", "descriptor",
        "due_at", "fetches", "has_ended", "has_more", "idle_at",
    )  # fmt: skip

    def __init__(
        self, descriptor: int, client: KafkaClient, fetches: EmptyFetches, idle_at: float, idle_seconds_max: float
    ) -> None:
        self.descriptor, self.fetches, self._client = descriptor, fetches, client
        self.idle_at, self._idle_seconds_max = idle_at, idle_seconds_max
        self.has_more = self.has_ended = False
        self.due_at = 0.0
        self._waiting: EmptyFetch | None = None  # is repeated by `_asked`, which is to be answered
        self._asked, self._asked_at = b"", 0.0
        self._unparked: Unparked | None = None  # it is no longer parked
        self._woken = trio.Event()

    async def wait(self) -> Unparked:
        """Until it is no longer parked."""
        await self._woken.wait()
        assert self._unparked is not None
        return self._unparked

    def resume(self, how: Unparked) -> None:
        if self._unparked is None:
            self._unparked = how
            self._woken.set()

    def forget(self) -> None:
        """It is no longer parked: a deadline of its may hold it yet, up to the longest wait of a question."""
        self.fetches, self._waiting, self._asked = NO_FETCHES, None, b""

    def wake(self) -> None:
        """Have it answer by itself."""
        if self._waiting is None:
            self.resume(Unparked())
        else:
            self.resume(Unparked(self._asked, asked_at=self._asked_at))

    def leave_if_idle(self, now: float) -> None:
        if self._waiting is None and self.idle_at <= now:
            self.resume(Unparked(b""))

    def serve(self, now: float) -> bool:
        """Answer what is due, and take what came. Returns whether there is a new question, due at `due_at`."""
        if self._waiting is not None and self.due_at <= now and self._unparked is None:
            self._answer(self._waiting, now)
        # As of all connections no more is taken before the answer is.
        if self._waiting is not None or not self.has_more or self._unparked is not None:
            return False
        self.has_more = self.has_ended  # the end is told once, and is read behind all else
        return self._take(now)

    def _take(self, now: float) -> bool:
        """Whether it is a question to answer here."""
        try:
            data = os.read(self.descriptor, RECEIVE_BYTES)
        except BlockingIOError:
            return False
        except OSError:
            data = b""  # it left
        found = self.fetches.maybe_repeated_by(data)
        if found is None or self._client.has_expired:
            self.resume(Unparked(data))
            return False
        self._waiting, self._asked, self._asked_at = found, data, now
        self.due_at = tick_at(now + found.seconds)
        return True

    def _answer(self, found: EmptyFetch, now: float) -> None:
        if not found.is_current():
            self.wake()
            return
        told = found.answer_to(self._asked)
        try:
            sent = os.write(self.descriptor, told)
        except BlockingIOError:
            sent = 0
        except OSError:
            self.resume(Unparked(b""))
            return
        self._client.door.figures.fetches += 1
        self._client.rotation += 1
        self._waiting = None
        self.idle_at = now + self._idle_seconds_max
        if sent < len(told) or self._client.has_expired:
            self.resume(Unparked(unsent=told[sent:]))
