"""Tracing end to end: brokers of one and two shards, Paho's MQTT 5 clients, and a receiver of OTLP.

docs/reference/tracing.md"""

from __future__ import annotations

import itertools
import os
import queue
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from zlib import crc32

import paho.mqtt.client as mqtt
import pytest
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from tests.broker_process import Rumqd
from tests.gateway.conftest import Gateway, started
from tests.gateway.otlp_receiver import SECONDS_MAX, OtlpReceiver, Told
from tests.tries import tries

TRACES = (f"{number:032x}" for number in itertools.count(1 << 100))
CALLER = "b7ad6b7169203331"


class Peer:
    """A Paho client, connected."""

    def __init__(self, gateway: Gateway, client_id: str, version: int = mqtt.MQTTv5) -> None:
        self.client = mqtt.Client(CallbackAPIVersion.VERSION2, client_id, protocol=version)
        self.got: queue.Queue[mqtt.MQTTMessage] = queue.Queue()
        self._answers: queue.Queue[str] = queue.Queue()
        self.client.on_message = lambda client, data, message: self.got.put(message)
        self.client.on_connect = lambda *more: self._answers.put("connected")
        self.client.on_subscribe = lambda *more: self._answers.put("subscribed")
        self.client.connect(*gateway.broker.address)
        self.client.loop_start()
        assert self._answers.get(timeout=SECONDS_MAX) == "connected"

    def subscribe(self, topic: str, qos: int = 0, *pairs: tuple[str, str]) -> Peer:
        properties = Properties(PacketTypes.SUBSCRIBE)
        for pair in pairs:
            properties.UserProperty = pair
        is_v5 = self.client._protocol == mqtt.MQTTv5
        self.client.subscribe(topic, qos, **({"properties": properties} if is_v5 and pairs else {}))
        assert self._answers.get(timeout=SECONDS_MAX) == "subscribed"
        return self

    def publish(self, topic: str, qos: int, *pairs: tuple[str, str], retain: bool = False) -> None:
        properties = Properties(PacketTypes.PUBLISH)
        for pair in pairs:
            properties.UserProperty = pair
        self.client.publish(topic, b"21.5", qos, retain, properties).wait_for_publish(SECONDS_MAX)

    def message(self) -> mqtt.MQTTMessage:
        return self.got.get(timeout=SECONDS_MAX)

    def end(self) -> None:
        self.client.disconnect()
        self.client.loop_stop()


def pairs_of(message: mqtt.MQTTMessage) -> list[tuple[str, str]]:
    return list(getattr(message.properties, "UserProperty", []))


def context_of(message: mqtt.MQTTMessage) -> tuple[str, str]:
    """(trace id, span id) of its traceparent."""
    version, trace, span, flags = dict(pairs_of(message))["traceparent"].split("-")
    assert (version, flags) == ("00", "01")
    return trace, span


def sampled(trace: str) -> tuple[str, str]:
    return "traceparent", f"00-{trace}-{CALLER}-01"


Join = Callable[..., Peer]


@pytest.fixture(scope="module")
def receiver() -> Iterator[OtlpReceiver]:
    made = OtlpReceiver()
    yield made
    made.close()


@pytest.fixture(scope="module", params=[1, 2])
def gateway(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, receiver: OtlpReceiver
) -> Iterator[Gateway]:
    path = tmp_path_factory.mktemp(f"traced{request.param}")
    made = started(path, *settings(receiver.url, sample_every=2**31), shards=request.param)
    yield made
    made.broker.end()


def settings(url: str, **more: object) -> list[str]:
    given = {"otlp_endpoint": url, "service_name": "plant-broker", "traces_per_second_max": 10_000} | more
    return [f"trace.{name}={value}" for name, value in given.items()]


@pytest.fixture
def join(gateway: Gateway) -> Iterator[Join]:
    peers: list[Peer] = []

    def make(client_id: str, version: int = mqtt.MQTTv5) -> Peer:
        peers.append(Peer(gateway, client_id, version))
        return peers[-1]

    yield make
    for peer in peers:
        peer.end()


def shards_of(gateway: Gateway) -> int:
    return len(gateway.get("shards")["shards"])


def living_in(shard: int, count: int, name: str) -> str:
    """A client id, or a topic, that leads to a shard."""
    return next(made for n in itertools.count() if crc32((made := f"{name}{n}").encode()) % count == shard)


