"""Server-sent events: what is sent for a piece of the log, keep-alives by a fake clock, and how a stream ends."""

import json
from contextlib import nullcontext
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from rumq.gateway.access.admission import Unauthorized
from rumq.gateway.contract.problems import problem_of
from rumq.gateway.handlers.event_stream import KEEP_ALIVE_SECONDS, EventStream, as_events
from rumq.gateway.records.log_watch import TooManyWatch
from rumq.gateway.records.record_rows import Record
from rumq.gateway.records.records import Cursor, RecordSlice, cursor_of


def record(lsn: int, partition: str = "main/g1/p0", payload: str = "x") -> Record:
    return Record(
        topic="a", offset=lsn, partition=partition, lsn=lsn, time_us=0, qos=1, retain=False, payload=payload,
        encoding="utf-8",
    )  # fmt: skip


def piece(*records: Record, begin: Cursor, end: Cursor, lost: int = 0) -> RecordSlice:
    return RecordSlice(list(records), begin, end, False, lost)


def parsed(data: bytes) -> list[dict[str, str]]:
    """As HTML, 9.2.6 has it: comments are left out, fields of a name joined."""
    found = []
    for block in data.decode().split("\n\n")[:-1]:
        event: dict[str, str] = {}
        for line in block.split("\n"):
            name, _, value = line.partition(":")
            if name:
                event[name] = value.removeprefix(" ")
        found.append(event)
    return found


def test_the_id_of_each_record_is_a_cursor_behind_it_and_behind_nothing_else() -> None:
    begin = {"main/g1/p0": 5, "main/g1/p1": 7}
    found = parsed(
        as_events(
            piece(
                record(6), record(8), record(7, "main/g1/p1"), begin=begin,
                end={"main/g1/p0": 9, "main/g1/p1": 8},
            )
        )
    )  # fmt: skip
    assert [cursor_of(each["id"]) for each in found] == [
        {"main/g1/p0": 7, "main/g1/p1": 7},
        {"main/g1/p0": 9, "main/g1/p1": 7},
        {"main/g1/p0": 9, "main/g1/p1": 8},
    ]
    assert [json.loads(each["data"])["lsn"] for each in found] == [6, 8, 7]


def test_what_a_filter_leaves_out_moves_the_id_without_an_event() -> None:
    (found,) = parsed(as_events(piece(begin={"main/g1/p0": 5}, end={"main/g1/p0": 900})))
    assert cursor_of(found["id"]) == {"main/g1/p0": 900} and "data" not in found


def test_a_payload_with_line_breaks_stays_one_event() -> None:
    text = "a\n\ndata: b\r\nid: 0\n\n"
    found = parsed(as_events(piece(record(0, payload=text), begin={"main/g1/p0": 0}, end={"main/g1/p0": 1})))
    assert len(found) == 1 and json.loads(found[0]["data"])["payload"] == text


def test_records_that_are_lost_are_told() -> None:
    found = parsed(as_events(piece(begin={"main/g1/p0": 0}, end={"main/g1/p0": 4}, lost=4)))
    assert (found[0]["event"], json.loads(found[0]["data"])) == ("lost", {"records": 4})


class Watcher:
    """Has nothing to tell. fails_after: pieces"""

    def __init__(self, fails_after: int = 10**9) -> None:
        self.left = fails_after

    async def next_piece(self, limit: int, bytes_max: int, seconds: float) -> RecordSlice:
        await trio.sleep(seconds)
        self.left -= 1
        if self.left < 0:
            raise Unauthorized("the token was removed or changed")
        return piece(begin={}, end={})


def streamed(watcher: Watcher, seconds: float, place: Any = nullcontext) -> tuple[list[dict[str, Any]], bool]:
    """What is sent while a client listens for so long, and whether the application ended by itself before."""
    sent: list[dict[str, Any]] = []
    ended: list[bool] = []

    async def receive() -> dict[str, Any]:
        await trio.sleep(seconds)
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    async def body() -> None:
        stream = EventStream(watcher, piece(begin={}, end={}), place, problem_of)  # type: ignore[arg-type]
        await stream({"type": "http", "method": "GET"}, receive, send)
        ended.append(trio.current_time() - began < seconds)

    async def run() -> None:
        nonlocal began
        began = trio.current_time()
        await body()

    began = 0.0
    trio.run(run, clock=MockClock(autojump_threshold=0))
    return sent, ended[0]


def test_a_silent_log_is_told_every_15_seconds_until_the_client_leaves() -> None:
    sent, is_ended = streamed(Watcher(), 4 * KEEP_ALIVE_SECONDS + 1)
    assert not is_ended
    assert dict(sent[0]["headers"])[b"content-type"].startswith(b"text/event-stream")
    assert b"content-length" not in dict(sent[0]["headers"])
    bodies = [each["body"] for each in sent[1:]]
    assert len(bodies) == 5 and bodies[0].startswith(b"retry: 2000\n")
    assert all(body.startswith(b": \n") for body in bodies[1:])


def test_the_last_event_says_why_a_stream_ends() -> None:
    sent, is_ended = streamed(Watcher(fails_after=2), 1000)
    assert is_ended and not sent[-1]["more_body"]
    (last,) = parsed(sent[-1]["body"])
    assert last["event"] == "end" and json.loads(last["data"])["status"] == 401


def test_a_stream_without_a_place_is_refused_by_its_status() -> None:
    def full() -> Any:
        raise TooManyWatch("2 requests follow the log already")

    sent, _ = streamed(Watcher(), 1000, full)
    assert sent[0]["status"] == 503


@pytest.mark.parametrize("text", ["x", "e30", "WzFd", "eyJhIjotMX0=", "eyJhIjoiMSJ9", "é"])
def test_a_cursor_that_no_answer_has_given_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="cursor"):
        cursor_of(text)
