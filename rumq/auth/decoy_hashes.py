"""What an unknown user is checked against, so that neither time nor form tells that it is unknown.

Where users have hashes of several kinds and costs, unknown ones must be spread over these as known ones are, and each
must keep its own while users come and go: weighted rendezvous hashing with a secret. Knows no hash."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Hashable, Iterable
from typing import Generic, TypeVar

T = TypeVar("T")


class DecoyHashes(Generic[T]):
    """User -> one of `known`, of a shape that is as frequent as it is there."""

    def __init__(self, known: Iterable[T], shape_of: Callable[[T], Hashable], secret: bytes) -> None:
        """known: of the users that there are, at least one; secret: at most 64 bytes that nobody else knows"""
        self._shapes: dict[Hashable, tuple[T, int]] = {}
        for each in known:
            first, count = self._shapes.get(shape_of(each), (each, 0))
            self._shapes[shape_of(each)] = first, count + 1
        self._secret = secret

    def of(self, user: str) -> T:
        """Costs a digest for each shape."""
        if len(self._shapes) == 1:
            return next(iter(self._shapes.values()))[0]
        best = max(self._shapes, key=lambda shape: self._weight(user, shape))
        return self._shapes[best][0]

    def _weight(self, user: str, shape: Hashable) -> float:
        made = hashlib.blake2b(
            f"{shape!r} {user}".encode(errors="surrogatepass"), key=self._secret, digest_size=8
        )
        part = (int.from_bytes(made.digest()) + 1) / (2**64 + 2)
        return self._shapes[shape][1] / -math.log(part)
