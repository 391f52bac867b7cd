"""Who may do what over gRPC: passwords, tokens, client certificates, rules, roles, reloads; wrong logins are slowed."""

import base64
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
import trustme

from rumq.services.server import METADATA_BYTES_MAX
from tests.cli.conftest import rumqd
from tests.services.conftest import EARLIEST, LATEST, SECONDS, GrpcBroker, fault_of, grpc_broker, message, refused
from tests.services.generated_client import pb, stubs

RULES = """
[[rule]]
users = ["anna"]
allow = ["publish", "subscribe", "replay"]
topics = ["anna/#", "shared/#"]

[[rule]]
users = ["ben"]
allow = ["subscribe", "replay"]
topics = ["shared/#"]

[[rule]]
users = ["machine"]
allow = ["publish", "subscribe", "replay"]
topics = ["#"]
"""


def basic(user: str, password: str) -> tuple[tuple[str, str], ...]:
    return (("authorization", "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()),)


def bearer(token: str) -> tuple[tuple[str, str], ...]:
    return (("authorization", f"Bearer {token}"),)


ANNA, BEN = basic("anna", "secret-a"), basic("ben", "secret-b")


class Protected:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.data, self.users, self.rules = folder / "data", folder / "users", folder / "rules.toml"
        for user, password in (("anna", "secret-a"), ("ben", "secret-b")):
            create = [] if self.users.exists() else ["-c"]
            assert rumqd("passwd", *create, str(self.users), user, stdin=f"{password}\n".encode()).status == 0
        self.write_rules(RULES)
        self.flags = (
            "--set", f"auth.password_file={self.users}", "--set", f"auth.rules_file={self.rules}",
            "--set", "auth.guess_seconds_max=2",
        )  # fmt: skip

    def write_rules(self, text: str) -> None:
        self.rules.write_text(text)
        self.rules.chmod(0o600)

    def token(self, name: str, *flags: str) -> tuple[tuple[str, str], ...]:
        ended = rumqd("token", "add", name, *flags, "--data", str(self.data))
        assert ended.status == 0, ended.err
        return bearer(next(word for word in ended.out.split() if word.startswith("rumq_")))


@pytest.fixture(scope="module")
def protected(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[GrpcBroker, Protected]]:
    given = Protected(tmp_path_factory.mktemp("access"))
    with grpc_broker(given.data, *given.flags) as broker:
        yield broker, given


def publish(broker: GrpcBroker, topic: str, metadata: Any) -> tuple[str, str]:
    request = pb.PublishRequest(message=message(topic))
    return refused(broker.stub.Publish, request, metadata=metadata)


def test_without_a_login_nothing_is_done(protected: tuple[GrpcBroker, Protected]) -> None:
    broker, _ = protected
    assert publish(broker, "shared/a", ()) == ("UNAUTHENTICATED", "LOGIN_REQUIRED")
    for header in ("Basic !", "Basic ", "Negotiate x", "Bearer x.y.z", "Bearer rumq_unknown", "Basic " + "A" * 9_000):
        assert publish(broker, "shared/a", (("authorization", header),))[0] == "UNAUTHENTICATED"


def test_metadata_over_its_bound_is_refused_each_time(protected: tuple[GrpcBroker, Protected]) -> None:
    broker, _ = protected
    header = (("authorization", "Basic " + "A" * METADATA_BYTES_MAX),)
    for _ in range(20):
        with pytest.raises(grpc.RpcError) as failed:
            broker.stub.Publish(pb.PublishRequest(message=message("shared/a")), metadata=header)
        assert failed.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    for _ in range(20):  # under it, the answer is the broker's
        assert publish(broker, "shared/a", (("authorization", "Basic " + "A" * 15_000),))[0] == "UNAUTHENTICATED"


def test_rules_hold_for_publishing_reading_and_describing(protected: tuple[GrpcBroker, Protected]) -> None:
    broker, _ = protected
    denied = ("PERMISSION_DENIED", "NOT_AUTHORIZED")
    first = broker.publish("anna/1", b"x", metadata=ANNA)
    broker.publish("shared/1", b"y", metadata=ANNA)
    assert publish(broker, "ben/1", ANNA) == denied
    assert publish(broker, "shared/1", BEN) == denied
    assert refused(broker.stub.Fetch, pb.FetchRequest(topic="anna/1", id=first), metadata=BEN) == denied
    with pytest.raises(grpc.RpcError) as failed:
        next(broker.subscribe({"anna/#": EARLIEST}, metadata=BEN))
    assert fault_of(failed.value)[:2] == denied
    assert {each.topic for each in broker_stored(broker, {"#": EARLIEST}, BEN)} == {"shared/1"}
    assert {each.topic for each in broker_stored(broker, {"#": EARLIEST}, ANNA)} == {"shared/1", "anna/1"}
    found = broker.stub.DescribeTopics(pb.DescribeTopicsRequest(), metadata=BEN, timeout=SECONDS)
    assert [each.topic for each in found.topics] == ["shared/1"]
    retained = pb.PublishRequest(message=message("shared/1", retain=True))
    assert refused(broker.stub.Publish, retained, metadata=ANNA) == denied


def broker_stored(broker: GrpcBroker, topics: dict[str, Any], metadata: Any) -> list[Any]:
    found: list[Any] = []
    call = broker.subscribe(topics, metadata=metadata)
    for answer in call:
        found += answer.records
        if answer.caught_up:
            break
    call.cancel()
    return found


def test_a_refused_message_of_a_stream_says_who_may_not(protected: tuple[GrpcBroker, Protected]) -> None:
    broker, _ = protected
    request = pb.PublishStreamRequest(messages=[message("shared/s"), message("ben/s"), message("shared/s")])
    answers = list(broker.stub.PublishStream(iter([request]), metadata=ANNA, timeout=SECONDS))
    assert [each for answer in answers for each in answer.ids] == [1, 0, 2]
    [refusal] = [each for answer in answers for each in answer.refusals]
    assert refusal.reason == "NOT_AUTHORIZED" and "user anna" in refusal.detail and "ben/s" in refusal.detail


def test_tokens_have_roles(protected: tuple[GrpcBroker, Protected]) -> None:
    broker, given = protected
    reads = given.token("reads", "--role", "read", "--user", "machine")
    writes = given.token("writes", "--role", "publish", "--user", "machine")
    rules_all = given.token("all", "--role", "read", "--role", "administer", "--user", "machine")
    broker.process.hang_up()
    broker.process.event("grpc.reloaded")
    missing = ("PERMISSION_DENIED", "ROLE_MISSING")
    number = broker.publish("by/token", metadata=writes)
    assert broker.fetch("by/token", number, metadata=reads).id == number
    assert publish(broker, "by/token", reads) == missing
    assert refused(broker.stub.Fetch, pb.FetchRequest(topic="by/token", id=1), metadata=writes) == missing
    for call, request in ((broker.stub.DescribeStreams, pb.DescribeStreamsRequest()),
                          (broker.stub.DescribeClients, pb.DescribeClientsRequest())):  # fmt: skip
        assert refused(call, request, metadata=ANNA) == missing
        assert refused(call, request, metadata=writes) == missing
    [stream] = broker.stub.DescribeStreams(pb.DescribeStreamsRequest(), metadata=reads, timeout=SECONDS).streams
    assert (stream.stream, stream.durability, stream.partitions) == ("main", "disk", 1) and stream.records >= number
    request = pb.DescribeClientsRequest(clients="rumq-grpc-*")
    clients = broker.stub.DescribeClients(request, metadata=reads, timeout=SECONDS).clients
    assert {each.user for each in clients} >= {"machine", "anna"} and all(each.connected for each in clients)
    broadcast = pb.BroadcastRequest(clients="*", message=message("t"))
    assert refused(broker.stub.Broadcast, broadcast, metadata=reads) == missing
    assert refused(broker.stub.Broadcast, broadcast, metadata=ANNA) == missing
    assert broker.stub.Broadcast(broadcast, metadata=rules_all, timeout=SECONDS).sent == 0


def test_a_reload_ends_what_is_allowed_no_more(tmp_path: Path) -> None:
    """A rule that is gone narrows a subscription that runs; a user that is gone ends it."""
    given = Protected(tmp_path)
    with grpc_broker(given.data, *given.flags) as broker:
        call = broker.subscribe({"#": LATEST}, metadata=ANNA)
        call.initial_metadata()
        broker.publish("anna/1", b"1", metadata=ANNA)
        broker.publish("shared/1", b"1", metadata=ANNA)
        heard = records_of(call)
        assert {next(heard).topic, next(heard).topic} == {"anna/1", "shared/1"}
        given.write_rules(RULES.replace('topics = ["anna/#", "shared/#"]', 'topics = ["shared/#"]'))
        broker.process.hang_up()
        broker.process.event("grpc.reloaded")
        assert publish(broker, "anna/1", ANNA) == ("PERMISSION_DENIED", "NOT_AUTHORIZED")
        broker.publish("shared/1", b"2", metadata=ANNA)
        assert next(heard).payload == b"2"
        lines = given.users.read_text().splitlines()
        given.users.write_text("\n".join(line for line in lines if not line.startswith("anna")) + "\n")
        broker.process.hang_up()
        broker.process.event("grpc.reloaded", number=2)
        with pytest.raises(grpc.RpcError) as failed:
            next(heard)
        assert fault_of(failed.value)[:2] == ("UNAUTHENTICATED", "LOGIN_ENDED")


def records_of(call: Any) -> Iterator[Any]:
    for answer in call:
        yield from answer.records


def test_wrong_logins_wait_longer_each_time_and_right_ones_do_not(tmp_path: Path) -> None:
    given = Protected(tmp_path)
    with grpc_broker(given.data, *given.flags) as broker:
        broker.publish("shared/1", metadata=ANNA)
        took = []
        for header in (*[basic("anna", "wrong")] * 3, *[bearer("rumq_wrong")] * 3):
            began = time.monotonic()
            assert publish(broker, "shared/1", header) == ("UNAUTHENTICATED", "LOGIN_REQUIRED")
            took.append(time.monotonic() - began)
        assert took[1] > 0.4 and took[2] > 0.9 and took[4] > 0.4 and took[5] > 0.9
        waiting = [
            broker.stub.Publish.future(pb.PublishRequest(message=message("t")), metadata=basic("anna", "w"), timeout=60)
            for _ in range(40)
        ]
        began = time.monotonic()
        broker.publish("shared/1", metadata=ANNA)
        assert time.monotonic() - began < 1.5
        reasons = {fault_of(each.exception())[1] for each in waiting}
        assert reasons == {"LOGIN_REQUIRED", "TOO_MANY_LOGINS"}


def test_a_client_certificate_is_a_login(tmp_path: Path) -> None:
    authority = trustme.CA()
    server, client = authority.issue_cert("localhost", "127.0.0.1"), authority.issue_cert("a@b", common_name="anna")
    files = {
        "server.pem": server.cert_chain_pems[0], "server.key": server.private_key_pem, "ca.pem": authority.cert_pem,
    }  # fmt: skip
    for name, blob in files.items():
        (tmp_path / name).write_bytes(blob.bytes())
        (tmp_path / name).chmod(0o600)
    given = Protected(tmp_path)
    tls = [
        flag for key, name in zip(("tls_certificate", "tls_key", "tls_authority"), files, strict=True)
        for flag in ("--set", f"grpc.{key}={tmp_path / name}")
    ]  # fmt: skip
    with grpc_broker(given.data, *given.flags, *tls) as broker:
        credentials = grpc.ssl_channel_credentials(
            authority.cert_pem.bytes(), client.private_key_pem.bytes(), client.cert_chain_pems[0].bytes()
        )
        with grpc.secure_channel(broker.target, credentials) as channel:
            stub = stubs.BrokerServiceStub(channel)
            answer = stub.Publish(pb.PublishRequest(message=message("anna/tls")), timeout=SECONDS)
            assert answer.id == 1
            with pytest.raises(grpc.RpcError) as failed:
                stub.Publish(pb.PublishRequest(message=message("ben/tls")), timeout=SECONDS)
            assert fault_of(failed.value)[:2] == ("PERMISSION_DENIED", "NOT_AUTHORIZED")
        without = grpc.ssl_channel_credentials(authority.cert_pem.bytes())
        with grpc.secure_channel(broker.target, without) as channel:
            with pytest.raises(grpc.RpcError) as failed:
                stubs.BrokerServiceStub(channel).Publish(pb.PublishRequest(message=message("anna/tls")), timeout=5)
            assert failed.value.code() == grpc.StatusCode.UNAVAILABLE
        renewed = authority.issue_cert("localhost", "127.0.0.1")
        (tmp_path / "server.key").write_bytes(renewed.private_key_pem.bytes())
        (tmp_path / "server.pem").write_bytes(renewed.cert_chain_pems[0].bytes())
        broker.process.hang_up()
        broker.process.event("grpc.reloaded")
        import ssl

        host, port = broker.target.split(":")
        until = time.monotonic() + SECONDS
        while ssl.get_server_certificate((host, int(port))).encode() != renewed.cert_chain_pems[0].bytes():
            assert time.monotonic() < until
