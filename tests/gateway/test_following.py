"""A log is followed over HTTP: cursors at its end, requests that wait, streams that go on where they ended."""

import base64
import http.client
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import rumqd
from tests.gateway.conftest import RULES, Gateway, started


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    path: Path = tmp_path_factory.mktemp("following")
    (path / "rules.toml").write_text(RULES)
    made = started(path, f"gateway.rules_file={path}/rules.toml", "gateway.watchers_max=4", shards=2)
    yield made
    made.broker.end()


class Stream:
    """Server-sent events as a client reads them. status: of the answer; last: id of the last event"""

    def __init__(self, gateway: Gateway, query: str, token: str = "ops", path: str = "records", **headers: str) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=30)
        given = {"accept": "text/event-stream", "authorization": f"Bearer {gateway.secrets[token]}"}
        self._connection.request("GET", f"/api/v1/{path}?{query}", headers=given | headers)
        self._response = self._connection.getresponse()
        self.status, self.last = self._response.status, headers.get("last-event-id", "")

    def event(self) -> dict[str, str]:
        """The next one with data, or an empty one at the end. raises: AssertionError after a minute without"""
        for _ in range(8):
            found: dict[str, str] = {}
            while (line := self._response.readline().decode()) not in ("\n", ""):
                name, _, value = line.rstrip("\n").partition(": ")
                found[name] = value
            self.last = found.get("id", self.last)
            if "data" in found or not line:
                return found
        raise AssertionError("nothing but keep-alives")

    def line(self) -> str:
        return self._response.readline().decode()

    def payloads(self, count: int) -> list[str]:
        return [json.loads(self.event()["data"])["payload"] for _ in range(count)]

    def opened(self) -> None:
        """Until its place in the log is known."""
        while not self.last:
            line = self._response.readline().decode()
            if line.startswith("id: "):
                self.last = line[4:].strip()

    def body(self) -> Any:
        return json.loads(self._response.read())

    def __enter__(self) -> "Stream":
        return self

    def __exit__(self, *args: object) -> None:
        self._response.close()
        self._connection.close()


def cursor(gateway: Gateway, query: str, token: str = "ops") -> str:
    found: str = gateway.get(f"records?{query}", token=token)["cursor"]
    return found


def test_the_cursor_is_there_at_the_end_and_gives_what_comes(gateway: Gateway) -> None:
    at = cursor(gateway, "topic=open/end&start=latest")
    again = gateway.get(f"records?topic=open/end&cursor={at}")
    assert again == {"records": [], "cursor": at, "more": False, "lost": 0}
    gateway.publish({"topic": "open/end", "payload": "1"})
    found = gateway.get(f"records?topic=open/end&cursor={at}&wait=20")
    assert [row["payload"] for row in found["records"]] == ["1"]
    assert gateway.get(f"records?topic=open/end&cursor={found['cursor']}")["records"] == []


def test_records_that_a_filter_or_rules_leave_out_move_the_cursor(gateway: Gateway) -> None:
    at = cursor(gateway, "topic=open/wanted&start=latest")
    gateway.publish(*({"topic": f"open/unwanted/{n}"} for n in range(20)), {"topic": "open/last"})
    seen = gateway.get(f"records?topic=open/last&cursor={at}&wait=20")["cursor"]
    before, after = (json.loads(base64.urlsafe_b64decode(each)) for each in (at, seen))
    assert sum(after.values()) - sum(before.values()) >= 1
    moved = gateway.get(f"records?topic=open/wanted&cursor={at}")
    assert moved["records"] == [] and moved["cursor"] != at


def test_a_request_that_waits_is_answered_when_a_record_comes(gateway: Gateway) -> None:
    at = cursor(gateway, "topic=open/wait&start=latest")
    found: list[Any] = []

    def ask() -> None:
        found.append(gateway.get(f"records?topic=open/wait&cursor={at}&wait=24"))

    waiting = threading.Thread(target=ask)
    waiting.start()
    gateway.publish({"topic": "open/other"})
    gateway.publish({"topic": "open/wait", "payload": "here"})
    waiting.join(20)
    assert not waiting.is_alive(), "it would have waited 24 s"
    assert [row["payload"] for row in found[0]["records"]] == ["here"]
    assert gateway.get("records?topic=open/wait&start=latest&wait=0.2")["records"] == []
    assert gateway.ask("GET", "/api/v1/records?topic=open/wait&wait=26").status == 400


