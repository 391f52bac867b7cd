"""What a function is told by its settings, and the topics that it may read and write. docs/guides/functions.md

Loops are refused here: results of a function begin with its prefix, so the topics that it can write are known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

STATE_TOPICS = "rumq/function/"  # progress markers of functions, which no function reads
VIA = "function:"  # before the name of a function, in the user property that says where a message came through

OnFailure = Literal["pass", "hold", "refuse"]


@dataclass(frozen=True)
class FunctionRules:
    """filters: what it reads; code: `file.py`, `file.py:name` or `module:name`; prefix: before each topic it writes

    timeout_seconds: for one batch; memory_bytes_max: beyond what it has once it is loaded
    on_failure: of a batch that it could not do; records_max: of a batch; user: as whom it publishes, "" as nobody
    """

    name: str
    filters: tuple[str, ...]
    code: str
    prefix: str
    timeout_seconds: float = 1.0
    memory_bytes_max: int = 256 << 20
    on_failure: OnFailure = "hold"
    records_max: int = 10_000
    start: Literal["earliest", "latest"] = "earliest"
    user: str = ""


def overlaps(one: str, other: str) -> bool:
    """Whether two topic filters have a topic in common. MQTT 5.0, 4.7"""
    return levels_overlap(one.split("/"), other.split("/"))


def levels_overlap(one: Sequence[str], other: Sequence[str]) -> bool:
    for here, there in zip(one, other, strict=False):
        if "#" in (here, there):
            return True
        if here != there and "+" not in (here, there):
            return False
    if len(one) == len(other):
        return True
    longer = one[len(other) :] or other[len(one) :]
    return longer[0] == "#"  # `a/#` covers `a` too


def maybe_loop(functions: Sequence[FunctionRules]) -> list[str] | None:
    """Names of functions whose results come back to the first of them, in order; None: there are none."""
    feeds = {each.name: [other.name for other in functions if may_feed(each, other)] for each in functions}
    done: set[str] = set()

    def visit(name: str, path: list[str]) -> list[str] | None:
        if name in path:
            return path[path.index(name) :]
        if name in done:
            return None
        for following in feeds[name]:
            if (loop := visit(following, [*path, name])) is not None:
                return loop
        done.add(name)
        return None

    return next((loop for each in feeds if (loop := visit(each, [])) is not None), None)


def may_feed(writer: FunctionRules, reader: FunctionRules) -> bool:
    return any(overlaps(each, f"{writer.prefix}#") for each in reader.filters)
