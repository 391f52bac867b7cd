"""A client of several Flight servers that serve copies of one log: the nodes of a cluster. docs/guides/spark.md.

A record is read where it is committed, so copies differ by their ends only: what one lacks, a later call or another
copy has. Lsns are the same on every copy, so a read goes on at another one behind the last batch."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeVar

import msgspec
import pyarrow as pa

from rumq.flight.client import LogClient
from rumq.flight.errors import Away, BadRequest, TooManyReads
from rumq.flight.retries import Retries
from rumq.flight.tickets import Ticket
from rumq.table.errors import DataLoss
from rumq.table.flight_location import FlightLocation

ANSWER_SECONDS_MAX = 10.0  # for anything but records: then another copy is asked
SHUN_SECONDS = 15.0  # a server without an answer is the last one to be asked for so long
Heads = dict[str, dict[str, int]]
T = TypeVar("T")


class Copy:
    """One server. shunned_until: monotonic seconds"""

    def __init__(self, address: str, location: FlightLocation, make: Callable[[FlightLocation], LogClient]) -> None:
        alone = replace(location, address=address, copies=(), retries=0, away_seconds_max=0.0)
        self.address = address
        self.records = make(alone)
        self.answers = make(replace(alone, read_seconds_max=min(location.read_seconds_max, ANSWER_SECONDS_MAX)))
        self.shunned_until = 0.0


class CopiesClient:
    """As `LogClient`, of every server in a location."""

    def __init__(
        self, location: FlightLocation, *, wait: Callable[[float], None] = time.sleep,
        now: Callable[[], float] = time.monotonic, known: bool = False,
    ) -> None:  # fmt: skip
        self._now, self._retries = now, Retries(location, wait, now, known=known)
        self._copies = [
            Copy(address, location, lambda alone: LogClient(alone, wait=wait, now=now))
            for address in location.addresses
        ]

    def heads(self) -> Heads:
        """As of `LogClient`; of each partition from where any copy has it to where one proves it to be committed."""
        return self._patiently(lambda: merged(self._answered()))

    def find_time(self, partition: str, ts_us: int, *, behind_lost: bool = False) -> int:
        return self._patiently(
            lambda: self._longest(partition).answers.find_time(partition, ts_us, behind_lost=behind_lost)
        )

    def end_within(self, partition: str, start: int, end: int, bytes_max: int) -> int:
        return self._patiently(lambda: self._longest(partition).answers.end_within(partition, start, end, bytes_max))

    def segments(self, below: dict[str, int]) -> dict[str, str]:
        """Of any copy that has the record: it is in a segment of the same name on each."""

        def found() -> dict[str, str]:
            names: dict[str, str] = {}
            for copy, heads in self._answered():
                asked = {
                    name: lsn
                    for name, lsn in below.items()
                    if not names.get(name) and name in heads and heads[name]["committed"] >= lsn
                }
                names |= copy.answers.segments(asked) if asked else {}
            return names

        return self._patiently(found)

    def batches(self, ticket: Ticket) -> Iterator[pa.RecordBatch]:
        """The rows of a ticket, in order, each once, from one copy after the other.

        raises: as `LogClient.batches`; DataLoss if no copy that is alive has the records"""
        left = self._retries.first
        while True:
            fault: Away | TooManyReads | None = None
            lost: DataLoss | None = None
            for copy in self._order(ticket.partition):
                try:
                    if not has_end(copy, ticket):
                        fault = TooManyReads(f"{copy.address} does not have {ticket.partition} up to {ticket.end} yet")
                        continue
                    # A copy that lacks records says so, whatever the reader wants: another one may have them.
                    asked = msgspec.structs.replace(ticket, failOnDataLoss=True)
                    for batch, next_lsn in copy.records.received(asked):
                        yield batch
                        ticket, left = msgspec.structs.replace(ticket, start=next_lsn), self._retries.first
                        self._note_answer(copy)
                    self._note_answer(copy)
                    return
                except DataLoss as found:
                    lost = found
                except (Away, TooManyReads) as found:
                    fault = found
                    self._shun(copy)
            if fault is None and lost is not None and not ticket.failOnDataLoss:
                yield from self._longest(ticket.partition).records.batches(ticket)
                return
            self._before_retry(left, fault, lost)
            left -= 1

    def close(self) -> None:
        for copy in self._copies:
            copy.records.close()
            copy.answers.close()

    # Parts

    def _patiently(self, call: Callable[[], T]) -> T:
        left = self._retries.first
        while True:
            try:
                found = call()
                self._retries.note_answer()
                return found
            except (Away, TooManyReads) as fault:
                self._retries.before_retry(left, fault)
                left -= 1

    def _answered(self) -> list[tuple[Copy, Heads]]:
        """Who answers, with its heads; those that did not lately are asked if nobody else has an answer.

        raises: Away, TooManyReads; Away too if a partition is on none of them, by the numbers of the others"""
        now = self._now()
        found: list[tuple[Copy, Heads]] = []
        fault: Away | TooManyReads = Away(self._copies[0].address, "no copy has an answer")
        shunned = [copy for copy in self._copies if copy.shunned_until > now]
        for copies in ([copy for copy in self._copies if copy not in shunned], shunned):
            for copy in copies:
                try:
                    found.append((copy, copy.answers.heads()))
                    copy.shunned_until = 0.0
                except (Away, TooManyReads) as why:
                    fault = why
                    self._shun(copy)
            if found and not missing(found):
                return found
        if not found:
            raise fault
        raise Away(
            fault.address if isinstance(fault, Away) else self._copies[0].address,
            f"no copy that answers has partition {missing(found)}",
        )

    def _longest(self, partition: str) -> Copy:
        """raises: Away, TooManyReads, BadRequest"""
        having = [(heads[partition]["committed"], copy) for copy, heads in self._answered() if partition in heads]
        if not having:
            raise BadRequest("action", f"there is no partition {partition!r} on any copy")
        return max(having, key=lambda each: each[0])[1]

    def _before_retry(self, left: int, fault: Away | TooManyReads | None, lost: DataLoss | None) -> None:
        """Wait for a copy that may have the records. raises: DataLoss if there is none, or it does not come"""
        if lost is None or fault is not None:
            try:
                self._retries.before_retry(left, fault or Away(self._copies[0].address, "it has no answer"))
                return
            except (Away, TooManyReads):
                if lost is None:
                    raise
        raise lost

    def _order(self, partition: str) -> list[Copy]:
        """Partitions begin at different copies, so that each has its share of the work."""
        number = partition.rpartition("/p")[2]
        first = int(number) % len(self._copies) if number.isdecimal() else 0
        now = self._now()
        return sorted(self._copies[first:] + self._copies[:first], key=lambda copy: copy.shunned_until > now)

    def _shun(self, copy: Copy) -> None:
        copy.records.close()
        copy.answers.close()
        copy.shunned_until = self._now() + SHUN_SECONDS

    def _note_answer(self, copy: Copy) -> None:
        copy.shunned_until = 0.0
        self._retries.note_answer()


def has_end(copy: Copy, ticket: Ticket) -> bool:
    """Whether this copy can prove that all the records of a ticket are committed. raises: Away, TooManyReads"""
    head = copy.answers.heads().get(ticket.partition)
    return head is not None and head["committed"] >= ticket.end


def merged(answers: list[tuple[Copy, Heads]]) -> Heads:
    """By partition, in the order of their numbers: the first of any copy, the rest of the one that has most."""
    found: Heads = {}
    for _, heads in answers:
        for name, head in heads.items():
            known = found.get(name, head)
            most = head if head["committed"] > known["committed"] else known
            found[name] = {**most, "first": min(known["first"], head["first"])}
    return dict(sorted(found.items(), key=lambda each: placed(each[0])))


def placed(name: str) -> tuple[str, int]:
    above, _, number = name.rpartition("/p")
    return above, int(number) if number.isdecimal() else 0


def missing(answers: list[tuple[Copy, Heads]]) -> str:
    """A partition that must be there, because one of a higher number is; "": there is none."""
    there = {placed(name) for _, heads in answers for name in heads}
    for above, number in sorted(there):
        for lower in range(number):
            if (above, lower) not in there:
                return f"{above}/p{lower}"
    return ""
