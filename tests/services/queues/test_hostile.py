"""Whatever a caller does with queues over gRPC, only it notices: streams without number, stalled readers, forgers."""

from __future__ import annotations

import base64
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from tests.cli.conftest import rumqd
from tests.services.conftest import SECONDS, GrpcBroker, fault_of, grpc_broker, refused
from tests.services.generated_client import queue_stubs
from tests.services.generated_client import queues_pb as qb
from tests.services.queues.conftest import FLAGS, QueueCaller
from tests.services.queues.test_queue_calls import UNKNOWN, fault
from tests.services.test_bad_input import memory_of
from tests.services.test_server import pids_of_servers

MIB = 1 << 20
DENIED = ("PERMISSION_DENIED", "NOT_AUTHORIZED")
MISSING = ("PERMISSION_DENIED", "ROLE_MISSING")
RULES = """
[[rule]]
users = ["anna"]
allow = ["publish", "subscribe", "replay", "retain"]
topics = ["$queues/news/#"]

[[rule]]
users = ["ben"]
allow = ["publish", "subscribe", "replay", "retain"]
topics = ["$queues/sport/#"]

[[rule]]
users = ["carl"]
allow = ["publish"]
topics = ["$queues/news/weather"]

[[rule]]
users = ["machine"]
allow = ["publish", "subscribe", "replay", "retain"]
topics = ["$queues/#"]
"""


def test_a_thousand_streams_of_one_client_have_a_share_and_others_consume(tmp_path: Path) -> None:
    with grpc_broker(tmp_path / "data", *FLAGS, "--set", "grpc.calls_max=40") as broker:
        queues = QueueCaller(broker)
        queues.create("crowd")
        channel = queues.channel("crowd")
        connection = broker.channel()
        stub = queue_stubs.QueuesStub(connection)
        request = qb.SubscribeToChannelRequest(channel=channel, credit=1)
        calls = [stub.SubscribeToChannel(request, timeout=SECONDS) for _ in range(1_000)]
        outcomes: dict[str, int] = {}
        for call in calls:
            try:
                next(call)
                outcome = "open"
            except grpc.RpcError as failed:
                outcome = failed.code().name  # type: ignore[attr-defined]
            outcomes[outcome] = outcomes.get(outcome, 0) + 1
        assert outcomes == {"open": 20, "RESOURCE_EXHAUSTED": 980}
        assert fault_of(calls[-1])[1] == "TOO_MANY_CALLS"
        for call in calls:
            call.cancel()
        connection.close()
        until = time.monotonic() + SECONDS
        while True:
            try:
                queues.push("crowd", b"x")
                consumer = queues.consume(channel)
                [found, *_] = consumer.take(1)
                break
            except grpc.RpcError:
                assert time.monotonic() < until
        assert found.payload == b"x"
        consumer.vanish()


def test_consumers_that_stop_reading_hold_a_bounded_piece_and_nobody_else_notices(queues: QueueCaller) -> None:
    """8 channels of 80 MiB each, read by nobody who asked: engines hold shares of one bound, gRPC an answer."""
    queues.create("unread", records_max=0)
    channels = [queues.channel("unread") for _ in range(8)]
    payload = b"x" * (512 << 10)
    [pid] = pids_of_servers(queues.broker)
    before = memory_of(pid)
    connections = [queues.broker.channel(("grpc.http2.bdp_probe", 0)) for _ in channels]
    calls = []
    for connection, channel in zip(connections, channels, strict=True):
        request = qb.SubscribeToChannelRequest(channel=channel, credit=10_000)
        calls.append(queue_stubs.QueuesStub(connection).SubscribeToChannel(request, timeout=SECONDS))
    for call in calls:
        call.initial_metadata()
    for _ in range(160):
        queues.push("unread", payload)
    queues.create("beside")
    beside = queues.consume(queues.channel("beside"))
    queues.push("beside", b"quick")
    assert [each.payload for each in beside.take(1)] == [b"quick"]
    beside.vanish()
    grown = memory_of(pid) - before
    assert grown < 420 * MIB, grown >> 20
    for call in calls:
        call.cancel()
    for connection in connections:
        connection.close()
    queues.ask("DeleteQueue", queue="unread")


