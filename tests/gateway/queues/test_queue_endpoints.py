"""Queues over REST: the nine routes of the middleware that rumq takes up, with their traps, and what is beside them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.gateway.queues.desk import Desk, at_desk

SETTINGS = {"ttl_seconds": 60, "records_max": 3, "when_full": "refuse"}
BAD_LABELS = ["%2B", "%23", "a%00", "$queues", "x" * 201, "a%2Fb%2Fc", "%F0%9F", "..%2F..%2Fetc", "' OR 1=1"]


def test_a_queue_is_created_told_listed_and_deleted(tmp_path: Path) -> None:
    async def body(desk: Desk) -> None:
        answer = await desk.ask("POST", "queues/News", SETTINGS)
        assert answer.status_code == 201
        made = answer.json()
        assert (made["label"], made["host"], made["port"]) == ("news", "127.0.0.1", 8443)
        assert {name: made[name] for name in SETTINGS} == SETTINGS and made["owner"] == "ops"
        again = await desk.ask("POST", "queues/NEWS", SETTINGS)
        assert again.status_code == 200 and again.json()["created_us"] == made["created_us"]
        assert (await desk.done("GET", "queues/nEwS"))["label"] == "news"
        await desk.done("POST", "queues/comments")
        assert [row["label"] for row in (await desk.done("GET", "queues"))["queues"]] == ["comments", "news"]
        assert [row["label"] for row in (await desk.done("GET", "queues?label=EW"))["queues"]] == ["news"]
        assert await desk.done("DELETE", "queues/NEWS") == {"removed": "news"}
        await desk.refused(404, "GET", "queues/news")
        await desk.refused(404, "DELETE", "queues/news")
        assert [row["label"] for row in (await desk.done("GET", "queues"))["queues"]] == ["comments"]
        actions = [each["action"] for each in desk.place.events if each["event"] == "admin.action"]
        assert actions == ["create_queue", "create_queue", "create_queue", "delete_queue"]

    at_desk(tmp_path, body)


def test_a_queue_that_is_there_with_other_settings_is_a_conflict(tmp_path: Path) -> None:
    async def body(desk: Desk) -> None:
        await desk.done("POST", "queues/news", SETTINGS)
        problem = await desk.refused(409, "POST", "queues/news", {"ttl_seconds": 61})
        assert "'news'" in problem["detail"]

    at_desk(tmp_path, body)


@pytest.mark.parametrize(
    "settings", [{"ttl_seconds": 0}, {"records_max": -1}, {"when_full": "explode"}, {"ttl": 5}, [], "x", {"label": "y"}]
)
def test_settings_that_cannot_be_meant_are_refused(tmp_path: Path, settings: Any) -> None:
    async def body(desk: Desk) -> None:
        await desk.refused(400, "POST", "queues/news", settings)
        await desk.refused(404, "GET", "queues/news")

    at_desk(tmp_path, body)


def test_channels_are_created_for_a_topic_or_for_all_told_listed_and_deleted(tmp_path: Path) -> None:
    async def body(desk: Desk) -> None:
        await desk.done("POST", "queues/news")
        answer = await desk.ask("PUT", "queues/News/channels/Sports/Tennis", None, "app")
        assert answer.status_code == 201
        one = answer.json()
        assert (one["host"], one["port"], one["label"], one["topic"]) == ("127.0.0.1", 8443, "news", "sports/tennis")
        assert one["share"] == f"$share/{one['id']}/$queues/news/sports/tennis" and one["owner"] == "app"
        given = {"id": "Mine", "visible_seconds": 5, "is_ordered": True}
        every = await desk.ask("POST", "queues/news/channels", given, "app")
        assert every.status_code == 201 and (every.json()["id"], every.json()["topic"]) == ("mine", None)
        assert (await desk.ask("POST", "queues/news/channels", given, "app")).status_code == 200
        await desk.refused(409, "POST", "queues/news/channels", {"id": "mine"}, "app")
        assert (await desk.done("GET", f"channels/{one['id'].upper()}"))["id"] == one["id"]
        assert (await desk.done("GET", "queues/news/topics")) == {"topics": ["sports/tennis"]}
        await desk.done("POST", "queues/other")
        assert len((await desk.done("GET", "channels"))["channels"]) == 2
        assert (await desk.done("GET", "channels?queue=OTHER"))["channels"] == []
        assert sorted((await desk.done("GET", "queues/news"))["channels"]) == sorted([one["id"], "mine"])
        assert await desk.done("DELETE", "channels/MINE", token="app") == {"removed": "mine"}
        assert len((await desk.done("GET", "channels"))["channels"]) == 1
        await desk.done("DELETE", "queues/news")
        await desk.refused(404, "GET", f"channels/{one['id']}")

    at_desk(tmp_path, body)


def test_the_topic_of_messages_without_one_is_reserved(tmp_path: Path) -> None:
    async def body(desk: Desk) -> None:
        await desk.done("POST", "queues/news")
        for name in ("__none__", "__NONE__"):
            problem = await desk.refused(400, "PUT", f"queues/news/channels/{name}")
            assert "__none__" in problem["detail"] and "reserved" in problem["detail"]
            await desk.refused(400, "POST", "queues/news/channels", {"topic": name})
            answer = await desk.ask("POST", "queues/news/messages", {"topic": name, "payload": "x"})
            assert answer.status_code == 422 and "reserved" in answer.json()["refused"][0]["why"]
        assert (await desk.done("GET", "queues/news/messages"))["messages"] == []

    at_desk(tmp_path, body)


@pytest.mark.parametrize("channel", ["x", "-1", "0", "%00", "a%20b", "..", "%F0%9F", "9" * 64, "9" * 70, "$c", "%23"])
def test_a_bad_channel_id_is_refused_and_nothing_breaks(tmp_path: Path, channel: str) -> None:
    async def body(desk: Desk) -> None:
        for method, path, given in (
            ("GET", f"channels/{channel}", None),
            ("DELETE", f"channels/{channel}", None),
            ("GET", f"channels/{channel}/messages", None),
            ("POST", f"channels/{channel}/acknowledgements", {"consumer": "c", "acknowledge": ["1@x"]}),
            ("POST", f"channels/{channel}/purge", None),
        ):
            answer = await desk.ask(method, path, given)
            assert answer.status_code in (400, 404), (method, path, answer.text)
            assert answer.headers["content-type"] == "application/problem+json"

    at_desk(tmp_path, body)


@pytest.mark.parametrize("label", BAD_LABELS)
def test_a_bad_label_is_refused_and_nothing_breaks(tmp_path: Path, label: str) -> None:
    async def body(desk: Desk) -> None:
        for method, path, given in (
            ("POST", f"queues/{label}", None),
            ("POST", f"queues/{label}/messages", {"payload": "x"}),
            ("PUT", f"queues/{label}/channels/t", None),
        ):
            answer = await desk.ask(method, path, given)
            if label == BAD_LABELS[-1] and path == f"queues/{label}":
                assert answer.status_code == 201, "a name as any other"
                return
            assert answer.status_code in (400, 404, 405), (method, path, answer.text)
        assert (await desk.done("GET", "queues"))["queues"] == []

    at_desk(tmp_path, body)


def test_messages_are_pushed_and_looked_at(tmp_path: Path) -> None:
    async def body(desk: Desk) -> None:
        await desk.done("POST", "queues/news")
        one = await desk.done("POST", "queues/News/messages", {"topic": "Sports", "payload": "goal"}, "app")
        assert one == {"accepted": 1, "ids": ["1@sports"]}
        some = [
            {"payload": {"a": 1}, "key": "k", "headers": [["h", "v"]]},
            {"payload": "AP8=", "encoding": "base64", "content_type": "x/y"},
        ]
        assert (await desk.done("POST", "queues/news/messages", some))["ids"] == ["1@__none__", "2@__none__"]
        packed = msgspec.msgpack.encode([{"topic": "sports", "payload": b"\xff\x00"}])
        answer = await desk.done("POST", "queues/news/messages", packed, **{"content-type": "application/msgpack"})
        assert answer["ids"] == ["2@sports"]
        assert (await desk.done("POST", "queues/news/messages?ids=false", {"payload": "x"}))["ids"] == []
        seen = (await desk.done("GET", "queues/news/messages?max=3"))["messages"]
        assert [(row["id"], row["topic"], row["number"], row["payload"], row["encoding"]) for row in seen] == [
            ("1@sports", "sports", 1, "goal", "utf-8"),
            ("1@__none__", None, 1, '{"a": 1}' if " " in seen[1]["payload"] else '{"a":1}', "utf-8"),
            ("2@__none__", None, 2, "AP8=", "base64"),
        ]
        assert (seen[1]["key"], seen[1]["headers"], seen[1]["content_type"]) == ("k", [["h", "v"]], "application/json")
        rest = (await desk.done("GET", f"queues/news/messages?after_us={seen[-1]['pushed_us']}"))["messages"]
        assert [row["number"] for row in rest] == [2, 3]
        raw = await desk.ask("GET", "queues/news/messages?topic=SPORTS", accept="application/msgpack")
        assert [row["payload"] for row in msgspec.msgpack.decode(raw.content)["messages"]] == [b"goal", b"\xff\x00"]
        assert (await desk.done("GET", "queues/news"))["depth"] == 5

    at_desk(tmp_path, body)


def test_a_full_queue_answers_429_with_what_was_refused_and_the_others_are_pushed(tmp_path: Path) -> None:
    async def body(desk: Desk) -> None:
        await desk.done("POST", "queues/news", SETTINGS)
        batch = [{"payload": str(n)} for n in range(5)]
        answer = await desk.ask("POST", "queues/news/messages", batch)
        problem = answer.json()
        assert answer.status_code == 429 and answer.headers["retry-after"]
        assert problem["type"] == "/api/v1/docs#queue-full" and "bound is 3" in problem["detail"]
        assert (problem["accepted"], problem["ids"][:3]) == (3, ["1@__none__", "2@__none__", "3@__none__"])
        assert [(each["number"], each["kind"]) for each in problem["refused"]] == [(3, "full"), (4, "full")]
        assert len((await desk.done("GET", "queues/news/messages"))["messages"]) == 3

    at_desk(tmp_path, body)


@pytest.mark.parametrize(
    ("body", "seen"),
    [({"messages": [{"payload": "x"}]}, "unknown field `messages`"), ({"qos": 1}, "unknown field `qos`"),
     ([{"topics": "t"}], "unknown field `topics`"), (7, "got `int`"), ("x", "got `str`")],
)  # fmt: skip
def test_a_body_that_is_no_message_is_told_what_one_is(tmp_path: Path, body: Any, seen: str) -> None:
    async def ask(desk: Desk) -> None:
        await desk.done("POST", "queues/news")
        for problem in (
            await desk.refused(400, "POST", "queues/news/messages", body),
            (await desk.ask("POST", "queues/news/messages", msgspec.msgpack.encode(body),
                            **{"content-type": "application/msgpack"})).json(),
        ):  # fmt: skip
            assert seen in problem["detail"]
            assert "without an object around it" in problem["detail"]
            assert "fields of a message: topic, payload, encoding, key" in problem["detail"]

    at_desk(tmp_path, ask)


@pytest.mark.parametrize(
    "message",
    [
        [],
        [{"payload": "x"}] * 1001,
        {"payload": None},
        {"payload": "!", "encoding": "base64"},
        {"delay_seconds": -1},
        {"expiry_seconds": 0},
        {"topic": ""},
        {"topic": "t" * 501},
        {"headers": [["a"]]},
        {"qos": 1},
        7,
    ],
)
def test_messages_that_cannot_be_meant_are_refused(tmp_path: Path, message: Any) -> None:
    async def body(desk: Desk) -> None:
        await desk.done("POST", "queues/news")
        await desk.refused(400, "POST", "queues/news/messages", message)
        await desk.refused(404, "POST", "queues/none/messages", {"payload": "x"})
        answer = await desk.ask("POST", "queues/news/messages", b"<a/>", **{"content-type": "text/xml"})
        assert answer.status_code == 415

    at_desk(tmp_path, body)


def test_dead_letters_are_looked_at_and_sent_back_and_what_waits_is_purged(tmp_path: Path) -> None:
    async def body(desk: Desk) -> None:
        await desk.done("POST", "queues/news")
        assert (await desk.done("GET", "queues/News/dead-letters"))["messages"] == []
        await desk.refused(404, "GET", "queues/none/dead-letters")
        await desk.done("POST", "queues/news.dead")
        await desk.done("POST", "queues/news.dead/messages", [{"payload": "a"}, {"payload": "b"}])
        seen = (await desk.done("GET", "queues/News/dead-letters"))["messages"]
        assert [row["payload"] for row in seen] == ["a", "b"]
        assert (await desk.done("GET", "queues/news"))["dead"] == 2
        rows = (await desk.done("GET", "queues"))["queues"]
        assert [(row["label"], row["dead"]) for row in rows] == [("news", 2), ("news.dead", 0)]
        await desk.done("PUT", "queues/news/channels/t")
        await desk.done("POST", "queues/news/channels")
        await desk.done("POST", "queues/news/messages", [{"topic": "t", "payload": "x"}, {"payload": "y"}])
        assert await desk.done("POST", "queues/news/redrive?max=1", {}) == {"done": 1}
        assert await desk.done("POST", "queues/NEWS/purge") == {"done": 4}
        assert (await desk.done("GET", "queues/news"))["depth"] == 0
        await desk.refused(400, "POST", "queues/news/purge", {"all": True})

    at_desk(tmp_path, body)


ROLES = [
    ("GET", "queues", "read"),
    ("GET", "queues/news", "read"),
    ("GET", "queues/news/topics", "read"),
    ("GET", "queues/news/messages", "read"),
    ("GET", "queues/news/dead-letters", "read"),
    ("GET", "channels", "read"),
    ("GET", "channels/c", "read"),
    ("POST", "queues/news", "administer"),
    ("DELETE", "queues/news", "administer"),
    ("POST", "queues/news/purge", "administer"),
    ("POST", "queues/news/redrive", "administer"),
    ("POST", "channels/c/purge", "administer"),
    ("POST", "queues/news/messages", "publish"),
    ("POST", "queues/news/channels", "consume"),
    ("PUT", "queues/news/channels/t", "consume"),
    ("DELETE", "channels/c", "consume"),
    ("GET", "channels/c/messages", "consume"),
    ("POST", "channels/c/acknowledgements", "consume"),
    ("DELETE", "channels/c/consumers/x", "consume"),
]


@pytest.mark.parametrize(("method", "path", "role"), ROLES)
def test_each_needs_its_role_and_the_rules_of_the_user_hold(tmp_path: Path, method: str, path: str, role: str) -> None:
    bodies = {"queues/news/messages": {"payload": "x"}, "channels/c/acknowledgements": {"consumer": "x"}}
    given = bodies.get(path) if method == "POST" else None

    async def body(desk: Desk) -> None:
        await desk.done("POST", "queues/news")
        await desk.done("POST", "queues/news/channels", {"id": "c"})
        for token, own in (("reader", "read"), ("sender", "publish"), ("taker", "consume")):
            answer = await desk.ask(method, path, given, token)
            assert (answer.status_code == 403) == (own != role), (token, answer.text)
            assert own == role or f"may not {role}" in answer.json()["detail"]
            await desk.done("POST", "queues/news")
            await desk.done("POST", "queues/news/channels", {"id": "c"})
        answer = await desk.ask(method, path, given, "eve")
        if path in ("queues", "channels"):
            assert not any(answer.json().values())
        elif not path.endswith(("/x", "acknowledgements")):
            assert answer.status_code == 403 and "rules" in answer.json()["detail"]

    at_desk(tmp_path, body)


def test_a_broker_without_queues_says_so(tmp_path: Path) -> None:
    async def body(desk: Desk) -> None:
        desk.place.context.queues.use(None)
        for method, path, _ in ROLES:
            given = {"consumer": "x"} if path.endswith("acknowledgements") else {"payload": "x"}
            if not path.endswith("messages") and "consumer" not in given:
                given = {}
            problem = await desk.refused(404, method, path, given if method != "GET" else None)
            assert "queues.enabled" in problem["detail"]

    at_desk(tmp_path, body)
