"""Open loops between the generator's processes: what is sent arrives, is counted once, and has its latency."""

import pytest

from bench.load.generator import Generator
from bench.load.load import Load
from bench.measure.measure import traffic
from bench.peers.peer import running
from bench.peers.wire import Wire


@pytest.mark.parametrize("phase", ["burst", "even"])
def test_every_message_of_every_pair_is_sent_and_arrives(phase: str) -> None:
    load = Load(publishers=3, subscribers=3, spread="pairs", rate=600, latency=True, phase=phase)  # type: ignore[arg-type]
    with running(Wire(), load) as broker, Generator(load, broker.address) as generator:
        figures = traffic(*generator.run(20, 20.0))
    assert figures["sent"] == figures["delivered"] == 60
    assert not any(figures[name] for name in ("lost", "unacknowledged", "out_of_order_or_twice", "corrupt"))
    # Twenty periods of 5 ms each; the last one is seen out.
    assert figures["elapsed_s"] >= 0.1
    assert figures["latency_p50_us"] >= figures["generator_late_p50_us"] >= 0