def test_a_caller_that_vanishes_gives_its_messages_and_calls_back(queues: QueueCaller) -> None:
    queues.create("vanishing", records_max=0)
    channel = queues.channel("vanishing", tries_max=0)
    queues.push("vanishing", *(b"%d" % n for n in range(20)))
    for _ in range(5):
        connection = queues.broker.channel()
        caller = QueueCaller(queues.broker, stub=queue_stubs.QueuesStub(connection))
        consumer = caller.consume(channel, credit=20)
        assert len(consumer.take(20)) == 20
        connection.close()  # without a word to the call
    last = queues.consume(channel, credit=20)
    assert len(last.take(20)) == 20
    last.vanish()
    until = time.monotonic() + SECONDS
    while queues.ask("GetChannel", channel=channel).channel.consumers:
        assert time.monotonic() < until


def test_a_stream_of_pushes_that_is_never_answered_stops_being_read(queues: QueueCaller) -> None:
    queues.create("endless", records_max=0)
    ended = threading.Event()

    def requests() -> Iterator[Any]:
        while not ended.is_set():
            yield qb.PushStreamRequest(queue="endless", messages=[qb.PushMessage(payload=b"x" * 900)] * 100)

    [pid] = pids_of_servers(queues.broker)
    before = memory_of(pid)
    connection = queues.broker.channel()
    call = queue_stubs.QueuesStub(connection).PushStream(requests(), timeout=SECONDS)
    queues.create("quiet")
    for number in range(10):
        assert queues.push("quiet", b"x") == [f"{number + 1}@__none__"]
    assert memory_of(pid) - before < 200 * MIB
    ended.set()
    call.cancel()
    connection.close()
    queues.ask("DeleteQueue", queue="endless")


# Who may do what


