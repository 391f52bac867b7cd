"""A topic that the rules forbid to a token's user is in no answer of any door, neither its name nor its payload: every
operation of the table, every endpoint, what the page asks, MQTT over WebSocket, Flight, metrics."""

import base64
import json
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import trio

from rumq.admin.operations import TABLE
from rumq.client.connector import connect_over
from rumq.client.transport.websocket import open_websocket
from rumq.errors import Refused
from rumq.gateway.contract.endpoints import ENDPOINTS
from tests.conformance.peer import Peer
from tests.conformance.wire import Prop
from tests.gateway.conftest import Answered, Gateway, started
from tests.gateway.test_following import Stream
from tests.tries import tries

TOPIC, PAYLOAD = "vault/9f3ae1/plan", "sesame-7c1d"
OPEN = "open/9f3ae1/note"
NAMES = ("9f3ae1/plan", "vault/9f3ae1")  # parts of the name that no question here has
RULES = """
[[rule]]
users = ["root"]
allow = ["publish", "subscribe", "replay", "retain"]
topics = ["#"]

[[rule]]
users = ["anna"]
allow = ["publish", "subscribe", "replay"]
topics = ["open/#"]
"""
# Questions with parameters, beside the bare ones; + and # are escaped below.
MORE = {
    "topics": ["topic=#", "topic=+/+/plan", "topic=vault/#", "sort=topic&limit=1", "limit=1&offset=1"],
    "tree": ["prefix=vault", "prefix=open", "below_empty=true", "prefix="],
    "retained": ["topic=#", "topic=+/+/plan", "topic=vault/#", "limit=1", "after=a", "after=vault"],
    "subscribers": ["topic=open/9f3ae1/note", "topic=vault"],
    "ledger": ["client=watcher", "client=narrow", "topic=vault"],
    "client": ["client=watcher", "client=narrow"],
    "waiting": ["client=watcher", "client=narrow"],
    "clients": ["client=watcher", "sort=lost"],
    "groups": ["client=watcher"],
    "events": ["limit=200", "event=trace.*", "event=admin.*"],
    "spans": ["limit=200"],
    "records": ["topic=#", "topic=+/+/plan", "topic=vault/#", "topic=#&start=-1h", "topic=open/#"],
    "value": ["topic=vault", "topic=open/9f3ae1/note"],
    "topic_records": ["from=0", "from=-1h", "from=latest"],
    "rules": ["action=replay&topic=vault"],
    "history": ["seconds=60"],
    "segments": ["stream=main"],
}
KINDS = ("application/json", "application/msgpack", "application/x-ndjson")
BARE = {"subscribers", "client", "waiting", "records", "value", "rules"}  # need a parameter
QUERIES = sorted(
    {each.name for each in TABLE if not each.is_action} | {each.name for each in ENDPOINTS if each.method == "get"}
)
IN_PATH: dict[str, list[str]] = {
    "topic_records": ["topics/vault/records", "topics/open/9f3ae1/note/records", "topics/%23/records"]
}
QUEUES = ("queue", "queue_topics", "peek", "dead_letters", "channel", "take")
IN_PATH |= {
    "queue": ["queues/vault"],
    "queue_topics": ["queues/vault/topics"],
    "peek": ["queues/vault/messages"],
    "dead_letters": ["queues/vault/dead-letters"],
    "channel": ["channels/vault"],
    "take": ["channels/vault/messages"],
}
MORE |= {name: ["nope=1"] for name in QUEUES}
OPEN_TO_ALL = {"healthz", "readyz", "startupz"}


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    path: Path = tmp_path_factory.mktemp("forbidden")
    (path / "rules.toml").write_text(RULES)
    made = started(
        path, f"auth.rules_file={path}/rules.toml", "auth.guess_seconds_max=0", "flight.port=-1", shards=2,
    )  # fmt: skip
    tell_of_the_topic(made)
    yield made
    made.broker.end()


