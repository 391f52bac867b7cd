"""A client of rumq.v1.BrokerService as a program has it: one channel, messages as protobuf's library makes them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import grpc

from rumq.services.generated import broker_service_pb2 as pb

SERVICE = "/rumq.v1.BrokerService"
LARGEST = [("grpc.max_receive_message_length", -1), ("grpc.use_local_subchannel_pool", 1)]


def target_of(port: int) -> str:
    return f"127.0.0.1:{port}"


class Caller:
    """port: of gRPC on loopback"""

    def __init__(self, port: int) -> None:
        self._channel = grpc.insecure_channel(target_of(port), LARGEST)
        self.publish_stream: Any = self._channel.stream_stream(
            f"{SERVICE}/PublishStream", pb.PublishStreamRequest.SerializeToString, pb.PublishStreamResponse.FromString
        )
        self.publish: Any = self._channel.unary_unary(
            f"{SERVICE}/Publish", pb.PublishRequest.SerializeToString, pb.PublishResponse.FromString
        )
        self.subscribe: Any = self._channel.unary_stream(
            f"{SERVICE}/Subscribe", pb.SubscribeRequest.SerializeToString, pb.SubscribeResponse.FromString
        )

    def close(self) -> None:
        self._channel.close()


def requests(count: int, a_request: int, topics: int, payload: bytes) -> Iterator[pb.PublishStreamRequest]:
    """So many messages, each made anew, to topics in turns."""
    for first in range(0, count, a_request):
        yield pb.PublishStreamRequest(
            messages=[
                pb.Message(topic=f"bench/{n % topics}", payload=payload)
                for n in range(first, min(first + a_request, count))
            ]
        )
