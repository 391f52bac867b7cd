"""The generator's processes against real sockets: what a broker does wrong is found, and its rounds end."""

import pytest

from bench.connections import BenchFault
from bench.load.generator import Generator, shares
from bench.load.load import Heard, Load, Published
from bench.measure.figures import Figures
from bench.measure.measure import traffic
from bench.peers.peer import running
from bench.peers.wire import Wire
from tests.bench.faulty import LOAD, Fault, wire

MESSAGES = 2_000


def figures(fault: Fault) -> Figures:
    with wire(fault) as address, Generator(LOAD, address) as generator:
        return traffic(*generator.run(MESSAGES, 20.0))


def test_a_wire_without_a_fault_delivers_every_message_to_each_subscriber() -> None:
    seen = figures(lambda frames: frames)
    assert seen["sent"] == MESSAGES
    assert seen["delivered"] == 2 * MESSAGES
    assert not any(seen[name] for name in ("lost", "out_of_order_or_twice", "corrupt", "stray"))


def test_lost_messages_are_counted_and_do_not_stop_the_publisher() -> None:
    seen = figures(lambda frames: frames[:-1])
    assert seen["sent"] == MESSAGES
    assert seen["lost"] > 0
    assert seen["delivered"] + seen["lost"] == 2 * MESSAGES


def test_a_rate_counts_the_time_in_which_nothing_was_delivered() -> None:
    """A broker that stops delivering half-way must not be credited with the rate of its first half."""
    published = Published(
        started_ns=0, ended_ns=4 * 10**9, sent=100, unacknowledged=0, disordered=0, late_ns_max=0, cpu_s=0.0
    )
    heard = Heard(
        ended_ns=10**9, received=40, missing=60, late=0, corrupt=0, stray=0, redelivered=0, cpu_s=0.0,
        latencies_ns=b"",
    )  # fmt: skip
    assert traffic([published], [heard])["delivered_per_s"] == 10


def test_swapped_messages_are_out_of_order() -> None:
    seen = figures(lambda frames: frames[::-1])
    assert seen["out_of_order_or_twice"] > 0


def test_a_message_delivered_twice_is_no_second_delivery() -> None:
    seen = figures(lambda frames: [*frames, *frames[-1:]])
    assert seen["out_of_order_or_twice"] > 0
    assert seen["delivered"] == 2 * MESSAGES


def test_a_changed_payload_is_corrupt_and_lost() -> None:
    seen = figures(lambda frames: [*frames[:-1], *(frame[:-1] + b"?" for frame in frames[-1:])])
    assert seen["corrupt"] > 0
    assert seen["delivered"] + seen["lost"] == 2 * MESSAGES


def test_messages_of_another_round_are_stray() -> None:
    first: list[bytes] = []

    def keep_one(frames: list[bytes]) -> list[bytes]:
        first.extend(frames[: 1 - len(first)])
        return [*frames, *first]

    with wire(keep_one) as address, Generator(LOAD, address) as generator:
        generator.run(10, 20.0)
        assert traffic(*generator.run(10, 20.0))["stray"] > 0


def test_a_round_ends_by_its_time_when_its_count_is_out_of_reach() -> None:
    with running(Wire(), LOAD) as broker, Generator(LOAD, broker.address) as generator:
        seen = traffic(*generator.run(2**40, 0.1))
        assert 0 < seen["sent"] < 2**40
        assert seen["delivered"] == 2 * seen["sent"]


def test_a_paced_round_sends_its_messages_at_their_times_and_takes_their_latency() -> None:
    load = Load(publishers=4, subscribers=4, spread="pairs", rate=2_000, latency=True)
    with running(Wire(), load) as broker, Generator(load, broker.address) as generator:
        seen = traffic(*generator.run(100, 20.0))
    assert seen["delivered"] == 400
    assert seen["elapsed_s"] >= 399 / 2_000
    assert 0 < seen["latency_p50_us"] <= seen["latency_p99_us"] <= seen["latency_p100_us"]


@pytest.mark.parametrize("workers", [(1, 1), (2, 3)])
def test_several_workers_share_publishers_and_subscribers(workers: tuple[int, int]) -> None:
    load = Load(publishers=5, subscribers=5, spread="pairs", topics=3)
    with running(Wire(), load) as broker, Generator(load, broker.address, workers) as generator:
        seen = traffic(*generator.run(100, 20.0))
    assert seen["delivered"] == seen["sent"] == 500


def test_a_broker_that_hangs_up_is_a_fault_that_says_so() -> None:
    def hang_up(frames: list[bytes]) -> list[bytes]:
        raise OSError

    with (
        pytest.raises(BenchFault, match="publisher 0"),
        wire(hang_up) as address,
        Generator(LOAD, address) as generator,
    ):
        generator.run(MESSAGES, 20.0)


def test_shares_cover_all_connections_once() -> None:
    assert [number for share in shares(10, 3) for number in share] == list(range(10))
    assert {len(share) for share in shares(10, 3)} == {3, 4}
