"""Fetches that found nothing, as bytes: what a repetition is recognised by, and what it is answered with.

A client that waits at the end sends the same request again and again, but for the correlation id. Neither the parser
nor the writer of messages is needed for it. No sockets, no clock here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rumq.kafka.log.served_log import LogPartition
from rumq.kafka.protocol.frames import LENGTH_BYTES, Part

ANSWER_REST_AT = LENGTH_BYTES + 4  # of an answer: behind its length and the correlation id
ID_AT, REST_AT = LENGTH_BYTES + 4, LENGTH_BYTES + 8  # of a request: the correlation id, and what is behind it
# Of all that a connection asks: librdkafka begins with another partition each time, aiokafka and kafkajs shuffle them.
# All orders of four partitions fit, with their answers.
BYTES_MAX = 24 << 10
OBJECT_BYTES, PLACES_INCLUDED = 512, 4  # of each, beside its bytes, with so many partitions
PLACE_BYTES = 144  # of a further one
SECONDS_MIN = 0.1  # who waits for less would notice two hundredths of a second more


class PartitionBounds(NamedTuple):
    """Where a partition stood when there was nothing."""

    partition: LogPartition
    first: int
    end: int


class EmptyFetch:
    """seconds: that it waits; size: in memory; places: its answer is right as long as partitions stand there"""

    __slots__ = ("_answer_rest", "_answer_start", "_start", "places", "rest", "seconds", "size")

    def __init__(self, request: bytes, answer: bytes, seconds: float, places: Sequence[PartitionBounds]) -> None:
        """request, answer: with their lengths; rest: of the request, behind the correlation id"""
        self._start, self.rest = request[:ID_AT], request[REST_AT:]
        self._answer_start, self._answer_rest = answer[:LENGTH_BYTES], answer[ANSWER_REST_AT:]
        self.seconds, self.places = seconds, tuple(places)
        further = max(0, len(self.places) - PLACES_INCLUDED)
        self.size = len(request) + len(answer) + OBJECT_BYTES + PLACE_BYTES * further

    def is_current(self) -> bool:
        """Whether a repetition finds nothing now, and is told the same."""
        return all(partition.end == end and partition.first == first for partition, first, end in self.places)

    def is_repeated_by(self, data: bytes) -> bool:
        """data: has the same rest"""
        return data.startswith(self._start)

    def answer_to(self, data: bytes) -> bytes:
        """data: a repetition"""
        return self._answer_start + data[ID_AT:REST_AT] + self._answer_rest


class EmptyFetches:
    """Those of one connection."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[bytes, EmptyFetch] = {}

    @property
    def partitions(self) -> set[LogPartition]:
        return {place.partition for each in self._known.values() for place in each.places}

    @property
    def size(self) -> int:
        """In memory, in bytes."""
        return sum(each.size for each in self._known.values())

    def add(self, frame: bytes, answer: Iterable[Part], seconds: float, partitions: Iterable[LogPartition]) -> bool:
        """Returns whether repetitions of the request are known from now on.

        frame: without its length; answer: with it; partitions: stand where the answer says"""
        request, told = len(frame).to_bytes(LENGTH_BYTES, "big") + frame, b"".join(answer)
        made = EmptyFetch(request, told, seconds, [PartitionBounds(each, each.first, each.end) for each in partitions])
        if seconds < SECONDS_MIN or made.size > BYTES_MAX:
            return False
        self._known = {rest: each for rest, each in self._known.items() if each.is_current()}
        if self.size + made.size > BYTES_MAX:
            self._known.clear()
        self._known[made.rest] = made
        return True

    def forget(self) -> None:
        self._known.clear()

    def maybe_repeated_by(self, data: bytes) -> EmptyFetch | None:
        """data: what was received; None also where the repetition would be told something else"""
        found = self._known.get(data[REST_AT:])
        return found if found is not None and found.is_repeated_by(data) and found.is_current() else None
