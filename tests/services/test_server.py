"""The gRPC server as a process: beside a broker, stopped, killed, without its extra. docs/reference/grpc.md."""

import importlib.util
import os
import signal
import threading
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from rumq.errors import ConfigError
from rumq.process.grpc.grpc_server import address_of
from rumq.process.wiring.sidecars import check_sidecars
from rumq.settings.table import Grpc, Listener, Settings
from tests.services.conftest import EARLIEST, LATEST, SECONDS, GrpcBroker, fault_of, grpc_broker, message
from tests.services.generated_client import pb, stubs


def pids_of_servers(broker: GrpcBroker) -> list[int]:
    """Of gRPC servers that the broker has started."""
    parent = broker.process.process.pid
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                line = Path(f"/proc/{name}/cmdline").read_bytes().split(b"\0")
                status = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(status[1]) == parent and b"grpc" in line and status[0] != "Z":
                found.append(int(name))
    return found


def test_a_stop_says_not_serving_answers_what_was_sent_and_ends_calls(tmp_path: Path) -> None:
    with grpc_broker(tmp_path / "data") as broker:
        channel = broker.channel()
        watched = health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest(service=""))
        seen = [next(watched).status]
        while seen[-1] != health_pb2.HealthCheckResponse.SERVING:
            seen.append(next(watched).status)
        following = broker.subscribe({"t": LATEST})
        following.initial_metadata()
        may_end = threading.Event()

        def requests() -> object:
            yield pb.PublishStreamRequest(messages=[message("t", b"before")])
            may_end.wait(SECONDS)

        publishing = broker.stub.PublishStream(requests(), timeout=SECONDS)
        assert list(next(publishing).ids) == [1]
        [server] = pids_of_servers(broker)
        os.kill(server, signal.SIGTERM)
        assert next(watched).status == health_pb2.HealthCheckResponse.NOT_SERVING
        for call in (following, publishing):
            with pytest.raises(grpc.RpcError) as failed:
                list(call)
            assert fault_of(failed.value)[:2] == ("UNAVAILABLE", "SHUTTING_DOWN")
        may_end.set()
        channel.close()
        broker.process.event("grpc.died")  # the broker starts another one, with what was published
        broker.reach(2)
        assert [each.payload for each in broker.stored({"t": EARLIEST})] == [b"before"]
        assert broker.publish("t") == 2
        broker.process.events.clear()


def test_a_killed_server_is_started_again_and_ids_go_on(tmp_path: Path) -> None:
    with grpc_broker(tmp_path / "data") as broker:
        assert [broker.publish("t"), broker.publish("t")] == [1, 2]
        [server] = pids_of_servers(broker)
        os.kill(server, signal.SIGKILL)
        broker.reach(2)
        assert broker.publish("t") == 3
        broker.process.events.clear()


def test_the_broker_alone_has_no_grpc(tmp_path: Path) -> None:
    """Off by default: no process, no socket."""
    from tests.broker_process import Rumqd

    process = Rumqd(tmp_path / "data")
    try:
        process.start()
        assert not (tmp_path / "data" / "gateway.sock").exists()
        assert not [each for each in process.named("listener.bound") if each["protocol"].startswith("grpc")]
    finally:
        process.end()


def test_without_its_extra_the_broker_says_which_package_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "grpc_health" else find(name))
    with pytest.raises(ConfigError, match=r"grpc_health is missing: pip install \"rumq\[grpc\]\""):
        check_sidecars(Settings(grpc=Grpc(port=-1)))


def test_users_of_grpc_need_rules_of_their_own_where_listeners_have_them(tmp_path: Path) -> None:
    users = tmp_path / "users"
    users.write_text("")
    users.chmod(0o600)
    settings = Settings(
        grpc=Grpc(port=-1, password_file=str(users)), listener=Listener(mount_point="tenant-a/", host="127.0.0.1")
    )
    with pytest.raises(ConfigError, match=r"gateway.rules_file.*mount_point"):
        check_sidecars(settings)
    with pytest.raises(ConfigError, match=r"grpc\.tls_certificate: is missing"):
        check_sidecars(Settings(grpc=Grpc(port=-1, tls_authority="ca.pem")))


def test_a_port_in_use_is_refused(tmp_path: Path) -> None:
    with grpc_broker(tmp_path / "data") as broker:
        from tests.cli.conftest import rumqd

        host, port = broker.target.split(":")
        ended = rumqd("grpc", "--data", str(tmp_path / "data"), "--host", host, "--port", port)
        assert ended.status == 1
        assert f"cannot listen on {host}:{port}" in ended.err and "grpc.port" in ended.err


def test_addresses() -> None:
    assert address_of("*", 8820) == "[::]:8820"
    assert address_of("::1", 0) == "[::1]:0"
    assert address_of("localhost", 8820) == "localhost:8820"


def test_killed_brokers_lose_no_acknowledged_id_and_give_none_twice(tmp_path: Path) -> None:
    """kill -9 while messages are streamed: every id that was answered is there with its content; ids have no gap."""
    answered: dict[int, bytes] = {}
    with grpc_broker(tmp_path / "data") as broker:
        for run in range(3):
            kill_at = 2_000
            sent = 0

            def requests(run: int = run) -> object:
                nonlocal sent
                while True:
                    yield pb.PublishStreamRequest(
                        messages=[message("kept", b"%d-%d" % (run, sent + n)) for n in range(50)]
                    )
                    sent += 50

            call = broker.stub.PublishStream(requests(), timeout=SECONDS)
            number = 0
            try:
                for answer in call:
                    for each in answer.ids:
                        if each:
                            assert each not in answered, "an id was given twice"
                            answered[each] = b"%d-%d" % (run, number)
                        number += 1
                    if number > kill_at and broker.process.process.poll() is None:
                        broker.process.kill()
            except grpc.RpcError:
                pass
            assert call.code() == grpc.StatusCode.UNAVAILABLE
            broker.start()
        records = broker.stored({"kept": EARLIEST})
    assert [each.id for each in records] == list(range(1, len(records) + 1))
    contents = {each.id: each.payload for each in records}
    assert len(answered) > 5_000
    assert {number: contents.get(number) for number in answered} == answered


def test_two_shards_number_topics_as_one(tmp_path: Path) -> None:
    with grpc_broker(tmp_path / "data", "--shards", "2") as broker:
        ids = broker.publish_all([message(f"t/{n % 10}", b"%d" % n) for n in range(2_000)])
        assert ids == [n // 10 + 1 for n in range(2_000)]
        records = broker.stored({"t/#": EARLIEST})
        assert {each.partition for each in records} == {"main/g1/p0", "main/g1/p1"}
        assert sorted((each.topic, each.id) for each in records) == sorted(
            (f"t/{n % 10}", n // 10 + 1) for n in range(2_000)
        )
        stub = stubs.BrokerServiceStub(broker.channel())
        found = stub.DescribeTopics(pb.DescribeTopicsRequest(filter="t/#"), timeout=SECONDS)
        assert {each.last_id for each in found.topics} == {200}
