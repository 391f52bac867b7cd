"""Broadcast over gRPC: to connected MQTT clients that are named and subscribe, in every shard, past the log."""

from pathlib import Path

import pytest
import trio

import rumq.client
from tests.cli.conftest import rumqd
from tests.services.conftest import EARLIEST, SECONDS, grpc_broker, message, refused
from tests.services.generated_client import pb
from tests.services.test_access import bearer


@pytest.mark.parametrize("shards", ["1", "2"])
def test_a_broadcast_reaches_named_subscribers_and_nobody_else(tmp_path: Path, shards: str) -> None:
    """GOR-5: on every shard. Who is not named, or does not subscribe, gets nothing; the log neither."""
    with grpc_broker(tmp_path / "data", "--shards", shards) as broker:
        ended = rumqd("token", "add", "ops", "--role", "administer", "--data", str(tmp_path / "data"))
        metadata = bearer(next(word for word in ended.out.split() if word.startswith("rumq_")))
        broker.process.hang_up()
        broker.process.event("grpc.reloaded")
        heard: dict[str, list[tuple[str, bytes]]] = {}

        def send(clients: str, payload: bytes) -> tuple[int, int, int]:
            sent = message("notice/all", payload, content_type="text/plain")
            answer = broker.stub.Broadcast(
                pb.BroadcastRequest(clients=clients, message=sent), metadata=metadata, timeout=SECONDS
            )
            return answer.named, answer.sent, answer.dropped

        async def listen(
            name: str, topic_filter: str, version: int, task_status: object = trio.TASK_STATUS_IGNORED
        ) -> None:
            host, port = broker.process.address
            async with rumq.client.connect(host, port, client_id=name, version=version) as client:
                await client.subscribe(topic_filter)
                task_status.started()  # type: ignore[attr-defined]
                async for each in client.messages():
                    heard.setdefault(name, []).append((each.topic, each.payload))
                    if each.payload == b"end":
                        return

        async def main() -> None:
            with trio.fail_after(SECONDS):
                async with trio.open_nursery() as nursery:
                    for n in range(6):
                        await nursery.start(listen, f"pump-{n}", "notice/#", 4 if n % 2 else 5)
                    await nursery.start(listen, "gate-1", "notice/+", 5)
                    await nursery.start(listen, "pump-deaf", "elsewhere", 5)
                    assert await trio.to_thread.run_sync(send, "pump-*", b"one") == (7, 6, 0)
                    assert await trio.to_thread.run_sync(send, "pump-3", b"two") == (1, 1, 0)
                    assert await trio.to_thread.run_sync(send, "none-*", b"three") == (0, 0, 0)
                    named, sent, _ = await trio.to_thread.run_sync(send, "*", b"end")
                    assert named >= 8 and sent == 7
                    while len(heard) < 7 or any(each[-1][1] != b"end" for each in heard.values()):
                        await trio.sleep(0)
                    nursery.cancel_scope.cancel()

        trio.run(main)
        for name, messages in heard.items():
            wanted = [b"one"] * name.startswith("pump") + [b"two"] * (name == "pump-3") + [b"end"]
            assert messages == [("notice/all", payload) for payload in wanted]
        assert broker.stored({"notice/#": EARLIEST}) == []
        for bad in (pb.BroadcastRequest(clients="*"), pb.BroadcastRequest(message=message("t")),
                    pb.BroadcastRequest(clients="*", message=message("t/#")),
                    pb.BroadcastRequest(clients="*", message=message("t", retain=True))):  # fmt: skip
            assert refused(broker.stub.Broadcast, bad, metadata=metadata)[0] == "INVALID_ARGUMENT"
        large = pb.BroadcastRequest(clients="*", message=message("t", b"x" * 30_000))
        assert refused(broker.stub.Broadcast, large, metadata=metadata)[1] == "MESSAGE_TOO_LARGE"