def check(spans: list[Told], trace: str) -> Told:
    """The hops of one trace have the right parents and times; returns its publish span."""
    (publish,) = [span for span in spans if span.name == "publish"]
    assert (publish.trace, publish.parent, publish.kind) == (trace, CALLER, "server")
    by_id = {span.span: span for span in spans}
    assert len(by_id) == len(spans)
    for span in spans:
        assert span.start_ns <= span.end_ns
        if span.name == "settle":
            assert by_id[span.parent].name == "deliver"
        elif span is not publish:
            assert span.parent == publish.span, span
        if span is not publish:
            assert span.start_ns >= publish.start_ns
    return publish


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_one_publish_is_one_trace_with_all_its_hops(
    gateway: Gateway, join: Join, receiver: OtlpReceiver, qos: int
) -> None:
    """With two shards publisher, partition and subscriber are in different ones, as far as two shards go."""
    trace, count, topic = (
        next(TRACES),
        shards_of(gateway),
        living_in(1 % shards_of(gateway), shards_of(gateway), "t/"),
    )
    near, far = (living_in(shard, count, f"s{qos}-") for shard in (0, 1 % count))
    readers = [join(near).subscribe("t/+", qos), join(far + "x" * (near == far)).subscribe("t/+", qos)]
    old = join(f"old{qos}", mqtt.MQTTv311).subscribe("t/+", qos)
    publisher = join(living_in(0, count, f"p{qos}-"))
    publisher.publish(topic, qos, ("a", "b"), sampled(trace), ("tracestate", "congo=t61"))
    got = [reader.message() for reader in readers]
    assert old.message().payload == b"21.5"
    hops = [
        "publish",
        "append",
        "commit",
        *["deliver"] * 3,
        *(["acknowledge", *["settle"] * 3] if qos else []),
    ]
    spans = receiver.trace(trace, *hops, *(["forward"] if count == 2 else []))
    publish = check(spans, trace)
    assert [context_of(message) for message in got] == [(trace, publish.span)] * 2
    assert all(pairs_of(message)[0] == ("a", "b") for message in got)
    assert all(dict(pairs_of(message))["tracestate"] == "congo=t61" for message in got)
    assert (publish.state, receiver.service) == ("congo=t61", "plant-broker")
    told = publish.attributes
    assert (told["messaging.system"], told["messaging.destination.name"]) == ("mqtt", topic)
    assert (told["rumq.qos"], told["messaging.message.body.size"]) == (qos, 4)
    assert told["messaging.client.id"].startswith("p")
    if count == 2:
        forwarded = {span.attributes["rumq.forward"] for span in spans if span.name == "forward"}
        owner = {span.attributes["rumq.shard"] for span in spans if span.name in ("append", "commit")}
        assert len(owner) == 1 and forwarded and {span.attributes["rumq.shard"] for span in spans} == {0, 1}
        if owner != {told["rumq.shard"]}:
            assert forwarded == {"append", "deliver"}


def test_a_shared_subscription_tells_the_member_that_got_it(
    gateway: Gateway, join: Join, receiver: OtlpReceiver
) -> None:
    trace, count = next(TRACES), shards_of(gateway)
    members = {name: join(name) for name in (living_in(shard % count, count, f"m{shard}-") for shard in range(2))}
    for member in members.values():
        member.subscribe("$share/g/shared/+", 1)
    join("sharing").publish("shared/1", 1, sampled(trace))
    spans = receiver.trace(trace, "publish", "deliver")
    publish = check(spans, trace)
    (deliver,) = [span for span in spans if span.name == "deliver"]
    message = members[str(deliver.attributes["messaging.client.id"])].message()
    assert context_of(message) == (trace, publish.span)
    assert "g" in str(deliver.attributes["messaging.consumer.group.name"])


def test_a_retained_message_and_a_replay_have_their_contexts(
    gateway: Gateway, join: Join, receiver: OtlpReceiver
) -> None:
    trace = next(TRACES)
    join("retaining").publish("kept/1", 1, sampled(trace), retain=True)
    publish = check(receiver.trace(trace, "publish", "commit"), trace)
    assert context_of(join("late").subscribe("kept/1").message()) == (trace, publish.span)
    replayed = join("historian").subscribe("kept/1", 0, ("rumq-from", "earliest")).message()
    linked, span = context_of(replayed)
    (replay,) = receiver.trace(linked, "replay")
    assert (replay.span, replay.parent, replay.links) == (
        span,
        "",
        [(trace, publish.span)],
    ) and linked != trace


