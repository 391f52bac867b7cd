"""What gains by batches: acknowledgements for a system call, and bytes of a message that nobody copies again."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from router.effects import Deliver
from rumq.session.state.session import shape_of
from rumq.shards.delivery.fan_out_cache import FanOutCache
from tests.broker_process import Rumqd
from tests.conformance import wire
from tests.conformance.wire import Kind
from tests.limits.conftest import Dial
from tests.limits.test_one_copy import wait_until_attached
from tests.router.world import World

MESSAGES = 1000


@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace (sudo apt-get install strace)")
def test_acknowledgements_leave_many_to_a_system_call(data: Path, tmp_path: Path, join: Dial) -> None:
    broker = Rumqd(data)
    broker.start()
    trace = tmp_path / "trace"
    publisher = join(broker, "p")
    tracer = subprocess.Popen(
        ["strace", "-f", "-yy", "-qq", "-e", "trace=write,writev", "-o", str(trace), "-p", str(broker.process.pid)],
        stderr=subprocess.PIPE,
    )
    try:
        wait_until_attached(broker, tracer)
        publisher.send(*[wire.publish("t", b"x", 1, number + 1) for number in range(MESSAGES)])
        answers = [publisher.expect(Kind.PUBACK).packet_id for _ in range(MESSAGES)]
    finally:
        tracer.terminate()
        tracer.wait()
        broker.end()
    assert answers == list(range(1, MESSAGES + 1))
    calls = [line for line in trace.read_text(errors="replace").splitlines() if re.search(r"<TCP:.*\) += \d", line)]
    assert calls, "the trace saw the acknowledgements leave"
    assert MESSAGES / len(calls) > 10


def test_a_message_that_goes_out_as_it_came_is_not_copied_on_its_way_to_the_outboxes() -> None:
    """One copy for any number of subscribers: the chunk's own frames are what their outboxes get."""
    world = World()
    client = world.client("c")
    client.subscriber.shape = shape_of(4, 0, 0)
    world.attach(client)
    world.subscribe(client, "t")
    chunk_effects: list[Deliver] = []
    world.shard.delivery.begin_step()
    world.publish(["t", "t"], qos=0)
    partition = world.store.partitions[0]
    (chunk,) = partition.read(0)
    chunk.flags |= 32  # frames of one form, as a kernel of the broker notes
    assert client.subscriber.main is not None
    group = client.subscriber.main.group
    effect = Deliver(group, 0, chunk, 0, chunk.count, [client.subscriber.main])
    chunk_effects.append(effect)
    assert FanOutCache(world.shard.feeds).blob_of(effect, False, 0, 0, 0).data is chunk.frames