def test_a_stream_goes_on_behind_its_last_event_without_a_gap_and_without_a_double(gateway: Gateway) -> None:
    got: list[str] = []
    last = cursor(gateway, "topic=open/s/%2B&start=latest")
    for part in range(4):
        gateway.publish(
            *({"topic": f"open/s/{n % 3}", "payload": f"{part}-{n}"} for n in range(10)),
            *({"topic": "open/between"} for _ in range(5)),
        )
        with Stream(gateway, "topic=open/s/%2B", **{"last-event-id": last}) as stream:
            assert stream.status == 200
            got += stream.payloads(7)  # leaves in the middle of what is sent
            last = stream.last
    with Stream(gateway, "topic=open/s/%2B", **{"last-event-id": last}) as stream:
        got += stream.payloads(12)
    assert sorted(got) == sorted(f"{part}-{n}" for part in range(4) for n in range(10))


def test_a_stream_that_was_opened_at_the_end_and_saw_nothing_goes_on_there(gateway: Gateway) -> None:
    with Stream(gateway, "topic=open/quiet&start=latest") as stream:
        stream.opened()
        last = stream.last
    gateway.publish({"topic": "open/quiet", "payload": "meanwhile"})
    with Stream(gateway, "topic=open/quiet&start=latest", **{"last-event-id": last}) as stream:
        assert stream.payloads(1) == ["meanwhile"]


def test_a_stream_gives_what_the_rules_let_its_user_read(gateway: Gateway) -> None:
    last = cursor(gateway, "topic=%23&start=latest", "anna")
    for topic in ("plant/1", "open/1", "plant/2"):
        gateway.publish({"topic": topic, "payload": topic}, token="anna")
    with Stream(gateway, "topic=%23", "anna", **{"last-event-id": last}) as stream:
        assert sorted(stream.payloads(3)) == ["open/1", "plant/1", "plant/2"]
    with Stream(gateway, "topic=%23", "reader", **{"last-event-id": last}) as stream:
        assert stream.payloads(1) == ["open/1"]
    with Stream(gateway, "topic=plant/1", "reader") as stream:
        assert stream.status == 403 and stream.body()["title"] == "Not permitted"


def test_watchers_of_a_token_are_bounded(gateway: Gateway) -> None:
    with Stream(gateway, "topic=open/%23&start=latest") as first:
        first.opened()
        with Stream(gateway, "topic=open/%23&start=latest") as second:
            second.opened()
            with Stream(gateway, "topic=open/%23&start=latest") as third:
                assert third.status == 503 and "gateway.watchers_max" in third.body()["detail"]
            waiting = gateway.ask("GET", "/api/v1/records?topic=open/%23&start=latest&wait=5")
            assert waiting.status == 503 and waiting.headers["retry-after"]
            assert gateway.ask("GET", "/api/v1/records?topic=open/%23").status == 200


def test_a_cursor_that_is_none_is_refused(gateway: Gateway) -> None:
    with Stream(gateway, "topic=open/1", **{"last-event-id": "nonsense"}) as stream:
        assert stream.status == 400 and "cursor" in stream.body()["detail"]


def test_a_stream_ends_when_its_token_is_removed(gateway: Gateway) -> None:
    with Stream(gateway, "topic=open/%23&start=latest", "reader") as stream:
        stream.opened()
        removed = rumqd("token", "remove", "reader", "--data", str(gateway.broker.data))
        assert removed.status == 0, removed.err
        gateway.act("reload")
        end = stream.event()
        assert end["event"] == "end" and json.loads(end["data"])["status"] == 401
        assert stream.event() == {}
