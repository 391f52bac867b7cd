"""REST over a real broker: tokens and roles, publish and fetch under the rules of MQTT, actions and their audit."""

import base64
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from rumq.admin.operations import TABLE
from tests.gateway.conftest import RULES, Gateway, started


def test_health_is_open_and_everything_else_needs_a_token(gateway: Gateway) -> None:
    for path in ("/healthz", "/readyz", "/startupz"):
        answer = gateway.ask("GET", path, token=None)
        assert (answer.status, answer.json["ok"]) == (200, True)
    answer = gateway.ask("GET", "/api/v1/status", token=None)
    assert answer.status == 401 and answer.headers["www-authenticate"].startswith("Bearer")
    assert gateway.ask("GET", "/metrics", token=None).status == 401


@pytest.mark.parametrize(
    ("token", "method", "path", "status"),
    [
        ("reader", "GET", "/api/v1/status", 200),
        ("reader", "POST", "/api/v1/actions/unban", 403),
        ("reader", "POST", "/api/v1/publish", 403),
        ("reader", "GET", "/api/v1/users", 403),
        ("reader", "GET", "/metrics", 200),
        ("sender", "GET", "/api/v1/status", 403),
        ("sender", "POST", "/api/v1/publish", 200),
        ("ops", "POST", "/api/v1/actions/unban", 200),
    ],
)
def test_a_token_may_what_its_roles_say(gateway: Gateway, token: str, method: str, path: str, status: int) -> None:
    body = {"topic": "t"} if path.endswith("publish") else {"kind": "client", "name": "x"}
    assert gateway.ask(method, path, body if method == "POST" else None, token=token).status == status


@pytest.mark.parametrize("operation", [each for each in TABLE if not each.is_action], ids=lambda each: each.name)
def test_every_query_answers_as_described(gateway: Gateway, operation: object) -> None:
    name = operation.name  # type: ignore[attr-defined]
    gateway.publish({"topic": "a"})  # its connection is a client
    own = gateway.get("clients?client=rumq-gateway-*")["clients"][0]["client_id"]
    found = gateway.get(
        {
            "client": f"client?client={own}",
            "waiting": f"waiting?client={own}",
            "subscribers": "subscribers?topic=a",
        }.get(name, name)
    )
    assert msgspec.to_builtins(msgspec.convert(found, operation.answer)) == found  # type: ignore[attr-defined]


def test_what_is_published_is_found_by_topic_offset_and_time(gateway: Gateway) -> None:
    payload = base64.b64encode(b"\xff\x00").decode()
    answer = gateway.publish(
        *({"topic": "fetch/a", "payload": str(n), "qos": n % 3} for n in range(5)),
        {
            "topic": "fetch/b",
            "payload": payload,
            "encoding": "base64",
            "properties": {"user_properties": [["k", "v"]]},
        },
    )
    assert answer.status == 200 and (answer.json["accepted"], answer.json["refused"]) == (6, [])
    wait_for(gateway, "fetch/%23", 6)
    found = gateway.get("records?topic=fetch/a&start=3")
    assert [(row["offset"], row["payload"]) for row in found["records"]] == [(3, "3"), (4, "4")]
    page = gateway.get("records?topic=fetch/%23&limit=4")
    assert page["more"]
    rest = gateway.get(f"records?topic=fetch/%23&cursor={page['cursor']}")
    assert [row["payload"] for row in (*page["records"], *rest["records"])] == [
        "0",
        "1",
        "2",
        "3",
        "4",
        payload,
    ]
    assert not rest["more"] and rest["records"][-1]["user_properties"] == [["k", "v"]]
    assert gateway.get("value?topic=fetch/a")["record"]["payload"] == "4"
    assert gateway.get("value?topic=fetch/nothing")["record"] is None
    assert len(gateway.get("records?topic=fetch/%23&start=-1h")["records"]) == 6
    lines = gateway.ask("GET", "/api/v1/records?topic=fetch/a", headers={"accept": "application/x-ndjson"})
    assert len(lines.body.splitlines()) == 5 and lines.headers["rumq-more"] == "false"
    packed = gateway.ask("GET", "/api/v1/value?topic=fetch/b", headers={"accept": "application/msgpack"})
    assert msgspec.msgpack.decode(packed.body)["record"]["payload"] == b"\xff\x00"


def wait_for(gateway: Gateway, topic: str, count: int) -> None:
    """Readers of the files see a record once its mark is written, up to 50 ms later."""
    while len(gateway.get(f"records?topic={topic}")["records"]) < count:
        pass


def test_messagepack_is_taken_as_json_is(gateway: Gateway) -> None:
    body = msgspec.msgpack.encode([{"topic": "packed", "payload": b"\x00\x01"}])
    answer = gateway.ask("POST", "/api/v1/publish", body, headers={"content-type": "application/msgpack"})
    assert answer.json["accepted"] == 1


