"""Queues over REST at a broker: the nine routes of the middleware that rumq takes up, and messages from end to end."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import rumqd
from tests.conformance.peer import Peer
from tests.gateway.conftest import Answered, Gateway, started
from tests.gateway.contract.test_problems import expect_problem
from tests.gateway.test_following import Stream
from tests.tries import tries

RULES = """
[[rule]]
users = ["anna"]
allow = ["publish", "subscribe", "replay", "retain"]
topics = ["$queues/anna/#"]

[[rule]]
users = ["anna"]
allow = ["publish"]
topics = ["$queues/letterbox/#"]
"""


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    made = ready(started(tmp_path_factory.mktemp("queues"), "queues.enabled=true"))
    yield made
    assert not made.broker.named("gateway.failed")
    made.broker.end()


def ready(gateway: Gateway, path: str = "queues/ready", token: str = "ops") -> Gateway:
    """Once its queues are known, which takes the gateway a moment more than to listen."""
    for _ in tries():
        if gateway.ask("POST", f"/api/v1/{path}", token=token).status != 503:
            return gateway
    raise AssertionError("no queues")


def done(gateway: Gateway, method: str, path: str, body: Any = None, **more: Any) -> Any:
    answer = gateway.ask(method, f"/api/v1/{path}", body, **more)
    assert answer.status in (200, 201), answer
    return answer.json


def refused(gateway: Gateway, status: int, method: str, path: str, body: Any = None, **more: Any) -> Answered:
    answer = gateway.ask(method, f"/api/v1/{path}", body, **more)
    assert answer.status == status, answer
    return answer


def taken(gateway: Gateway, channel: str, count: int, query: str = "consumer=me") -> list[dict[str, Any]]:
    """So many messages of a channel, however many requests it takes."""
    found: list[dict[str, Any]] = []
    for _ in range(20):
        found += done(gateway, "GET", f"channels/{channel}/messages?wait=20&max=1000&{query}")["messages"]
        if len(found) >= count:
            return found
    raise AssertionError(f"{len(found)} of {count} came")


# The nine routes. Each answer of a queue has label, host and port, of a channel id, host and port.


def test_route_1_post_a_queue(gateway: Gateway) -> None:
    answer = gateway.ask("POST", "/api/v1/queues/Route1")
    assert answer.status == 201
    made = answer.json
    assert (made["label"], made["host"], made["port"]) == ("route1", "127.0.0.1", gateway.port)
    assert (made["ttl_seconds"], made["records_max"], made["when_full"]) == (600, 10_000, "refuse")
    assert gateway.ask("POST", "/api/v1/queues/ROUTE1").status == 200, "labels are unique, in any case"
    refused(gateway, 409, "POST", "queues/route1", {"records_max": 7})


def test_route_2_delete_a_queue_its_messages_and_channels_and_nobody_elses(gateway: Gateway) -> None:
    for label in ("gone", "stays"):
        done(gateway, "POST", f"queues/{label}")
        done(gateway, "POST", f"queues/{label}/channels", {"id": f"of-{label}"})
        done(gateway, "POST", f"queues/{label}/messages", {"payload": label})
    assert done(gateway, "DELETE", "queues/GONE") == {"removed": "gone"}
    refused(gateway, 404, "GET", "queues/gone")
    refused(gateway, 404, "GET", "channels/of-gone")
    assert [each["payload"] for each in taken(gateway, "of-stays", 1)] == ["stays"]
    done(gateway, "POST", "queues/gone")
    assert done(gateway, "GET", "queues/gone/messages")["messages"] == [], "a queue of that label begins anew"
    refused(gateway, 404, "DELETE", "queues/never-was")


def test_route_3_get_a_queue(gateway: Gateway) -> None:
    done(gateway, "POST", "queues/route3")
    found = done(gateway, "GET", "queues/Route3")
    assert (found["label"], found["host"], found["port"]) == ("route3", "127.0.0.1", gateway.port)
    refused(gateway, 404, "GET", "queues/route3-not")


def test_route_4_get_the_queues(gateway: Gateway) -> None:
    for label in ("Route4-B", "route4-a"):
        done(gateway, "POST", f"queues/{label}")
    found = done(gateway, "GET", "queues?label=ROUTE4")["queues"]
    assert [each["label"] for each in found] == ["route4-a", "route4-b"]
    assert all(each["host"] and each["port"] for each in found)


def test_route_5_get_the_topics_of_a_queue(gateway: Gateway) -> None:
    done(gateway, "POST", "queues/route5")
    for topic in ("Weather", "sports/Tennis", "weather"):
        done(gateway, "PUT", f"queues/route5/channels/{topic}")
    assert done(gateway, "GET", "queues/Route5/topics") == {"topics": ["sports/tennis", "weather"]}
    refused(gateway, 404, "GET", "queues/route5-not/topics")


def test_route_6_get_the_channels(gateway: Gateway) -> None:
    done(gateway, "POST", "queues/route6")
    made = {done(gateway, "PUT", f"queues/route6/channels/{topic}")["id"] for topic in ("a", "b")}
    found = done(gateway, "GET", "channels?queue=Route6")["channels"]
    assert {each["id"] for each in found} == made
    assert made <= {each["id"] for each in done(gateway, "GET", "channels")["channels"]}


def test_route_7_get_a_channel(gateway: Gateway) -> None:
    done(gateway, "POST", "queues/route7")
    made = done(gateway, "PUT", "queues/route7/channels/t")
    found = done(gateway, "GET", f"channels/{made['id']}")
    assert (found["id"], found["host"], found["port"]) == (made["id"], "127.0.0.1", gateway.port)


@pytest.mark.parametrize("channel", ["1", "-1", "x", "%00", "%F0%9F", "..%2F", "9" * 500, "%7B%7D", "$share", "%23"])
@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_a_bad_channel_id_is_a_fault_of_the_client_and_nothing_breaks(
    gateway: Gateway, method: str, channel: str
) -> None:
    answer = gateway.ask(method, f"/api/v1/channels/{channel}")
    assert answer.status in (400, 404), answer
    assert gateway.ask("GET", "/healthz").status == 200


def test_route_8_delete_a_channel(gateway: Gateway) -> None:
    done(gateway, "POST", "queues/route8")
    made = done(gateway, "PUT", "queues/route8/channels/t")["id"]
    assert done(gateway, "DELETE", f"channels/{made.upper()}") == {"removed": made}
    refused(gateway, 404, "GET", f"channels/{made}")
    refused(gateway, 404, "DELETE", f"channels/{made}")
    assert done(gateway, "GET", "queues/route8")["channels"] == []


def test_route_9_put_a_channel_which_sees_its_topic_alone(gateway: Gateway) -> None:
    done(gateway, "POST", "queues/route9")
    answer = gateway.ask("PUT", "/api/v1/queues/ROUTE9/channels/Sports")
    assert answer.status == 201
    one = answer.json
    assert one["id"] and one["topic"] == "sports" and one["label"] == "route9"
    problem = expect_problem(gateway.ask("PUT", "/api/v1/queues/route9/channels/__None__"), "bad-request")
    assert "reserved" in problem["detail"]
    refused(gateway, 404, "PUT", "queues/route9-not/channels/t")
    messages = [{"topic": "SPORTS", "payload": "1"}, {"topic": "weather", "payload": "2"}, {"payload": "3"}]
    done(gateway, "POST", "queues/route9/messages", messages)
    done(gateway, "POST", "queues/route9/messages", {"topic": "sports", "payload": "4"})
    assert [(each["id"], each["payload"]) for each in taken(gateway, one["id"], 2)] == [
        ("1@sports", "1"), ("2@sports", "4"),
    ]  # fmt: skip


# From end to end


def test_each_channel_sees_each_message_and_consumers_of_one_share_them(gateway: Gateway) -> None:
    done(gateway, "POST", "queues/shared")
    for channel in ("sh1", "sh2"):
        done(gateway, "POST", "queues/shared/channels", {"id": channel})
    done(gateway, "POST", "queues/shared/messages", [{"payload": str(n)} for n in range(40)])
    first = taken(gateway, "sh1", 20, "consumer=a&credit=20")
    second = taken(gateway, "sh1", 20, "consumer=b&credit=20")
    assert len(first) == len(second) == 20
    assert {each["number"] for each in first + second} == set(range(1, 41))
    assert [each["number"] for each in taken(gateway, "sh2", 40)] == list(range(1, 41))


def test_what_is_acknowledged_is_done_and_what_is_rejected_comes_again(gateway: Gateway) -> None:
    done(gateway, "POST", "queues/answers")
    done(gateway, "POST", "queues/answers/channels", {"id": "answers"})
    done(gateway, "POST", "queues/answers/messages", [{"payload": "a"}, {"payload": "b"}])
    one, two = (each["id"] for each in taken(gateway, "answers", 2))
    given = {"consumer": "me", "acknowledge": [one], "reject": [two]}
    assert done(gateway, "POST", "channels/answers/acknowledgements", given) == {"done": 2, "not_held": []}
    (again,) = taken(gateway, "answers", 1)
    assert (again["id"], again["payload"], again["tries"]) == (two, "b", 2)
    done(gateway, "DELETE", "channels/answers/consumers/me")
    (other,) = taken(gateway, "answers", 1, "consumer=other")
    assert other["id"] == two
    given = {"consumer": "other", "acknowledge": [two, one]}
    assert done(gateway, "POST", "channels/answers/acknowledgements", given) == {"done": 1, "not_held": [one]}


def test_a_message_that_is_not_answered_goes_to_another_when_its_time_is_over(gateway: Gateway) -> None:
    done(gateway, "POST", "queues/visible")
    done(gateway, "POST", "queues/visible/channels", {"id": "visible", "visible_seconds": 0.5})
    done(gateway, "POST", "queues/visible/messages", {"payload": "x"})
    (first,) = taken(gateway, "visible", 1, "consumer=lazy")
    (again,) = taken(gateway, "visible", 1, "consumer=busy")
    assert again["id"] == first["id"] and again["tries"] == 2
    given = {"consumer": "lazy", "acknowledge": [first["id"]]}
    assert done(gateway, "POST", "channels/visible/acknowledgements", given)["not_held"] == [first["id"]]


def test_a_request_that_waits_gets_the_message_that_comes(gateway: Gateway) -> None:
    done(gateway, "POST", "queues/late")
    done(gateway, "POST", "queues/late/channels", {"id": "late"})
    found: list[Any] = []
    waiting = threading.Thread(target=lambda: found.append(taken(gateway, "late", 1)))
    waiting.start()
    done(gateway, "POST", "queues/late/messages", {"payload": "here"})
    waiting.join(25)
    assert not waiting.is_alive() and [each["payload"] for each in found[0]] == ["here"]


def test_a_stream_gives_messages_as_they_come_and_gives_back_at_its_end(gateway: Gateway) -> None:
    done(gateway, "POST", "queues/stream")
    done(gateway, "POST", "queues/stream/channels", {"id": "stream"})
    done(gateway, "POST", "queues/stream/messages", {"payload": "1"})
    with Stream(gateway, "", path="channels/stream/messages") as stream:
        consumer = json.loads(stream.event()["data"])["consumer"]
        one = stream.event()
        assert one["id"] == "1@__none__" and json.loads(one["data"])["payload"] == "1"
        given = {"consumer": consumer, "acknowledge": [one["id"]]}
        assert done(gateway, "POST", "channels/stream/acknowledgements", given)["done"] == 1
        done(gateway, "POST", "queues/stream/messages", {"payload": "2"})
        assert json.loads(stream.event()["data"])["payload"] == "2"
    (again,) = taken(gateway, "stream", 1)
    assert again["payload"] == "2"


def test_a_consumer_over_mqtt_takes_what_was_pushed_over_rest(gateway: Gateway) -> None:
    done(gateway, "POST", "queues/both")
    share = done(gateway, "POST", "queues/both/channels", {"id": "both"})["share"]
    with Peer(gateway.broker.address) as peer:
        assert peer.connect("worker").code == 0
        peer.subscribe(share, qos=1)
        done(gateway, "POST", "queues/both/messages", {"topic": "Sports", "payload": "goal"})
        found = peer.message()
        assert found.payload == b"goal" and found.topic == "$queues/both/sports"


def test_dead_letters_are_told_and_sent_back(gateway: Gateway) -> None:
    done(gateway, "POST", "queues/dying")
    done(gateway, "POST", "queues/dying/channels", {"id": "dying", "tries_max": 1})
    done(gateway, "POST", "queues/dying/messages", {"payload": "bad", "topic": "t"})
    (bad,) = taken(gateway, "dying", 1)
    done(gateway, "POST", "channels/dying/acknowledgements", {"consumer": "me", "reject": [bad["id"]]})
    found: list[Any] = []
    for _ in tries():
        found = done(gateway, "GET", "queues/Dying/dead-letters")["messages"]
        if found:
            break
    assert [each["payload"] for each in found] == ["bad"] and "1@t" in found[0]["origin"]
    assert done(gateway, "POST", "queues/dying/redrive", {}) == {"done": 1}
    (again,) = taken(gateway, "dying", 1)
    assert (again["payload"], again["topic"]) == ("bad", "t") and again["id"] != bad["id"]


def test_a_push_answers_the_ids_by_which_consumers_get_the_messages(gateway: Gateway) -> None:
    done(gateway, "POST", "queues/ids")
    done(gateway, "POST", "queues/ids/channels", {"id": "ids"})
    batch = [{"topic": "a", "payload": "1"}, {"payload": "2"}, {"topic": "A", "payload": "3"}]
    pushed = done(gateway, "POST", "queues/ids/messages", batch)
    assert pushed == {"accepted": 3, "ids": ["1@a", "1@__none__", "2@a"]}
    got = taken(gateway, "ids", 3)
    assert {each["id"]: each["payload"] for each in got} == dict(zip(pushed["ids"], "123", strict=True))


def test_a_full_queue_refuses_with_429_and_takes_more_once_it_is_consumed(gateway: Gateway) -> None:
    done(gateway, "POST", "queues/full", {"records_max": 5})
    done(gateway, "POST", "queues/full/channels", {"id": "full"})
    answer = refused(gateway, 429, "POST", "queues/full/messages", [{"payload": str(n)} for n in range(8)])
    problem = expect_problem(answer, "queue-full")
    assert problem["accepted"] == 5 and [each["number"] for each in problem["refused"]] == [5, 6, 7]
    assert all(problem["ids"][:5]) and answer.headers["retry-after"]
    got = taken(gateway, "full", 5)
    given = {"consumer": "me", "acknowledge": [each["id"] for each in got]}
    assert done(gateway, "POST", "channels/full/acknowledgements", given)["done"] == 5
    for _ in tries():  # what is not consumed is counted some hundred ms later
        if gateway.ask("POST", "/api/v1/queues/full/messages", {"payload": "more"}).status == 200:
            break
    else:
        raise AssertionError("it stays full")
    assert [each["payload"] for each in taken(gateway, "full", 1)] == ["more"]


def test_a_delayed_message_comes_when_it_is_due(gateway: Gateway) -> None:
    done(gateway, "POST", "queues/due")
    done(gateway, "POST", "queues/due/channels", {"id": "due"})
    batch = [{"payload": "later", "delay_seconds": 1.5}, {"payload": "now"}]
    assert done(gateway, "POST", "queues/due/messages", batch)["accepted"] == 2
    now, later = taken(gateway, "due", 2)
    assert (now["payload"], later["payload"]) == ("now", "later")
    assert later["pushed_us"] - now["pushed_us"] > 1_000_000


def test_what_waits_is_purged_and_what_comes_later_is_not(gateway: Gateway) -> None:
    done(gateway, "POST", "queues/purged")
    done(gateway, "POST", "queues/purged/channels", {"id": "purged"})
    done(gateway, "POST", "queues/purged/messages", [{"payload": str(n)} for n in range(25)])
    assert done(gateway, "POST", "queues/purged/purge", {}) == {"done": 25}
    done(gateway, "POST", "queues/purged/messages", {"payload": "later"})
    assert [each["payload"] for each in taken(gateway, "purged", 1)] == ["later"]


def test_they_are_asked_and_repaired_by_the_command_line(gateway: Gateway, tmp_path: Path) -> None:
    (tmp_path / "token").write_text(gateway.secrets["ops"])
    (tmp_path / "token").chmod(0o600)
    where = ("--url", f"http://127.0.0.1:{gateway.port}", "--token-file", str(tmp_path / "token"))

    def ask(*words: str) -> Any:
        found = rumqd("ask", *words, *where, "--json")
        assert found.status == 0, found.err
        return json.loads(found.out)

    assert ask("create_queue", "--label", "Typed-..-X", "--records-max", "7")["records_max"] == 7
    label = "typed-..-x"
    assert ask("create_channel", "--label", label, "--id", "typed", "--tries-max", "2")["tries_max"] == 2
    pushed = ask("push", "--label", label, "--topic", "A/b", "--payload", '{"a": 1}', "--key", "k")
    assert pushed["accepted"] == 1
    seen: list[Any] = []
    while not seen:
        seen = ask("peek", "--label", label)["messages"]
    assert (seen[0]["id"], seen[0]["payload"], seen[0]["key"]) == ("1@a/b", '{"a": 1}', "k")
    assert ask("queue_topics", "--label", label) == {"topics": ["a/b"]}
    assert [each["id"] for each in ask("channels", "--queue", label)["channels"]] == ["typed"]
    assert label in [each["label"] for each in ask("queues")["queues"]]
    assert ask("purge_channel", "--id", "typed", "--yes") == {"done": 1}
    assert ask("delete_channel", "--id", "typed", "--yes") == {"removed": "typed"}
    assert ask("topic_records", "--topic", f"$queues/{label}/a/b", "--from", "0")["records"][0]["id"] == 1
    assert ask("delete_queue", "--label", label, "--yes") == {"removed": label}
    missing = rumqd("ask", "queue", "--label", label, *where)
    assert missing.status == 1 and "there is no queue" in missing.err


def test_the_rules_of_the_user_hold(tmp_path: Path) -> None:
    (tmp_path / "rules.toml").write_text(RULES)
    gateway = started(tmp_path, f"gateway.rules_file={tmp_path}/rules.toml", "queues.enabled=true")
    try:
        by = {"token": "anna"}
        refused(gateway, 403, "POST", "queues/anna", **by)  # its roles
        refused(gateway, 403, "POST", "queues/anna")  # the rules, which let ops do nothing
        words = ["token", "add", "boss", "--role", "read", "--role", "publish", "--role", "consume", "--role"]
        made = rumqd(*words, "administer", "--user", "anna", "--data", str(gateway.broker.data))
        assert made.status == 0, made.err
        gateway.secrets["boss"] = made.out.strip()
        gateway.act("reload")
        gateway.broker.event("gateway.reloaded")
        ready(gateway, "queues/anna", "boss")
        refused(gateway, 403, "POST", "queues/letterbox", token="boss")
        done(gateway, "POST", "queues/anna/channels", {"id": "anna"}, **by)
        done(gateway, "POST", "queues/anna/messages", {"payload": "x"}, **by)
        seen = (done(gateway, "GET", "queues/anna/messages", **by)["messages"] for _ in tries())
        assert any(seen), "the log's files show a message some 50 ms later"
        assert done(gateway, "GET", "queues", **by)["queues"] and not done(gateway, "GET", "queues")["queues"]
        for method, path in (("GET", "queues/anna"), ("GET", "channels/anna"), ("GET", "channels/anna/messages")):
            refused(gateway, 404, method, path)  # who may not know of it is told that there is none
        refused(gateway, 404, "POST", "queues/anna/messages", {"payload": "y"})
        assert not gateway.broker.named("gateway.failed")
    finally:
        gateway.broker.end()


def test_a_broker_without_queues_says_so_and_publishes_as_ever(tmp_path: Path) -> None:
    gateway = started(tmp_path)
    try:
        for method, path in (("GET", "queues"), ("POST", "queues/a"), ("GET", "channels/a/messages")):
            assert "queues.enabled" in refused(gateway, 404, method, path).json["detail"]
        assert gateway.publish({"topic": "a", "payload": "b"}).status == 200
    finally:
        gateway.broker.end()