@pytest.mark.parametrize("value", ["nonsense", f"00-{'0' * 32}-{CALLER}-01", f"00-{'A' * 32}-{CALLER}-01"])
def test_a_malformed_context_passes_unchanged(gateway: Gateway, join: Join, value: str) -> None:
    reader = join("careful").subscribe("odd/1")
    join("odd").publish("odd/1", 1, ("traceparent", value), ("tracestate", "x" * 50_000))
    assert pairs_of(reader.message()) == [("traceparent", value), ("tracestate", "x" * 50_000)]


def wait_metric(gateway: Gateway, done: Callable[[dict[str, float]], bool]) -> dict[str, float]:
    """The metrics, once they are as wanted: a scrape is at most a second old."""
    found: dict[str, float] = {}
    for _ in tries():
        text = gateway.ask("GET", "/metrics", token="reader").body.decode()
        found = {}
        for line in text.splitlines():
            if not line.startswith("#"):
                name, _, value = line.rpartition(" ")
                found[name.partition("{")[0]] = found.get(name.partition("{")[0], 0.0) + float(value)
        if done(found):
            return found
    raise AssertionError(found)


def test_an_endpoint_that_is_away_or_slow_is_nobodys_problem(tmp_path: Path, receiver: OtlpReceiver) -> None:
    """Messages and other requests go on; what is lost is counted, and told once; then it is taken again."""
    slow = OtlpReceiver()
    slow.status = 400  # not tried again by the SDK
    secret = tmp_path / "headers"
    secret.write_text("# of the vendor\nauthorization: Bearer s3cret\n")
    secret.chmod(0o600)
    gateway = started(tmp_path, *settings(slow.url, sample_every=1, headers_file=secret))
    try:
        reader, publisher = Peer(gateway, "r").subscribe("t", 1), Peer(gateway, "p")
        publisher.publish("t", 1)
        gateway.broker.event("trace.export_failed")
        slow.may_answer.clear()
        slow.status = 200
        before = len(slow.headers)
        publisher.publish("t", 1)
        slow.wait_requests(before + 1)
        for _ in range(50):  # while the endpoint holds a request
            publisher.publish("t", 1)
        assert [context_of(reader.message()) for _ in range(52)]
        found = wait_metric(gateway, lambda found: found["rumq_traces_total"] == 52)
        assert found["rumq_spans_lost_total"] >= 4
        slow.may_answer.set()
        resumed = gateway.broker.event("trace.export_resumed")
        assert resumed["lost"] >= 4 and resumed["endpoint"] == slow.url
        slow.wait(lambda spans: sum(span.name == "publish" for span in spans) == 51)
        assert slow.headers[-1]["authorization"] == "Bearer s3cret"
        for peer in (reader, publisher):
            peer.end()
    finally:
        slow.close()
        gateway.broker.end()


def test_a_reload_switches_tracing_on_and_off(tmp_path: Path, receiver: OtlpReceiver) -> None:
    config = tmp_path / "config.toml"

    def write(every: int) -> None:
        trace = f'[trace]\nsample_every = {every}\notlp_endpoint = "{receiver.url}"\n'
        config.write_text(f'{trace}[gateway]\nport = -1\nhost = "127.0.0.1"\n')

    write(0)
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    broker = Rumqd(data, "--config", str(config))
    broker.start()
    gateway: Any = Gateway(broker, {})
    try:
        reader, publisher = Peer(gateway, "r").subscribe("t", 1), Peer(gateway, "p")
        publisher.publish("t", 1)
        assert pairs_of(reader.message()) == []
        for times, (every, expected) in enumerate([(1, 1), (0, 0)], 1):
            write(every)
            os.kill(broker.process.pid, signal.SIGHUP)
            broker.event("settings.reloaded", number=times)
            publisher.publish("t", 1)
            message = reader.message()
            assert len(pairs_of(message)) == expected
            if every:
                receiver.trace(context_of(message)[0], "publish", "deliver", "settle")
        for peer in (reader, publisher):
            peer.end()
    finally:
        broker.end()
