"""Events of several shards as one sequence by time, and the cursor that names a place in each of them.

A cursor is `SHARD.RUN.NEXT` for each shard, joined by commas: NEXT is the number of the event that comes next in that
run of its process."""

from __future__ import annotations

import heapq
import re
from datetime import UTC, datetime
from typing import Any

from rumq.admin import answers as a
from rumq.admin import requests as q
from rumq.admin.rows import EventRow

PLACE = re.compile(r"(\d{1,5})\.(\d{1,18})\.(\d{1,18})")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
HEAD = ("time", "level", "event", "floor")
Place = tuple[int, int]  # run of the process, number of the next event
Raw = dict[str, Any]


def places_of(cursor: str) -> dict[int, Place]:
    """Place by shard. raises: ValueError"""
    found: dict[int, Place] = {}
    for part in cursor.split(",") if cursor else ():
        matched = PLACE.fullmatch(part)
        if matched is None:
            raise ValueError("the cursor is none that an answer has given")
        shard, run, number = map(int, matched.groups())
        found[shard] = run, number
    return found


def text_of(places: dict[int, Place]) -> str:
    return ",".join(f"{shard}.{run}.{number}" for shard, (run, number) in sorted(places.items()))


def row_of(line: Raw, cursor: str, time_us: int, source: str, shard: int | None) -> EventRow:
    """line: an event as it is written"""
    fields = {name: value for name, value in line.items() if name not in HEAD}
    return EventRow(
        cursor=cursor, time_us=time_us, level=line["level"], event=line["event"], source=source, shard=shard,
        fields=fields,
    )  # fmt: skip


def events_joined(request: q.Events, replies: list[Raw]) -> a.Events:
    """Of the answers of all shards, each {"shard", "run", "next", "lost", "events": [{"number", "time_us", "line"}]}.

    With a cursor the oldest are kept, else the newest; what is cut off is after the cursor of the answer"""
    places = places_of(request.after) if request.after else {}
    queues = [
        [(each["time_us"], each["number"], reply["shard"], reply["run"], each["line"]) for each in reply["events"]]
        for reply in replies
    ]
    merged = list(heapq.merge(*queues, key=lambda each: each[0]))
    is_cut = request.after is not None and len(merged) > request.limit
    merged = merged[: request.limit] if request.after is not None else merged[-request.limit :]
    firsts = {shard: number for _, number, shard, _, _ in reversed(merged)}
    for reply in replies:
        known = places.get(reply["shard"])
        if known is None or known[0] != reply["run"]:
            cut_off = reply["events"][0]["number"] if is_cut and reply["events"] else reply["next"]
            places[reply["shard"]] = reply["run"], firsts.get(reply["shard"], cut_off)
    rows = []
    for time_us, number, shard, run, line in merged:
        places[shard] = run, number + 1
        rows.append(row_of(line, text_of(places), time_us, "shard", shard))
    if not is_cut:
        places |= {reply["shard"]: (reply["run"], reply["next"]) for reply in replies}
    return a.Events(events=rows, cursor=text_of(places), lost=sum(reply["lost"] for reply in replies))
