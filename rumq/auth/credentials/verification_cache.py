"""Cache of recent verifications, so that a thousand clients that reconnect at once do not wait for a thousand hashes.

It stores keyed digests, whose key lives as long as the cache: no password, and nothing that could be matched against a
file. Bounded; time is an argument."""

from __future__ import annotations

import hashlib
import secrets
from collections import OrderedDict
from typing import Generic, TypeVar

V = TypeVar("V")


class VerificationCache(Generic[V]):
    """Parts (a user, a hash, a password) -> an answer, for `seconds_max`."""

    def __init__(self, seconds_max: float, entries_max: int = 16_384) -> None:
        """seconds_max: 0 caches nothing"""
        self.seconds_max, self.entries_max = seconds_max, entries_max
        self._key = secrets.token_bytes(32)
        self._entries: OrderedDict[bytes, tuple[float, V]] = OrderedDict()

    def digest(self, *parts: bytes) -> bytes:
        made = hashlib.blake2b(key=self._key, digest_size=16)
        for part in parts:
            made.update(len(part).to_bytes(8))
            made.update(part)
        return made.digest()

    def maybe_answer(self, digest: bytes, now: float) -> V | None:
        found = self._entries.get(digest)
        if found is None:
            return None
        until, answer = found
        if until <= now:
            del self._entries[digest]
            return None
        return answer

    def put(self, digest: bytes, answer: V, now: float, seconds: float | None = None) -> None:
        """seconds: less than `seconds_max`, if the answer has a lifetime of its own"""
        lifetime = self.seconds_max if seconds is None else min(seconds, self.seconds_max)
        if lifetime <= 0:
            return
        self._entries[digest] = (now + lifetime, answer)
        self._entries.move_to_end(digest)
        while len(self._entries) > self.entries_max:
            self._entries.popitem(last=False)

    def forget(self) -> None:
        self._entries.clear()

    def __len__(self) -> int:
        return len(self._entries)
