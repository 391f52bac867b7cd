"""Whatever one caller does over gRPC, its end is the worst that happens, and only to it: bounds by calls and bytes."""

import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from tests.services.conftest import EARLIEST, LATEST, SECONDS, GrpcBroker, fault_of, grpc_broker, message, refused
from tests.services.generated_client import pb, stubs
from tests.services.test_server import pids_of_servers

EXHAUSTED = "RESOURCE_EXHAUSTED"
MIB = 1 << 20


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GrpcBroker]:
    flags = [
        "grpc.calls_max=40", "grpc.request_messages_max=100", "grpc.request_bytes_max=100000",
        "mqtt.packet_bytes_max=10000", "grpc.waiting_bytes_max=1048576",
    ]  # fmt: skip
    given = [part for flag in flags for part in ("--set", flag)]
    with grpc_broker(tmp_path_factory.mktemp("small") / "data", *given) as found:
        yield found


def test_malformed_protobufs_are_the_callers_fault(server: GrpcBroker) -> None:
    channel = server.channel()
    for name in ("Publish", "Fetch", "DescribeTopics", "Broadcast"):
        call = channel.unary_unary(f"/rumq.v1.BrokerService/{name}")
        for data in (b"\xff", b"\x0a\xff\xff\xff\xff\x0f", os.urandom(100), b"\x0b" * 1_000):
            with pytest.raises(grpc.RpcError) as failed:
                call(data, timeout=SECONDS)
            assert fault_of(failed.value)[0] in ("INVALID_ARGUMENT", "PERMISSION_DENIED")
    for data in (b"\xff", b"\x0a\xff"):
        with pytest.raises(grpc.RpcError) as failed:
            list(channel.unary_stream("/rumq.v1.BrokerService/Subscribe")(data, timeout=SECONDS))
        assert fault_of(failed.value)[:2] == ("INVALID_ARGUMENT", "ARGUMENT_INVALID")
        with pytest.raises(grpc.RpcError) as failed:
            list(channel.stream_stream("/rumq.v1.BrokerService/PublishStream")(iter([b"", data]), timeout=SECONDS))
        assert fault_of(failed.value)[:2] == ("INVALID_ARGUMENT", "ARGUMENT_INVALID")
    with pytest.raises(grpc.RpcError) as failed:
        channel.unary_unary("/rumq.v1.BrokerService/Drop")(b"", timeout=SECONDS)
    assert failed.value.code() == grpc.StatusCode.UNIMPLEMENTED
    channel.close()
    assert server.publish("still/here") == 1


def test_bytes_that_are_no_http_end_their_connection_alone(server: GrpcBroker) -> None:
    host, port = server.target.split(":")
    for data in (b"GET / HTTP/1.1\r\n\r\n", os.urandom(5_000), b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\xff" * 5_000):
        with socket.create_connection((host, int(port)), timeout=SECONDS) as sock:
            sock.sendall(data)
    server.publish("still/there")


def test_a_request_beyond_its_bounds_is_refused(small: GrpcBroker) -> None:
    assert refused(small.stub.Publish, pb.PublishRequest(message=message("t", b"x" * 20_000))) == (
        EXHAUSTED,
        "MESSAGE_TOO_LARGE",
    )
    many = pb.PublishStreamRequest(messages=[message("t")] * 101)
    assert refused(small.stub.PublishStream, iter([many])) == (EXHAUSTED, "REQUEST_TOO_LARGE")
    topics = {f"t/{n}": pb.Start() for n in range(65)}
    assert refused(small.stub.Subscribe, pb.SubscribeRequest(topics=topics)) == (EXHAUSTED, "REQUEST_TOO_LARGE")
    with pytest.raises(grpc.RpcError) as failed:
        small.stub.Publish(pb.PublishRequest(message=message("t", b"x" * 200_000)), timeout=SECONDS)
    assert failed.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED  # by gRPC itself, which has read no more of it
    assert small.publish("t") == 1


def test_a_thousand_streams_of_one_caller_are_refused_beyond_its_share(small: GrpcBroker) -> None:
    """Half of the calls are its network's; the rest is answered at once, and when they end there is room again."""
    channel = small.channel()
    stub = stubs.BrokerServiceStub(channel)
    request = pb.SubscribeRequest(topics={"t": pb.Start(position=LATEST)})
    calls = [stub.Subscribe(request, timeout=SECONDS) for _ in range(1_000)]
    outcomes: dict[str, int] = {}
    for call in calls:
        try:
            next(call)
            outcome = "open"
        except grpc.RpcError as failed:
            outcome = failed.code().name  # type: ignore[attr-defined]
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
    assert outcomes == {"open": 20, EXHAUSTED: 980}
    code, reason, metadata = fault_of(calls[-1])
    assert (code, reason) == (EXHAUSTED, "TOO_MANY_CALLS")
    assert metadata["limit"] == "20" and metadata["holder"] == "network" and metadata["setting"] == "grpc.calls_max"
    for call in calls:
        call.cancel()
    channel.close()
    until = time.monotonic() + SECONDS
    while True:
        try:
            small.publish("t")
            break
        except grpc.RpcError:
            assert time.monotonic() < until


def memory_of(pid: int) -> int:
    """Bytes."""
    line = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) << 10


def test_callers_that_stop_reading_hold_a_bounded_piece_each(server: GrpcBroker) -> None:
    """20 subscriptions of a log of 60 MiB, of which nobody reads: the log is the queue, not the server's memory."""
    server.publish_all([message("unread", b"x" * 60_000)] * 1_000, a_request=20)
    [pid] = pids_of_servers(server)
    before = memory_of(pid)
    channels = [server.channel(("grpc.http2.bdp_probe", 0)) for _ in range(20)]
    request = pb.SubscribeRequest(topics={"unread": pb.Start(position=EARLIEST)})
    calls = [stubs.BrokerServiceStub(each).Subscribe(request, timeout=SECONDS) for each in channels]
    for call in calls:
        call.initial_metadata()
    reader = server.stored({"unread": EARLIEST})  # meanwhile somebody reads all of it
    assert len(reader) == 1_000
    server.publish("others")
    grown = memory_of(pid) - before
    assert grown < 120 * MIB, grown
    for call in calls:
        call.cancel()
    for channel in channels:
        channel.close()


def test_a_caller_that_vanishes_gives_its_calls_back(small: GrpcBroker) -> None:
    """Channels are closed without a word to the calls; again and again there is room for as many."""
    request = pb.SubscribeRequest(topics={"t": pb.Start(position=LATEST)})
    for _ in range(5):
        channel = small.channel()
        calls: list[Any] = []
        until = time.monotonic() + SECONDS
        while len(calls) < 15:
            call = stubs.BrokerServiceStub(channel).Subscribe(request, timeout=SECONDS)
            try:
                next(call)
                calls.append(call)
            except grpc.RpcError:
                assert time.monotonic() < until, "calls of channels that are closed are still held"
        channel.close()


def test_a_stream_that_is_never_answered_stops_being_read(small: GrpcBroker) -> None:
    """A caller sends without end and reads no answer: what waits is bounded, others publish."""

    def requests() -> Iterator[Any]:
        until = time.monotonic() + 5
        while time.monotonic() < until:
            yield pb.PublishStreamRequest(messages=[message("endless", b"x" * 900)] * 100)

    channel = small.channel()
    call = stubs.BrokerServiceStub(channel).PublishStream(requests(), timeout=SECONDS)
    for _ in range(10):
        small.publish("beside")
    [pid] = pids_of_servers(small)
    assert memory_of(pid) < 400 * MIB
    call.cancel()
    channel.close()
    assert small.publish("beside") == 11