def tell_of_the_topic(gateway: Gateway) -> None:
    """Have the topic be wherever a broker may name one: log, retained, sessions, groups, losses, traces, events."""
    address = gateway.broker.address
    with Peer(address) as first:
        assert first.connect("first", username="root").code == 0
        first.publish(TOPIC, PAYLOAD.encode(), 1)  # a trace begins with the topic's next message
    gateway.act("trace", kind="topic", name=TOPIC, seconds=600)
    lasting = [(Prop.SESSION_EXPIRY, 1000)]
    with Peer(address) as watcher:
        assert watcher.connect("watcher", username="root", properties=lasting).code == 0
        watcher.subscribe(TOPIC, "$share/readers/" + TOPIC, "$log/earliest/" + TOPIC, qos=1)
    narrow = Peer(address)
    assert narrow.connect("narrow", username="root", properties=[*lasting, (Prop.MAXIMUM_PACKET_SIZE, 100)]).code == 0
    narrow.subscribe(TOPIC, qos=1)
    with Peer(address) as publisher:
        assert publisher.connect("publisher", username="root").code == 0
        for topic in (TOPIC, OPEN):
            publisher.publish(topic, PAYLOAD.encode() * 20 if topic == TOPIC else b"hello", 1, retain=True)
    with Peer(address) as refused:
        assert refused.connect("refused", username="anna").code == 0
        refused.publish(TOPIC, b"no", 1)
    told = []
    for _ in tries():  # traces are looked at four times a second
        told = [gateway.get("ledger")["undelivered"], gateway.get("events?event=trace.message")["events"]]
        if all(told):
            break
    assert all(told), told
    names = gateway.ask("GET", "/api/v1/ledger").body + gateway.ask("GET", "/api/v1/clients").body
    assert names.count(TOPIC.encode()) >= 5, "those who may administer are told of it"
    narrow.close()


def questions(name: str) -> list[str]:
    if name in IN_PATH:
        return [
            f"/api/v1/{path}{more}" for path in IN_PATH[name] for more in ["", *(f"?{each}" for each in MORE[name])]
        ]
    asked = [f"{name}?{each}" for each in MORE.get(name, [])]
    if name not in BARE:
        asked.append(name)
    return [f"/{each}" if name in OPEN_TO_ALL else f"/api/v1/{each}" for each in asked]


def asked(gateway: Gateway, path: str, token: str, kind: str = KINDS[0]) -> Answered:
    return gateway.ask("GET", path.replace("+", "%2B").replace("#", "%23"), token=token, headers={"accept": kind})


def expect_nothing_of_it(answer: Answered, where: str) -> None:
    said = answer.body + repr(answer.headers).encode()
    for part in (*NAMES, PAYLOAD):
        forms = (part.encode(), quote(part, safe="").encode(), base64.b64encode(part.encode())[:-4])
        assert not [form for form in forms if form in said], f"{where} tells {part}"
    assert answer.status in (200, 400, 403, 404, 503), (where, answer)


@pytest.mark.parametrize("token", ["anna", "reader"])
@pytest.mark.parametrize("name", QUERIES)
def test_a_forbidden_topic_is_in_no_answer_of_any_operation(gateway: Gateway, name: str, token: str) -> None:
    for path in questions(name):
        for kind in KINDS if name in ("records", "value", *IN_PATH) else KINDS[:1]:
            expect_nothing_of_it(asked(gateway, path, token, kind), f"{path} as {kind}")


@pytest.mark.parametrize("token", ["anna", "reader"])
def test_who_follows_the_log_is_told_nothing_of_it(gateway: Gateway, token: str) -> None:
    for query in (each.replace("#", "%23").replace("+", "%2B") for each in MORE["records"]):
        expect_nothing_of_it(asked(gateway, f"/api/v1/records?{query}&wait=0.3", token), query)
        with Stream(gateway, query, token) as stream:
            if stream.status == 200:
                end = gateway.get(f"records?{query}&limit=1000", token=token)["cursor"]
                lines = list(iter(stream.line, f"id: {end}\n"))
                expect_nothing_of_it(Answered(200, {}, "".join(lines).encode()), query)
            else:
                assert stream.status == 403, query


@pytest.mark.parametrize("operation", [each for each in TABLE if each.is_action], ids=lambda each: each.name)
def test_actions_are_refused_before_they_tell_anything(gateway: Gateway, operation: Any) -> None:
    answer = gateway.ask("POST", f"/api/v1/actions/{operation.name}", {}, token="anna")
    expect_nothing_of_it(answer, operation.name)
    assert answer.status == 403


@pytest.mark.parametrize("name", QUERIES)
def test_the_role_administer_gives_no_payload_to_a_token_whose_user_may_not_read_it(
    gateway: Gateway, name: str
) -> None:
    for path in questions(name):
        for kind in KINDS:
            assert PAYLOAD.encode() not in asked(gateway, path, "ops", kind).body, path


def test_every_question_of_the_page_is_one_of_these() -> None:
    page = Path(__file__).parents[2] / "rumq" / "gateway" / "page"
    files = [each for each in page.rglob("*.js") if "vendor" not in each.parts]
    found = {name for each in files for name in re.findall(r"\bget\(\"(\w+)\"", each.read_text())}
    assert len(found) > 15 and found <= set(QUERIES)
    assert set(QUERIES) >= MORE.keys()


@pytest.mark.parametrize("path", ["/metrics", "/metrics?client=watcher", "/", "/api/v1/openapi.json"])
def test_metrics_and_files_tell_of_no_topic(gateway: Gateway, path: str) -> None:
    expect_nothing_of_it(asked(gateway, path, "reader"), path)


