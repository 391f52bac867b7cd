"""The log of one topic over HTTP: by its name in the path, from a number, a time or a cursor on, also as it comes."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.gateway.conftest import RULES, Gateway, started
from tests.gateway.contract.test_problems import expect_problem
from tests.gateway.test_following import Stream


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    path: Path = tmp_path_factory.mktemp("topic-log")
    (path / "rules.toml").write_text(RULES.replace('"open/#"', '"open/#", "/open/#"'))
    made = started(path, f"gateway.rules_file={path}/rules.toml", shards=2)
    yield made
    made.broker.end()


def filled(gateway: Gateway, topic: str, count: int = 5) -> None:
    answer = gateway.publish(*({"topic": topic, "payload": f"m{n}"} for n in range(count)))
    assert answer.status == 200 and all(answer.json["positions"]), answer


def log_of(gateway: Gateway, topic: str, query: str = "", **more: Any) -> Any:
    return gateway.get(f"topics/{topic}/records{query}", **more)


def ids(found: Any) -> list[int]:
    return [row["id"] for row in found["records"]]


def test_the_id_is_the_number_in_the_topic_from_1_without_gaps(gateway: Gateway) -> None:
    filled(gateway, "open/ids/a")
    filled(gateway, "open/ids/b", 2)
    filled(gateway, "open/ids/a", 2)
    found = log_of(gateway, "open/ids/a")
    assert ids(found) == list(range(1, 8)) and {row["topic"] for row in found["records"]} == {"open/ids/a"}
    assert [row["id"] - row["offset"] for row in found["records"]] == [1] * 7
    assert ids(log_of(gateway, "open/ids/b")) == [1, 2]
    assert ids(gateway.get("records?topic=open/ids/b")) == [1, 2], "as records has it"
    assert gateway.get("value?topic=open/ids/b")["record"]["id"] == 2


def test_from_a_number_gives_what_follows_the_id_of_that_number(gateway: Gateway) -> None:
    filled(gateway, "open/from")
    assert ids(log_of(gateway, "open/from", "?from=0")) == [1, 2, 3, 4, 5]
    assert ids(log_of(gateway, "open/from", "?from=3")) == [4, 5]
    assert ids(log_of(gateway, "open/from", "?from=5")) == ids(log_of(gateway, "open/from", "?from=500")) == []
    assert ids(log_of(gateway, "open/from", "?from=earliest&limit=2")) == [1, 2]
    assert ids(log_of(gateway, "open/from", "?from=latest")) == []
    assert ids(log_of(gateway, "open/from", "?from=-1h")) == [1, 2, 3, 4, 5]
    assert ids(log_of(gateway, "open/from", "?from=2126-01-01T00:00:00Z")) == []


@pytest.mark.parametrize("topic", ["open/x", "/open//y/", "open/records", "open/é ?&=;", "open/a%2Fb", "open/.."])
def test_a_topic_is_named_with_slashes_as_they_are_or_escaped(gateway: Gateway, topic: str) -> None:
    assert gateway.publish({"topic": topic, "payload": topic}).status == 200
    for written in (quote(topic), quote(topic, safe="")):
        assert [row["payload"] for row in log_of(gateway, written)["records"]] == [topic]


def test_pages_join_to_the_whole_log(gateway: Gateway) -> None:
    filled(gateway, "open/pages", 23)
    found = log_of(gateway, "open/pages", "?limit=4")
    seen = ids(found)
    while found["more"]:
        found = log_of(gateway, "open/pages", f"?limit=4&cursor={found['cursor']}")
        seen += ids(found)
    assert seen == list(range(1, 24))


def test_a_request_that_waits_gets_the_next_record(gateway: Gateway) -> None:
    filled(gateway, "open/wait")
    found: list[Any] = []
    waiting = threading.Thread(target=lambda: found.append(log_of(gateway, "open/wait", "?from=5&wait=24")))
    waiting.start()
    filled(gateway, "open/wait", 1)
    waiting.join(20)
    assert [ids(each) for each in found] == [[6]]


def test_a_topic_to_which_nothing_was_published_is_not_found_and_can_be_waited_for(gateway: Gateway) -> None:
    problem = expect_problem(gateway.ask("GET", "/api/v1/topics/open/none/records"), "not-found")
    assert "'open/none'" in problem["detail"] and "wait=" in problem["detail"]
    expect_problem(gateway.ask("GET", "/api/v1/topics/open/none/records?wait=0.3"), "not-found")
    with Stream(gateway, "", path="topics/open/none/records") as stream:
        assert stream.status == 404
    found: list[Any] = []
    waiting = threading.Thread(target=lambda: found.append(log_of(gateway, "open/none", "?wait=24")))
    waiting.start()
    filled(gateway, "open/none", 1)
    waiting.join(20)
    assert [ids(each) for each in found] == [[1]]
    assert ids(log_of(gateway, "open/none", "?from=latest")) == [], "it is there, and has nothing more"


def test_a_stream_of_one_topic_goes_on_behind_its_last_event_or_id(gateway: Gateway) -> None:
    filled(gateway, "open/stream", 3)
    with Stream(gateway, "from=1", path="topics/open%2Fstream/records") as stream:
        assert stream.status == 200
        events = [stream.event(), stream.event()]
        assert [json.loads(each["data"])["id"] for each in events] == [2, 3]
        filled(gateway, "open/stream", 1)
        assert json.loads(stream.event()["data"])["id"] == 4
    again = {"last-event-id": events[0]["id"]}
    with Stream(gateway, "from=1", path="topics/open/stream/records", **again) as stream:
        assert [json.loads(stream.event()["data"])["id"] for _ in range(2)] == [3, 4]


def test_other_forms_are_those_of_records(gateway: Gateway) -> None:
    filled(gateway, "open/forms", 3)
    answer = gateway.ask("GET", "/api/v1/topics/open/forms/records", headers={"accept": "application/x-ndjson"})
    lines = [json.loads(line) for line in answer.body.splitlines()]
    assert [each["id"] for each in lines] == [1, 2, 3] and answer.headers["rumq-more"] == "false"
    assert ids(log_of(gateway, "open/forms", "?contains=m1")) == [2]


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("open/%23", "wildcard"),
        ("open/%2B/x", "wildcard"),
        ("", "length"),
        ("open/a%00b", "U+0000"),
        ("open/a%FFb", "no UTF-8"),
        ("open/x?from=", "length"),
        ("open/x?from=nonsense", "cannot replay from 'nonsense'"),
        ("open/x?from=retained@-1h", "retained@"),
        ("open/x?start=3", "unknown parameter 'start'"),
        ("open/x?topic=open/y", "unknown parameter 'topic'"),
        ("open/x?wait=26", "wait"),
        ("open/x?limit=0", "limit"),
        ("open/x?cursor=nonsense", "cursor"),
        ("x" * 8_000, "permitted"),
    ],
)
def test_what_is_wrong_is_said(gateway: Gateway, path: str, says: str) -> None:
    topic, _, query = path.partition("?")
    answer = gateway.ask("GET", f"/api/v1/topics/{topic}/records?{query}")
    problem = expect_problem(answer, "forbidden" if says == "permitted" else "bad-request")
    assert says in problem["detail"] and len(problem["detail"]) < 800


def test_the_rules_come_before_everything_else(gateway: Gateway) -> None:
    filled(gateway, "open/rules")
    for topic in ("plant/1", "plant/none"):
        expect_problem(gateway.ask("GET", f"/api/v1/topics/{topic}/records", token="reader"), "forbidden")
    assert gateway.ask("GET", "/api/v1/topics/open/rules/records", token="sender").status == 403
    assert gateway.ask("GET", "/api/v1/topics/open/rules/records", token=None).status == 401
    expect_problem(gateway.ask("POST", "/api/v1/topics/open/rules/records", {}), "method-not-allowed")
