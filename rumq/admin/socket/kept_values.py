"""What the Kafka server and the bridges of a node ask the leader of shard 0: to keep values by name in the shard's
journal.

A line of JSON there, a line back, at a socket of its own in the data directory. Whoever holds the values of a kind has
a number; who takes them over gets a higher one than all before in the cluster, and what the one before says is refused
from then on. The kinds know nothing of each other."""

from __future__ import annotations

from msgspec import Struct

SOCKET_NAME = "kept.sock"
LINE_BYTES_MAX = 1 << 20
PAGE_BYTES_MAX = 1 << 18  # of the names and values of a page, and of what is written at once


class TakeOver(Struct, frozen=True, tag="take"):
    """Hold the values from now on. Answered once all that was written before is committed."""


class ReadPage(Struct, frozen=True, tag="read"):
    """Values from a place on, in an order that stays while nobody writes."""

    holder: int
    first: int


class KeepValues(Struct, frozen=True, tag="write"):
    """Keep values: (name, value); an empty value: no longer. Answered once they are committed."""

    holder: int
    values: list[tuple[bytes, bytes]]


class Confirm(Struct, frozen=True, tag="confirm"):
    """Answered if no other node can have taken them over when it was asked."""

    holder: int


class OfBridges(Struct, frozen=True, tag="bridges"):
    """Of the values of bridges, not of Kafka's. A tag of its own: who does not know it must not take it for those."""

    asked: TakeOver | ReadPage | KeepValues | Confirm


KeptQuestion = TakeOver | ReadPage | KeepValues | Confirm
AnyQuestion = KeptQuestion | OfBridges


class KeptReply(Struct, frozen=True):
    """error: why it was not done, or is not known to be; left: how many values follow those of a page"""

    error: str = ""
    holder: int = 0
    values: list[tuple[bytes, bytes]] = []
    left: int = 0