@pytest.mark.parametrize(
    ("path", "topic"),
    [
        ("records?topic=vault/%23", "vault/#"),
        ("value?topic=vault/1", "vault/1"),
        ("topics/vault/1/records", "vault/1"),
        ("topics/vault%2Fgone/records?from=latest&wait=9", "vault/gone"),
        ("retained?topic=vault/%23", "vault/#"),
        ("topics?topic=vault/%23", "vault/#"),
        ("tree?prefix=vault", "vault/#"),
        ("ledger?topic=vault/1", "vault/1"),
        ("subscribers?topic=vault/1", "vault/1"),
    ],
)
def test_what_is_forbidden_is_said_to_be_forbidden(gateway: Gateway, path: str, topic: str) -> None:
    answer = gateway.ask("GET", f"/api/v1/{path}", token="anna")
    assert answer.status == 403 and repr(topic) in answer.json["detail"]
    for words in ("not permitted", "user anna", "rumqd token add"):
        assert words in answer.json["detail"]
    nobody = gateway.ask("GET", f"/api/v1/{path}", token="reader")
    assert nobody.status == 403 and "which has no user" in nobody.json["detail"]
    assert gateway.get("me", token="anna")["reads"] == "some" and gateway.get("me")["reads"] == "none"


def test_what_is_left_out_is_not_counted_either(gateway: Gateway) -> None:
    def get(path: str) -> Any:
        return json.loads(asked(gateway, f"/api/v1/{path}", "anna").body)

    page = get("topics?limit=1&sort=topic")
    assert ([row["topic"] for row in page["topics"]], page["left_out"]) == ([OPEN], 0)
    assert get("topics?topic=+/+/plan") == {"topics": [], "left_out": 0, "missing": []}
    assert [(row["level"], row["topics"], row["records"]) for row in get("tree")["levels"]] == [("open", 1, 1)]
    page = get("retained?limit=1&topic=#")
    assert ([row["topic"] for row in page["messages"]], page["left_out"]) == ([OPEN], 0)
    (watcher,) = get("clients?client=watcher")["clients"]
    assert watcher["subscriptions"] == [] and get("groups")["groups"] == []
    assert {row["topic"] for row in get("records?topic=#")["records"]} == {OPEN}


def test_mqtt_over_websocket_brings_nothing_of_it(gateway: Gateway) -> None:
    async def opened() -> trio.abc.Stream:
        stream = await trio.open_tcp_stream("127.0.0.1", gateway.port)
        return await open_websocket(stream, f"127.0.0.1:{gateway.port}", "/mqtt")

    async def body() -> None:
        connect = partial(connect_over, opened, username="root", password=gateway.secrets["anna"])
        with trio.fail_after(60):
            async with connect() as client:
                for forbidden in (
                    "vault/#",
                    TOPIC,
                    "$log/earliest/vault/#",
                    "$share/g/vault/#",
                    "$share/g/#",
                ):
                    with pytest.raises(Refused):
                        await client.subscribe(forbidden, qos=1)
                for wide in ("#", "+/+/plan", "+/+/+", "$log/earliest/#", "$log/retained@-1s/#"):
                    await client.subscribe(wide, qos=1)
                await client.publish(OPEN, b"last", qos=1)
                topics: set[str] = set()
                while b"last" not in (got := [each.payload for each in await receive(client, topics)]):
                    assert PAYLOAD.encode() not in b"".join(got)
                assert topics == {OPEN}

    trio.run(body)


async def receive(client: Any, topics: set[str]) -> Any:
    found = await client.receive_batch()
    topics.update(each.topic for each in found)
    return found


def test_flight_sends_no_row_of_it(gateway: Gateway) -> None:
    fl = pytest.importorskip("pyarrow.flight")
    bound = gateway.broker.heard(lambda event: event["event"] == "listener.bound" and event["protocol"] == "flight")
    header = b"Basic " + base64.b64encode(b"anna:x")
    options = fl.FlightCallOptions(headers=[(b"authorization", header)])
    with fl.connect(f"grpc://127.0.0.1:{bound['port']}") as client:
        info = client.get_flight_info(fl.FlightDescriptor.for_command(b"{}"), options)
        tables = [client.do_get(endpoint.ticket, options).read_all() for endpoint in info.endpoints]
        assert {row["topic"] for table in tables for row in table.to_pylist()} == {OPEN}
        actions = [(each, b"{}") for each in ("heads",)]
        said = b"".join(r.body.to_pybytes() for each in actions for r in client.do_action(each, options))
        listed = b"".join(each.serialize() for each in client.list_flights(b"", options))
        assert not [part for part in (*NAMES, PAYLOAD) if part.encode() in said + listed]
        with pytest.raises(fl.FlightUnauthorizedError, match="vault/1"):
            client.get_flight_info(fl.FlightDescriptor.for_command(b'{"topics": ["vault/1"]}'), options)
