"""A gRPC server that stops or is killed while its queues are in use: streams are told, messages come to the next."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from typing import Any

import grpc
import pytest

from tests.services.conftest import SECONDS, fault_of, grpc_broker
from tests.services.generated_client import queues_pb as qb
from tests.services.queues.conftest import FLAGS, QueueCaller
from tests.services.test_server import pids_of_servers


def test_streams_are_told_of_a_stop_and_messages_survive_a_kill(tmp_path: Path) -> None:
    with grpc_broker(tmp_path / "data", *FLAGS) as broker:
        queues = QueueCaller(broker)
        queues.create("stopped")
        channel = queues.channel("stopped")
        ids = queues.push("stopped", b"1", b"2", b"3")
        consumer = queues.consume(channel, credit=2)
        held = consumer.take(2)
        assert consumer.answer(acknowledge=[held[0].id]).done == 1
        waiting = queues.subscribe(queues.channel("stopped", topic="quiet"))
        assert next(waiting).consumer
        may_end = threading.Event()

        def requests() -> Any:
            yield qb.PushStreamRequest(queue="stopped", messages=[qb.PushMessage(payload=b"4")])
            may_end.wait(SECONDS)

        pushing = queues.stub.PushStream(requests(), timeout=SECONDS)
        assert list(next(pushing).ids) == ["4@__none__"]
        [server] = pids_of_servers(broker)
        os.kill(server, signal.SIGTERM)
        for call in (consumer.call, waiting, pushing):
            with pytest.raises(grpc.RpcError) as failed:
                for _ in call:
                    pass
            assert fault_of(failed.value)[:2] == ("UNAVAILABLE", "SHUTTING_DOWN")
        may_end.set()
        consumer.vanish()
        broker.process.event("grpc.died")
        broker.reach(2)
        second = queues.consume(channel, credit=10)
        found = {each.id: each.payload for each in second.take(3)}
        assert found == {ids[1]: b"2", ids[2]: b"3", "4@__none__": b"4"}
        [server] = pids_of_servers(broker)
        os.kill(server, signal.SIGKILL)
        broker.reach(3)
        third = queues.consume(channel, credit=10)
        assert {each.id: each.payload for each in third.take(3)} == found
        assert third.answer(acknowledge=list(found)).done == 3
        third.vanish()
        second.vanish()
        broker.process.events.clear()
