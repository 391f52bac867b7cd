"""Batches of one target, one after the other, each from its own seed; watched for time and memory. Knows no target."""

import sys
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator
from random import Random
from typing import Any, NamedTuple, TypeVar

GROWN_BYTES_MAX = 64 << 20
WARM = 0.2  # after this part of a run its memory is what it is
PAGE_BYTES = 4096

Input = TypeVar("Input")


class Wrong(AssertionError):
    """An input, and what came of it that must not."""


class Target(ABC):
    """One door. name: on the command line; inputs: how many a batch has
    slow_seconds: of processor time, too many for one input

    current: what is being looked at, for the report; tail: whether the bytes behind an input may be there to be read
    (an address sanitizer sees a read behind the end only if they are not)"""

    name = ""
    inputs = 1000
    slow_seconds = 0.1
    tail = True

    def __init__(self) -> None:
        self.current: Any = b""
        self.slowest = 0.0
        self.slowest_input: Any = b""
        self.is_timed = False

    @abstractmethod
    def run(self, seed: int) -> Counter[str]:
        """Play one batch; how often what came of an input. raises: Wrong, or whatever the door lets through"""

    def close(self) -> None:  # noqa: B027 - most have started nothing
        """End what it has started."""

    def each(self, inputs: list[Input]) -> Iterator[Input]:
        """The inputs, noted one by one."""
        if not self.is_timed:
            for self.current in inputs:
                yield self.current
            return
        for self.current in inputs:
            began = time.thread_time()
            yield self.current
            took = time.thread_time() - began
            if took > self.slowest:
                self.slowest, self.slowest_input = took, self.current


class Result(NamedTuple):
    """counts: what came of the inputs; seconds: of processor time"""

    inputs: int
    batches: int
    seconds: float
    wall_seconds: float
    counts: Counter[str]
    bytes_before: int
    bytes_after: int


def campaign(
    target: Target, seed: int, *, inputs: int = 0, seconds: float = 0.0, first: int = 0,
    at: Callable[[int], None] = lambda batch: None,
) -> Result:  # fmt: skip
    """Play batches until so many inputs were taken, or so many seconds of processor time; at: hears of each batch.

    raises: Wrong, with what is needed to play the batch again"""
    unraisable: list[Any] = []
    hook, sys.unraisablehook = sys.unraisablehook, unraisable.append
    counts: Counter[str] = Counter()
    done, batch, usual = 0, first, 0.0
    before = 0
    began, wall_began = time.thread_time(), time.monotonic()
    try:
        while (done < inputs) if inputs else (time.thread_time() - began < seconds):
            at(batch)
            took = play(target, seed, batch, counts, unraisable)
            if took > target.slow_seconds + 2 * usual and batch > first:
                look_for_slow(target, seed, batch)
            usual = max(usual, took) if batch < first + 8 else 0.9 * usual + 0.1 * took
            done += target.inputs
            batch += 1
            part = done / inputs if inputs else (time.thread_time() - began) / seconds
            if part >= WARM and not before:
                before = resident_bytes()
            elif before and batch & 63 == 0:
                check_memory(target, seed, before)
        after = check_memory(target, seed, before) if batch > first + 8 else before
    finally:
        sys.unraisablehook = hook
    return Result(done, batch - first, time.thread_time() - began, time.monotonic() - wall_began, counts, before, after)


def play(target: Target, seed: int, batch: int, counts: Counter[str], unraisable: list[Any]) -> float:
    """One batch; its seconds of processor time."""
    began = time.thread_time()
    try:
        counts += target.run(seed_of(target, seed, batch))
        if unraisable:
            raise Wrong(f"an exception that could not be raised: {unraisable[0]}")
    except Exception as fault:
        shown = target.current
        if isinstance(shown, bytes | bytearray):
            shown = f"bytes.fromhex({bytes(shown).hex()!r})"
        raise Wrong(
            f"{target.name}, seed {seed}, batch {batch}: {type(fault).__name__}: {fault}\n  input: {shown}\n  again: "
            f"python -m tests.fuzz --target {target.name} --seed {seed} --first {batch} --inputs 1"
        ) from fault
    return time.thread_time() - began


def look_for_slow(target: Target, seed: int, batch: int) -> None:
    """Play a batch that took long again, each of its inputs by the clock. raises: Wrong"""
    target.is_timed, target.slowest = True, 0.0
    target.run(seed_of(target, seed, batch))
    target.is_timed = False
    if target.slowest > target.slow_seconds:
        shown = target.slowest_input
        raise Wrong(f"{target.name}, seed {seed}, batch {batch}: {target.slowest:.2f} s for one input: {shown!r}")


def check_memory(target: Target, seed: int, before: int) -> int:
    now = resident_bytes()
    if before and now - before > GROWN_BYTES_MAX:
        raise Wrong(f"{target.name}, seed {seed}: memory grew from {before >> 20} to {now >> 20} MiB")
    return now


def resident_bytes() -> int:
    with open("/proc/self/statm", "rb") as file:
        return int(file.read().split()[1]) * PAGE_BYTES


def seed_of(target: Target, seed: int, batch: int) -> int:
    return Random(f"{seed} {target.name} {batch}").getrandbits(64)
