"""A gRPC server of a broker without queues: every call names the setting, and the heartbeat still beats.

A broker of its own, and the health service's view."""

from __future__ import annotations

from pathlib import Path

from grpc_health.v1 import health_pb2, health_pb2_grpc

from tests.services.conftest import grpc_broker, refused
from tests.services.generated_client import queues_pb as qb
from tests.services.queues.conftest import QueueCaller

OFF = ("FAILED_PRECONDITION", "QUEUES_DISABLED")
STREAMED = ("PushStream", "Consume")


def test_calls_name_the_setting_and_the_heartbeat_beats(tmp_path: Path) -> None:
    with grpc_broker(tmp_path / "data") as broker:
        queues = QueueCaller(broker)
        for method in qb.DESCRIPTOR.services_by_name["Queues"].methods:
            if method.name == "GetHeartbeat":
                continue
            call = getattr(queues.stub, method.name)
            request = getattr(qb, method.input_type.name)()
            if method.name == "PushStream":
                request = qb.PushStreamRequest(queue="q", messages=[qb.PushMessage()])
            if method.name == "PushToQueue":
                request = qb.PushToQueueRequest(queue="q", messages=[qb.PushMessage()])
            assert refused(call, iter([request]) if method.name in STREAMED else request) == OFF, method.name
        found = queues.ask("GetHeartbeat")
        assert not found.serving and "queues.enabled" in found.why and found.queues == 0
        channel = broker.channel()
        health = health_pb2_grpc.HealthStub(channel)
        answer = health.Check(health_pb2.HealthCheckRequest(service="rumq.v1.Queues"))
        assert answer.status == health_pb2.HealthCheckResponse.NOT_SERVING
        channel.close()
        assert broker.publish("still") == 1