def basic(user: str, password: str) -> tuple[tuple[str, str], ...]:
    return (("authorization", "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()),)


class Tenants:
    """Users with a queue each, by rules; tokens with single roles."""

    def __init__(self, broker: GrpcBroker, data: Path, rules: Path) -> None:
        self.broker, self._data, self.rules = broker, data, rules
        self.anna, self.ben, self.carl = (
            QueueCaller(broker, basic(user, f"secret-{user}")) for user in ("anna", "ben", "carl")
        )

    def tokens(self, *roles: str) -> list[QueueCaller]:
        found = []
        for role in roles:
            ended = rumqd("token", "add", role, "--role", role, "--user", "machine", "--data", str(self._data))
            assert ended.status == 0, ended.err
            secret = next(word for word in ended.out.split() if word.startswith("rumq_"))
            found.append(QueueCaller(self.broker, (("authorization", f"Bearer {secret}"),)))
        self.reload()
        return found

    def reload(self) -> None:
        count = len(self.broker.process.named("grpc.reloaded"))
        self.broker.process.hang_up()
        self.broker.process.event("grpc.reloaded", number=count + 1)


@pytest.fixture(scope="module")
def tenants(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tenants]:
    folder = tmp_path_factory.mktemp("tenants")
    users, rules = folder / "users", folder / "rules.toml"
    for user in ("anna", "ben", "carl"):
        create = [] if users.exists() else ["-c"]
        assert rumqd("passwd", *create, str(users), user, stdin=f"secret-{user}\n".encode()).status == 0
    rules.write_text(RULES)
    rules.chmod(0o600)
    flags = ("--set", f"auth.password_file={users}", "--set", f"auth.rules_file={rules}")
    with grpc_broker(folder / "data", *FLAGS, *flags) as broker:
        yield Tenants(broker, folder / "data", rules)


def test_another_tenant_is_told_nothing_whatever_it_forges(tenants: Tenants) -> None:
    anna, ben, carl = tenants.anna, tenants.ben, tenants.carl
    anna.create("news")
    channel = anna.channel("news")
    anna.push("news", b"secret")
    held = anna.subscribe(channel)
    name = next(held).consumer
    message_id = next(held).messages[0].id
    for call, fields in (
        ("GetChannel", {"channel": channel}), ("DeleteChannel", {"channel": channel}),
        ("PurgeChannel", {"channel": channel}), ("SubscribeToChannel", {"channel": channel}),
        ("Acknowledge", {"consumer": name, "answers": qb.Answers(acknowledge=[message_id])}),
        ("GetQueue", {"queue": "news"}), ("DeleteQueue", {"queue": "news"}), ("PeekQueue", {"queue": "NEWS"}),
        ("RebuildQueue", {"queue": "news"}), ("RedriveQueue", {"queue": "news"}), ("ListTopics", {"queue": "news"}),
        ("PurgeQueue", {"queue": "news"}), ("CreateChannel", {"queue": "news"}), ("ListChannels", {"queue": "news"}),
        ("PushToQueue", {"queue": "news", "messages": [qb.PushMessage()]}),
    ):  # fmt: skip
        assert fault(ben, call, **fields) == UNKNOWN, call
    assert fault(ben, "CreateQueue", queue="news") == DENIED
    assert [each.label for each in ben.ask("ListQueues").queues] == []
    assert ben.ask("GetHeartbeat").queues == 0 and anna.ask("GetHeartbeat").queues == 2
    assert carl.push("news", b"sunny", topic="Weather") == ["1@weather"]
    assert fault(carl, "PushToQueue", queue="news", messages=[qb.PushMessage()]) == DENIED
    assert fault(carl, "SubscribeToChannel", channel=channel) == DENIED
    assert fault(carl, "RebuildQueue", queue="news") == DENIED
    told = anna.ask("Acknowledge", consumer=name, answers=qb.Answers(acknowledge=[message_id])).answered
    assert told.done == 1
    held.cancel()


def test_a_token_needs_the_role_besides(tenants: Tenants) -> None:
    read, publish, consume, administer = tenants.tokens("read", "publish", "consume", "administer")
    administer.create("roles")
    channel = consume.channel("roles")
    publish.push("roles", b"x")
    assert read.ask("GetQueue", queue="roles").queue.label == "roles"
    message = {"queue": "roles", "messages": [qb.PushMessage()]}
    for caller, call, fields in (
        (read, "CreateQueue", {"queue": "r"}), (publish, "GetQueue", {"queue": "roles"}),
        (consume, "DeleteQueue", {"queue": "roles"}), (administer, "PushToQueue", message),
        (read, "SubscribeToChannel", {"channel": channel}), (read, "DeleteChannel", {"channel": channel}),
        (consume, "PurgeChannel", {"channel": channel}), (read, "RebuildQueue", {"queue": "roles"}),
        (read, "Acknowledge", {}), (publish, "PeekQueue", {"queue": "roles"}),
    ):  # fmt: skip
        assert fault(caller, call, **fields) == MISSING, call
    consumer = consume.consume(channel)
    assert [each.payload for each in consumer.take(1)] == [b"x"]
    consumer.vanish()
    assert refused(publish.stub.Consume, iter([qb.ConsumeRequest(channel=channel)]), metadata=publish.metadata) == (
        MISSING
    )


def test_rules_that_change_end_a_consumer_before_it_gets_more(tenants: Tenants) -> None:
    anna, ben = tenants.anna, tenants.ben
    ben.create("sport")
    channel = ben.channel("sport")
    consumer = ben.consume(channel)
    tenants.rules.write_text(RULES.replace('"subscribe", "replay", "retain"]\ntopics = ["$queues/sport/#"]',
                                           '"retain"]\ntopics = ["$queues/sport/#"]'))  # fmt: skip
    tenants.reload()
    try:
        ben.push("sport", b"late")
        with pytest.raises(grpc.RpcError) as failed:
            next(consumer.call)
        assert fault_of(failed.value)[:2] == DENIED
    finally:
        consumer.vanish()
        tenants.rules.write_text(RULES)
        tenants.reload()
    assert anna.ask("GetHeartbeat").serving
