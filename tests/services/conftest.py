"""A broker with its gRPC server, and a client that was generated from the proto files."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest

from tests.broker_process import Rumqd
from tests.services.generated_client import pb, queue_stubs, stubs
from tests.services.node_client import install

SECONDS = 30.0
EARLIEST, LATEST = pb.POSITION_EARLIEST, pb.POSITION_LATEST


class GrpcBroker:
    """process: the broker; stub: of the generated client; queues: the stub of the other service"""

    def __init__(self, process: Rumqd) -> None:
        self.process = process
        self.stub: Any = None
        self.queues: Any = None
        self.target = ""
        self._channel: Any = None

    def start(self) -> None:
        self.process.start()
        self.reach()

    def reach(self, number: int = 1) -> None:
        """Open a channel to the server that has started last. number: of those of this broker's run"""
        bound = [each for each in self.wait_bound(number) if each["protocol"].startswith("grpc")][-1]
        self.target = f"{bound['host']}:{bound['port']}"
        self.close()
        self._channel = self.channel()
        self.stub = stubs.BrokerServiceStub(self._channel)
        self.queues = queue_stubs.QueuesStub(self._channel)

    def wait_bound(self, number: int) -> list[dict[str, Any]]:
        count = number
        while True:
            self.process.event("listener.bound", number=count)
            found = self.process.named("listener.bound")
            if sum(each["protocol"].startswith("grpc") for each in found) >= number:
                return found
            count = len(found) + 1

    def channel(self, *options: tuple[str, Any]) -> Any:
        # A connection of its own: channels to one address share theirs by default.
        return grpc.insecure_channel(self.target, [("grpc.use_local_subchannel_pool", 1), *options])

    def close(self) -> None:
        if self._channel is not None:
            self._channel.close()
            self._channel = None

    # --- what tests do all the time

    def publish(self, topic: str, payload: bytes = b"", metadata: Any = (), **fields: Any) -> int:
        request = pb.PublishRequest(message=pb.Message(topic=topic, payload=payload, **fields))
        return int(self.stub.Publish(request, timeout=SECONDS, metadata=metadata).id)

    def publish_all(self, messages: list[Any], a_request: int = 100) -> list[int]:
        """Ids of messages that were streamed."""

        def requests() -> Iterator[Any]:
            for at in range(0, len(messages), a_request):
                yield pb.PublishStreamRequest(messages=messages[at : at + a_request])

        ids: list[int] = []
        for answer in self.stub.PublishStream(requests(), timeout=SECONDS):
            assert not answer.refusals, answer.refusals
            ids += answer.ids
        return ids

    def fetch(self, topic: str, message_id: int, metadata: Any = (), **fields: Any) -> Any:
        request = pb.FetchRequest(topic=topic, id=message_id, **fields)
        return self.stub.Fetch(request, timeout=SECONDS, metadata=metadata).record

    def subscribe(self, topics: dict[str, Any], metadata: Any = (), stub: Any = None, **fields: Any) -> Any:
        """topics: a position, or fields of Start, by topic filter"""
        starts = {
            name: pb.Start(**start) if isinstance(start, dict) else pb.Start(position=start)
            for name, start in topics.items()
        }
        request = pb.SubscribeRequest(topics=starts, **fields)
        return (stub or self.stub).Subscribe(request, timeout=SECONDS, metadata=metadata)

    def stored(self, topics: dict[str, Any], **fields: Any) -> list[Any]:
        """All records until the end of the log."""
        call, found = self.subscribe(topics, **fields), []
        for answer in call:
            assert not answer.lost
            found += answer.records
            if answer.caught_up:
                break
        call.cancel()
        return found


def message(topic: str, payload: bytes = b"", **fields: Any) -> Any:
    return pb.Message(topic=topic, payload=payload, **fields)


@contextmanager
def grpc_broker(data: Path, *flags: str) -> Iterator[GrpcBroker]:
    found = GrpcBroker(Rumqd(data, "--set", "grpc.port=-1", "--set", "grpc.host=127.0.0.1", *flags))
    try:
        found.start()
        yield found
        failed = found.process.named("grpc.failed", "grpc.died")
        assert not failed, [each.get("exception", each) for each in failed[:3]]
    finally:
        found.close()
        found.process.end()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GrpcBroker]:
    """One that the tests of a module share."""
    with grpc_broker(tmp_path_factory.mktemp("grpc") / "data") as found:
        yield found


def fault_of(error: Any) -> tuple[str, str, dict[str, str]]:
    """Code, reason and metadata of a call that failed."""
    from google.rpc import error_details_pb2, status_pb2

    details = dict(error.trailing_metadata() or ())["grpc-status-details-bin"]
    status = status_pb2.Status.FromString(details)
    assert status.code == error.code().value[0] and status.message == error.details()
    info = error_details_pb2.ErrorInfo()
    assert status.details[0].Unpack(info)
    assert info.domain == "rumq"
    return error.code().name, info.reason, dict(info.metadata)


def refused(call: Any, *arguments: Any, **named: Any) -> tuple[str, str]:
    """Code and reason of a call that must fail."""
    named.setdefault("timeout", SECONDS)
    with pytest.raises(grpc.RpcError) as failed:
        first_of(call(*arguments, **named))
    return fault_of(failed.value)[:2]


def first_of(answer: Any) -> Any:
    """Of a call that gives one answer, or many."""
    return next(answer) if hasattr(answer, "__next__") else answer


@pytest.fixture(scope="session")
def node_packages() -> None:
    """@grpc/grpc-js and buf are in node_modules, in the versions that the lock file names."""
    install()
