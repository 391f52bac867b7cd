"""Decoy hashes: unknown users are checked against one, so that neither time nor form reveals that they are unknown.

Where users have hashes of several kinds and costs, unknown users are distributed over these as known ones are, and
each keeps its decoy while users are added and removed: weighted rendezvous hashing with a secret."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Hashable, Iterable
from typing import Generic, TypeVar

T = TypeVar("T")


class DecoyHashes(Generic[T]):
    """User -> one of `known`; each shape is as frequent as in `known`."""

    def __init__(self, known: Iterable[T], shape_of: Callable[[T], Hashable], secret: bytes) -> None:
        """known: hashes of the real users, at least one; shape_of: kind and cost; secret: at most 64 bytes"""
        self._shapes: dict[Hashable, tuple[T, int]] = {}
        for each in known:
            first, count = self._shapes.get(shape_of(each), (each, 0))
            self._shapes[shape_of(each)] = first, count + 1
        self._secret = secret

    def hash_for(self, user: str) -> T:
        """Cost: a digest for each shape"""
        if len(self._shapes) == 1:
            return next(iter(self._shapes.values()))[0]
        best = max(self._shapes, key=lambda shape: self._weight(user, shape))
        return self._shapes[best][0]

    def _weight(self, user: str, shape: Hashable) -> float:
        made = hashlib.blake2b(f"{shape!r} {user}".encode(errors="surrogatepass"), key=self._secret, digest_size=8)
        part = (int.from_bytes(made.digest()) + 1) / (2**64 + 2)
        return self._shapes[shape][1] / -math.log(part)
