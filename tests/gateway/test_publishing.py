"""What may be published over REST: texts, JSON, bytes; and where the answer says that each message lies."""

import json
import threading
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from rumq.gateway.contract.messages import decoded
from tests.gateway.conftest import Gateway, started


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    made = started(tmp_path_factory.mktemp("publishing"), shards=2)
    yield made
    made.broker.end()


def sent(message: dict[str, Any] | str) -> tuple[bytes, str | None]:
    """Payload and content type of a message in JSON."""
    text = message if isinstance(message, str) else json.dumps(message)
    (found,) = decoded(text.encode(), is_msgpack=False)
    return bytes(found.payload), found.properties.get("content_type")


@pytest.mark.parametrize(
    ("written", "payload"),
    [
        ('{"a": 1}', b'{"a": 1}'), ("[1, 2]", b"[1, 2]"), ("21.50", b"21.50"), ("true", b"true"),
        ("12345678901234567890123", b"12345678901234567890123"), ('{"a":"\\u00e4"}', b'{"a":"\\u00e4"}'),
    ],
)  # fmt: skip
def test_a_json_value_is_published_as_it_is_written_and_says_so(written: str, payload: bytes) -> None:
    assert sent(f'{{"topic": "a", "payload": {written}}}') == (payload, "application/json")


def test_a_text_is_a_text_unless_it_is_said_to_be_json() -> None:
    assert sent({"topic": "a", "payload": "21.5\n"}) == (b"21.5\n", None)
    assert sent({"topic": "a"}) == (b"", None)
    assert sent({"topic": "a", "payload": "x", "encoding": "json"}) == (b'"x"', "application/json")
    assert sent({"topic": "a", "payload": None, "encoding": "json"}) == (b"null", "application/json")
    assert sent({"topic": "a", "payload": "/wA=", "encoding": "base64"}) == (b"\xff\x00", None)
    own = {"topic": "a", "payload": {}, "properties": {"content_type": "application/geo+json"}}
    assert sent(own) == (b"{}", "application/geo+json")


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ({"topic": "a", "payload": None}, "null"),
        ({"topic": "a", "payload": {}, "encoding": "base64"}, "base64"),
        ({"topic": "a", "payload": 1, "encoding": "latin1"}, "latin1"),
    ],
)
def test_what_no_payload_can_be_is_refused(message: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        sent(message)


def test_the_answer_says_where_each_message_lies(gateway: Gateway) -> None:
    messages = [{"topic": f"where/{n % 3}", "payload": f"{n % 2}", "qos": 1 + n % 2} for n in range(12)]
    answer = gateway.publish(*messages).json
    assert len(answer["positions"]) == 12 and None not in answer["positions"]
    for message, at in zip(messages, answer["positions"], strict=True):
        start = f"records?topic={message['topic']}&start={at['offset']}&limit=1"
        (found,) = gateway.get(start)["records"]
        assert (found["partition"], found["lsn"]) == (at["partition"], at["lsn"])
        assert (found["payload"], found["qos"]) == (message["payload"], message["qos"])
    assert len({(at["partition"], at["lsn"]) for at in answer["positions"]}) == 12


def test_equal_messages_of_requests_at_the_same_time_have_places_of_their_own(gateway: Gateway) -> None:
    found: list[Any] = []

    def publish() -> None:
        for _ in range(3):
            found.extend(gateway.publish(*[{"topic": "same", "payload": "same"}] * 5).json["positions"])

    threads = [threading.Thread(target=publish) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(at["offset"] for at in found) == list(range(60))


def test_without_positions_the_answer_has_none(gateway: Gateway) -> None:
    answer = gateway.ask("POST", "/api/v1/publish?positions=false", {"topic": "without"})
    assert answer.json == {"accepted": 1, "refused": [], "positions": []}
    other = gateway.publish({"topic": "without"}).json["positions"]
    assert other[0]["offset"] == 1, "that of the other connection is not taken for it"


@pytest.mark.parametrize("kind", ["application/msgpack", "application/x-msgpack", "application/vnd.msgpack"])
def test_messagepack_has_these_names(gateway: Gateway, kind: str) -> None:
    body = msgspec.msgpack.encode({"topic": "packed", "payload": b"\x00"})
    assert gateway.ask("POST", "/api/v1/publish", body, headers={"content-type": kind}).status == 200


def test_what_is_not_taken_names_what_is(gateway: Gateway) -> None:
    answer = gateway.ask("POST", "/api/v1/publish", b"a=1", headers={"content-type": "text/csv"})
    assert answer.status == 415
    for words in ("text/csv", "application/json", "application/msgpack"):
        assert words in answer.json["detail"]