def test_a_retained_message_is_listed(gateway: Gateway) -> None:
    gateway.publish({"topic": "kept/1", "payload": "on", "retain": True})
    (row,) = gateway.get("retained?topic=kept/%23")["messages"]
    assert (row["topic"], row["payload"]) == ("kept/1", "on")


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ({"topic": "a/#"}, "wildcard"),
        ({"topic": ""}, "length"),
        ({"topic": "a\x00"}, "U+0000"),
        ({"topic": "a", "qos": 3}, "qos"),
        ({"topic": "a", "payload": "!", "encoding": "base64"}, "base64"),
        ({"topic": "a", "properties": {"response_topic": "+"}}, "wildcard"),
        ({"topic": "a", "properties": {"user_properties": [["\x00", ""]]}}, "null"),
        ({"topic": "a", "qoss": 1}, "qoss"),
        ([], "1 to 1000"),
        ([{"topic": "a"}] * 1001, "1 to 1000"),
    ],
)
def test_a_malformed_message_is_refused_before_anything_is_sent(gateway: Gateway, message: object, words: str) -> None:
    answer = gateway.ask("POST", "/api/v1/publish", message)
    assert answer.status == 400 and words in answer.json["detail"], answer


def test_what_the_broker_refuses_is_told_by_number_and_the_rest_is_published(gateway: Gateway) -> None:
    answer = gateway.publish({"topic": "fine"}, {"topic": "$SYS/mine"}, {"topic": "fine"})
    assert answer.status == 422 and answer.json["accepted"] == 2
    assert answer.headers["content-type"] == "application/problem+json"
    assert [each is None for each in answer.json["positions"]] == [False, True, False]
    assert [(row["number"], row["reason"]) for row in answer.json["refused"]] == [(1, 0x87)]


def test_actions_are_audited_with_the_name_of_the_token(gateway: Gateway) -> None:
    gateway.act("ban", kind="client", name="bad", seconds=5)
    told = gateway.broker.heard(lambda event: event["event"] == "admin.action" and event["action"] == "ban")
    assert (told["token"], told["what"]["name"], told["result"]["done"]) == ("ops", "bad", 1)
    assert [row["name"] for row in gateway.get("bans")["bans"]] == ["bad"]
    answer = gateway.ask("POST", "/api/v1/actions/reset", {"client": "x", "start": "nowhere"})
    assert answer.status == 404


def test_a_partition_is_sealed_over_rest(gateway: Gateway) -> None:
    gateway.publish({"topic": "seal"})
    before = len(gateway.get("segments")["segments"])
    assert gateway.act("seal", stream="main")["done"] == 1
    gateway.publish({"topic": "seal"})
    while len(gateway.get("segments")["segments"]) == before:
        pass
    assert gateway.get("streams")["streams"][0]["segments"] == before + 1


def test_a_scrape_tells_what_was_published(gateway: Gateway) -> None:
    text = gateway.ask("GET", "/metrics").body.decode()
    assert "rumq_client_published_total" not in text, "on demand only"
    assert "rumq_up 1.0" in text and 'rumq_publish_ack_seconds_bucket{le="+Inf",shard="0"}' in text


@pytest.fixture
def ruled(tmp_path: Path) -> Iterator[Gateway]:
    (tmp_path / "rules.toml").write_text(RULES)
    made = started(tmp_path, f"auth.rules_file={tmp_path / 'rules.toml'}", "auth.guess_seconds_max=0", shards=2)
    yield made
    made.broker.end()


def test_with_two_shards_a_token_publishes_and_reads_as_its_user(ruled: Gateway) -> None:
    answer = ruled.publish({"topic": "plant/7"}, {"topic": "open/7"}, {"topic": "other"}, token="anna")
    assert [row["number"] for row in answer.json["refused"]] == [2]
    answer = ruled.publish({"topic": "plant/7"}, {"topic": "open/8"}, token="ops")
    assert [row["number"] for row in answer.json["refused"]] == [0], "ops comes as nobody"
    while len(ruled.get("records?topic=%23", token="anna")["records"]) < 3:
        pass
    assert {row["topic"] for row in ruled.get("records?topic=%23")["records"]} == {"open/7", "open/8"}
    assert len(ruled.get("shards")["shards"]) == 2
    assert {row["topic"] for row in ruled.get("topics")["topics"]} == {"plant/7", "open/7", "open/8"}
    allowed = ruled.get("rules?action=publish&topic=plant/1&user=anna")
    assert allowed["allowed"] and allowed["reasons"] == [{"rule": 1, "effect": "allows", "filter": "plant/#"}]
    refused = ruled.get("rules?action=publish&topic=plant/1")
    assert not refused["allowed"] and refused["reasons"] == []
    ruled.act("drain")
    answer = ruled.ask("GET", "/readyz", token=None)
    while answer.status == 200:
        answer = ruled.ask("GET", "/readyz", token=None)
    assert answer.status == 503 and "drained" in answer.json["why"]
