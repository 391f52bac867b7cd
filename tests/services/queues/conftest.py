"""A broker with queues and gRPC, and what tests of its queues do all the time."""

from __future__ import annotations

import queue
from collections.abc import Iterator
from typing import Any

import pytest

from tests.services.conftest import SECONDS, GrpcBroker, grpc_broker
from tests.services.generated_client import queues_pb as qb
from tests.tries import tries

FLAGS = ("--set", "queues.enabled=true")


@pytest.fixture(scope="module")
def queues(tmp_path_factory: pytest.TempPathFactory) -> Iterator[QueueCaller]:
    """Of a broker that the tests of a module share."""
    with grpc_broker(tmp_path_factory.mktemp("queues") / "data", *FLAGS) as found:
        yield QueueCaller(found)


class QueueCaller:
    """metadata: its login"""

    def __init__(self, broker: GrpcBroker, metadata: Any = (), stub: Any = None) -> None:
        self.broker, self.metadata = broker, metadata
        self._stub = stub

    @property
    def stub(self) -> Any:
        return self._stub or self.broker.queues

    def ask(self, name: str, **fields: Any) -> Any:
        """The answer of a call with one request."""
        request = getattr(qb, f"{name}Request")(**fields)
        return getattr(self.stub, name)(request, timeout=SECONDS, metadata=self.metadata, wait_for_ready=True)

    def create(self, label: str, **settings: Any) -> Any:
        return self.ask("CreateQueue", queue=label, settings=qb.QueueSettings(**settings)).queue

    def channel(self, label: str, topic: str = "", channel_id: str = "", **settings: Any) -> str:
        found = self.ask(
            "CreateChannel", queue=label, topic=topic, id=channel_id, settings=qb.ChannelSettings(**settings)
        )
        return str(found.channel.id)

    def push(self, label: str, *payloads: bytes, **fields: Any) -> list[str]:
        messages = [qb.PushMessage(payload=each, **fields) for each in payloads]
        answer = self.ask("PushToQueue", queue=label, messages=messages)
        assert not answer.refusals, answer.refusals
        return list(answer.ids)

    def consume(self, channel: str, credit: int = 0) -> Consuming:
        return Consuming(self, channel, credit)

    def depth_at(self, channel: str, wanted: int) -> bool:
        """Whether it is so soon: a depth that is told is up to half a second old."""
        found = (self.ask("GetChannel", channel=channel).channel.depth for _ in tries())
        return any(depth == wanted for depth in found)

    def subscribe(self, channel: str, **fields: Any) -> Any:
        request = qb.SubscribeToChannelRequest(channel=channel, **fields)
        return self.stub.SubscribeToChannel(request, timeout=SECONDS, metadata=self.metadata)


class Consuming:
    """One call of Consume. told: what was answered"""

    def __init__(self, caller: QueueCaller, channel: str, credit: int) -> None:
        self._requests: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._requests.put(qb.ConsumeRequest(channel=channel, credit=credit))
        self.call = caller.stub.Consume(iter(self._requests.get, None), timeout=SECONDS, metadata=caller.metadata)
        self.call.initial_metadata()
        self.told = qb.Answered()
        self._come: list[Any] = []

    def take(self, count: int) -> list[Any]:
        """So many messages, or more that came with them."""
        while len(self._come) < count:
            self._next()
        found, self._come = self._come, []
        return found

    def answer(self, **answers: Any) -> Any:
        """What was made of them."""
        before = self.told.requests
        self.send(**answers)
        while True:
            response = self._next()
            if self.told.requests > before:
                return response.answered

    def send(self, **answers: Any) -> None:
        self._requests.put(qb.ConsumeRequest(answers=qb.Answers(**answers)))

    def _next(self) -> Any:
        response = next(self.call)
        self._come += response.messages
        self.told.requests += response.answered.requests
        self.told.done += response.answered.done
        self.told.not_held.extend(response.answered.not_held)
        return response

    def close(self) -> list[Any]:
        """Close this side; what still comes."""
        self._requests.put(None)
        return [each for response in self.call for each in response.messages]

    def vanish(self) -> None:
        self.call.cancel()
        self._requests.put(None)
