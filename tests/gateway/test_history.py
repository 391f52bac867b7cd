"""The history: rates and quantiles of the shards over hours and days, in bounded memory, kept over restarts."""

import math
import shutil
import zlib
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from rumq.admin.figures import HistogramFigures, ShardFigures
from rumq.gateway.history import history_file, sample_journal, sampler
from rumq.gateway.history.ring_store import TIERS, RingStore, Tier
from rumq.gateway.history.sampler import HistorySampler
from rumq.gateway.history.series import NAN, SERIES, quantile_of, sampled
from rumq.gateway.history.snapshot import FiguresSnapshot
from rumq.gateway.metrics import metric_table as t
from rumq.session.state.histogram import BOUNDS, Histogram
from tests.gateway.conftest import Gateway

BUCKETS = len(BOUNDS) + 1  # the last one has no bound
START = 1_800_000_000.0  # seconds since 1970, a multiple of every step


def figures(
    shard: int = 0, incarnation: int = 1, ago: float = 0.0, undelivered: int = 0, counts: list[int] | None = None,
    **values: float,
) -> ShardFigures:  # fmt: skip
    counters = {m.key: values.get(m.key, 0.0) for m in t.COUNTERS}
    gauges = {m.key: values.get(m.key, 0.0) for m in t.GAUGES}
    histograms = {m.key: HistogramFigures(counts=counts or [0] * BUCKETS, seconds=0.0) for m in t.HISTOGRAMS}
    return ShardFigures(
        shard=shard, incarnation=incarnation, counted_seconds_ago=ago, counters=counters, gauges=gauges, listeners={},
        listener_received={}, listener_sent={}, undelivered={"expired": undelivered}, histograms=histograms,
        partitions=[], lagging=[], exports={},
    )  # fmt: skip


def at(seconds: float, *shards: ShardFigures) -> FiguresSnapshot:
    return FiguresSnapshot(seconds, list(shards), 1e9)


def test_counters_of_all_shards_are_rates() -> None:
    before = at(0, figures(messages_published=100), figures(1, undelivered=1, cpu_seconds=5))
    after = at(2, figures(messages_published=300), figures(1, undelivered=5, cpu_seconds=8, messages_published=20))
    found = sampled(before, after)
    assert (found["published"], found["undelivered"], found["cpu"]) == (110.0, 2.0, 1.5)
    assert found["disk_free_bytes"] == 1e9


def test_a_shard_that_was_restarted_begins_at_zero_and_gives_no_negative_rate() -> None:
    before = at(0, figures(messages_published=1_000_000, handed_over=100), figures(1, messages_published=10))
    after = at(2, figures(incarnation=2, messages_published=20, handed_over=8), figures(1, messages_published=12))
    found = sampled(before, after)
    assert (found["published"], found["handed_over"]) == (11.0, 4.0)


def test_a_shard_that_did_not_answer_before_gives_no_peak() -> None:
    """Of a cluster, whose other shards are told meanwhile."""
    later = figures(1, messages_published=1_000_000, handed_over=500, counts=[9] * BUCKETS, uptime_seconds=3_600.0)
    found = sampled(at(0, figures()), at(2, figures(messages_published=20), later))
    assert (found["published"], found["handed_over"]) == (10.0, 0.0) and math.isnan(found["turn_p99"])


def test_what_is_counted_rarely_is_a_rate_between_counts_and_not_a_row_of_peaks() -> None:
    """With 10,000 sessions they are counted every 5 s: 100 messages a second are 100 in every sample."""
    counted = {0: 0, 2: 0, 4: 0, 6: 5, 8: 5, 10: 10, 12: 10}
    found = []
    snapshots = [at(now, figures(messages_published=100 * then, ago=now - then)) for now, then in counted.items()]
    for before, after in pairwise(snapshots):
        found.append(sampled(before, after)["published"])
    assert found == [0, 0, 100, 100, 100, 100]


def test_gauges_are_added_or_the_largest_counts() -> None:
    after = at(2, figures(connected=3, lag_records_max=7), figures(1, connected=4, lag_records_max=900))
    found = sampled(at(0), after)
    assert (found["connected"], found["behind_records_max"]) == (7, 900)


@pytest.mark.parametrize("seconds", [100e-6, 1e-3, 0.02, 1.0, 3.0])
def test_a_quantile_is_in_the_bucket_of_the_durations(seconds: float) -> None:
    histogram = Histogram()
    histogram.observe(seconds, 1_000)
    lower, upper = max((0.0, *(b for b in BOUNDS if b <= seconds))), min(b for b in BOUNDS if b > seconds)
    for share in (0.5, 0.99):
        assert lower <= quantile_of(histogram.counts, share) <= upper


def test_quantiles_are_of_the_interval_and_of_all_shards() -> None:
    fast, slow = Histogram(), Histogram()
    fast.observe(100e-6, 980)
    slow.observe(0.5, 20)
    old = figures(counts=list(slow.counts))  # what was slow before
    assert math.isnan(sampled(at(0, old), at(2, old))["deliver_p99"]), "nothing was observed in between"
    found = sampled(at(0, figures(), figures(1)), at(2, figures(counts=fast.counts), figures(1, counts=slow.counts)))
    assert found["acknowledge_p50"] < 130e-6 and found["acknowledge_p99"] > 0.26
    assert quantile_of([0] * (BUCKETS - 1) + [5], 0.5) == BOUNDS[-1], "the last bucket has no bound"


def test_a_ring_has_the_newest_slots_and_forgets_the_others() -> None:
    tier = Tier(2, 4, ["a"])
    for slot in range(10, 16):
        tier.put(slot, {"a": float(slot)})
    assert str(tier.read("a", 10, 16)) == str([NAN, NAN, 12.0, 13.0, 14.0, 15.0, NAN])
    tier.put(13, {"a": 99.0})
    assert tier.read("a", 13, 13) == [13.0], "the past is not written again"


def test_a_late_sample_fills_the_slots_that_it_is_of_but_not_a_silence() -> None:
    tier = Tier(2, 100, ["a"])
    tier.put(10, {"a": 1.0})
    tier.put(13, {"a": 2.0})
    assert tier.read("a", 10, 13) == [1.0, 2.0, 2.0, 2.0]
    tier.put(30, {"a": 3.0})
    assert str(tier.read("a", 13, 30)) == str([2.0, *[NAN] * 16, 3.0])
    tier.put(1_000_000, {"a": 4.0})
    assert str(tier.read("a", 999_990, 1_000_000)) == str([*[NAN] * 10, 4.0])


@pytest.mark.parametrize(
    ("seconds", "points", "step", "count"),
    [
        (3_600, 300, 12, 300),
        (600, 300, 2, 300),
        (86_400, 300, 300, 288),
        (14 * 86_400, 300, 4_200, 288),
        (10, 1, 10, 1),
    ],
)
def test_a_range_comes_in_at_most_so_many_points_from_the_ring_that_has_it(
    seconds: int, points: int, step: int, count: int
) -> None:
    store = RingStore()
    for tier in store.tiers:
        last = int(START // tier.step)
        for slot in range(last - tier.slots + 1, last + 1):
            tier.put(slot, {"published": 5.0})
    found = store.points(["published"], seconds, points, START)
    assert (found.step, len(found.values["published"])) == (step, count)
    assert found.start + step * count == START or step == 4_200
    known = [value for value in found.values["published"] if not math.isnan(value)]
    assert set(known) == {5.0} and len(known) >= count - 1


def test_a_peak_is_not_lost_in_a_wide_point_and_a_mean_is_a_mean() -> None:
    store = RingStore()
    last = int(START // 2)
    for slot in range(last - 9, last + 1):
        store.tiers[0].put(slot, {"deliver_p99": 1.0 if slot == last - 3 else 0.1, "published": float(last - slot)})
    found = store.points(["deliver_p99", "published"], 20, 1, START)
    assert found.values == {"deliver_p99": [1.0], "published": [4.5]}


class Shards:
    """Figures that grow by 100 messages a second. is_away: none answers"""

    def __init__(self) -> None:
        self.is_away = False
        self.asked = 0

    async def figures(self) -> tuple[float, list[ShardFigures] | None]:
        self.asked += 1
        now = trio.current_time()
        return now, None if self.is_away else [figures(messages_published=100 * now, connected=2)]


async def at_once(call: Callable[..., None], *args: Any) -> None:
    """Instead of a thread, for which the clock of the test would not wait."""
    call(*args)


def run_sampler(
    shards: Shards, path: Path, seconds: float, *, wall: float = START, events: list[Any] | None = None
) -> HistorySampler:
    told: list[Any] = [] if events is None else events
    made = HistorySampler(
        shards.figures, str(path), lambda name, **fields: told.append((name, fields)), lambda: wall, at_once
    )

    async def body() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(made.run)
            await trio.sleep(seconds)
            nursery.cancel_scope.cancel()

    trio.run(body, clock=trio.testing.MockClock(autojump_threshold=0))
    return made


def recent(made: HistorySampler, now: float, seconds: int = 60, points: int = 300) -> list[float]:
    return made.store.points(["published"], seconds, points, now).values["published"]


def test_it_is_sampled_every_two_seconds_into_every_ring(tmp_path: Path) -> None:
    shards = Shards()
    made = run_sampler(shards, tmp_path, 700.5)
    assert shards.asked == 350
    now = START + 700
    assert recent(made, now) == pytest.approx([100.0] * 30)
    for tier in made.store.tiers:
        last = int(now // tier.step)
        assert tier.end == last and tier.read("published", last, last) == pytest.approx([100.0]), tier.step


def test_a_restart_keeps_the_history_and_the_time_between_is_unknown(tmp_path: Path) -> None:
    run_sampler(Shards(), tmp_path, 100.5)
    made = run_sampler(Shards(), tmp_path, 20.5, wall=START + 130)
    found = recent(made, START + 150, seconds=150)
    known = [not math.isnan(value) for value in found]
    assert known[1:50] == [True] * 49 and known[50:66] == [False] * 16 and known[66:] == [True] * 9


def test_while_a_shard_is_away_there_is_a_gap_and_no_peak_afterwards(tmp_path: Path) -> None:
    shards = Shards()
    made = HistorySampler(shards.figures, str(tmp_path), lambda name, **fields: None, lambda: START, at_once)

    async def body() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(made.run)
            await trio.sleep(20.5)
            shards.is_away = True
            await trio.sleep(30)
            shards.is_away = False
            await trio.sleep(20)
            nursery.cancel_scope.cancel()

    trio.run(body, clock=trio.testing.MockClock(autojump_threshold=0))
    found = [value for value in recent(made, START + 70, seconds=70) if not math.isnan(value)]
    assert found == pytest.approx([100.0] * len(found)) and 15 < len(found) < 20


@pytest.mark.parametrize("damage", ["torn", "bit", "version", "empty", "bomb", "nonsense"])
def test_a_file_that_cannot_be_read_is_put_aside_and_the_history_begins_anew(tmp_path: Path, damage: str) -> None:
    run_sampler(Shards(), tmp_path, 50.5)
    path = tmp_path / history_file.NAME
    data = path.read_bytes()
    body = zlib.compress(b"\x91\x80") if damage == "nonsense" else zlib.compress(bytes(200 << 20), 9)
    made = history_file.FORMAT + zlib.crc32(body).to_bytes(4, "little") + body
    path.write_bytes(
        {
            "torn": data[: len(data) // 2], "bit": data[:40] + bytes([data[40] ^ 1]) + data[41:],
            "version": b"rumq-history-9\n" + data, "empty": b"", "bomb": made, "nonsense": made,
        }[damage]
    )  # fmt: skip
    events: list[Any] = []
    again = run_sampler(Shards(), tmp_path, 10.5, wall=START + 60, events=events)
    assert [name for name, _ in events] == ["history.put_aside"]
    assert (tmp_path / history_file.ASIDE).exists()
    assert recent(again, START + 70, seconds=10)[-4:] == pytest.approx([100.0] * 4)
    assert math.isnan(recent(again, START + 70)[5])


def killed_at(path: Path, copy: Path, seconds: float, wall: float = START) -> None:
    """What a kill -9 at that moment would leave of a sampler: its files without the end of its task."""
    made = HistorySampler(Shards().figures, str(path), lambda name, **fields: None, lambda: wall, at_once)

    async def body() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(made.run)
            await trio.sleep(seconds)
            shutil.copytree(path, copy)
            nursery.cancel_scope.cancel()

    trio.run(body, clock=trio.testing.MockClock(autojump_threshold=0))


@pytest.mark.parametrize("seconds", [9.9, 61.0, 299.0, 299.9, 301.0, 455.5, 899.9])
def test_a_kill_loses_no_more_than_ten_seconds(tmp_path: Path, seconds: float) -> None:
    (tmp_path / "data").mkdir()
    killed_at(tmp_path / "data", tmp_path / "copy", seconds)
    later = START + seconds + 20
    again = run_sampler(Shards(), tmp_path / "copy", 0.5, wall=later)
    for tier in again.store.tiers:
        assert tier.end == (START + seconds) // tier.step or seconds < tier.step, tier.step
    known = [not math.isnan(each) for each in recent(again, later, seconds=int(seconds) + 20, points=1000)]
    assert seconds - 2 * sum(known) <= 10


def test_a_second_kill_loses_no_more_than_the_first(tmp_path: Path) -> None:
    (tmp_path / "0").mkdir()
    for n in range(3):
        killed_at(tmp_path / f"{n}", tmp_path / f"{n + 1}", 100.5, START + 100 * n)
    again = run_sampler(Shards(), tmp_path / "3", 0.5, wall=START + 300)
    found = recent(again, START + 300, seconds=300, points=150)
    assert sum(not math.isnan(each) for each in found) >= 150 - 3 * 5


@pytest.mark.parametrize("damage", ["torn", "bit", "version", "empty", "names", "future"])
def test_samples_that_cannot_be_read_cost_only_what_is_behind_them(tmp_path: Path, damage: str) -> None:
    (tmp_path / "data").mkdir()
    killed_at(tmp_path / "data", tmp_path / "copy", 100.5)
    path = tmp_path / "copy" / sample_journal.NAME
    data = path.read_bytes()
    half = data[: len(data) // 2]
    changed = {
        "torn": half, "bit": half + bytes([data[len(half)] ^ 1]) + data[len(half) + 1 :], "version": b"x" + data,
        "empty": b"", "names": data.replace(b'["', b'[7,"', 1), "future": data,
    }  # fmt: skip
    path.write_bytes(changed[damage])
    wall = START - 7_200 if damage == "future" else START + 110
    again = run_sampler(Shards(), tmp_path / "copy", 10.5, wall=wall)
    known = sum(not math.isnan(each) for each in recent(again, wall + 10, seconds=120))
    assert known == pytest.approx(28, abs=5) if damage in ("torn", "bit") else known <= 5


def test_the_journal_is_small_and_only_its_owner_reads_it(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    killed_at(tmp_path / "data", tmp_path / "copy", 299.5)
    path = tmp_path / "copy" / sample_journal.NAME
    assert path.stat().st_mode & 0o777 == 0o600 and path.stat().st_size < 60_000


def test_a_file_of_a_time_to_come_is_put_aside(tmp_path: Path) -> None:
    run_sampler(Shards(), tmp_path, 50.5)
    events: list[Any] = []
    run_sampler(Shards(), tmp_path, 4.5, wall=START - 3_600, events=events)
    assert events[0][0] == "history.put_aside" and "clock" in events[0][1]["why"]


def test_a_disk_that_takes_no_file_is_told_once_and_ends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sampler, "WRITE_SECONDS", 10.0)
    events: list[Any] = []
    made = run_sampler(Shards(), tmp_path / "none", 60.5, events=events)
    assert [name for name, _ in events] == ["history.unwritten"]
    assert recent(made, START + 60)[-5:] == pytest.approx([100.0] * 5)


def test_the_file_is_written_rarely_and_is_small(tmp_path: Path) -> None:
    made = run_sampler(Shards(), tmp_path, 290.5)
    path = tmp_path / history_file.NAME
    assert path.stat().st_mode & 0o777 == 0o600 and path.stat().st_size < 2_000_000
    slots = sum(slots for _, slots in TIERS)
    assert sum(len(ring) for tier in made.store.tiers for ring in tier.series.values()) == slots * len(SERIES)


def test_the_history_of_a_broker_is_told(gateway: Gateway) -> None:
    answer = gateway.get("history?names=published,cpu&seconds=60&points=30")
    assert answer["step_seconds"] == 2 and set(answer["series"]) == {"published", "cpu"}
    assert [len(values) for values in answer["series"].values()] == [30, 30]
    assert {each["name"] for each in answer["names"]} == set(SERIES)
    assert {"disk_free_bytes", "acknowledge_p99"} <= set(gateway.get("history")["series"])
    assert gateway.ask("GET", "/api/v1/history?names=nothing").status == 400
    assert gateway.ask("GET", "/api/v1/history?points=0").status == 400
    assert gateway.ask("GET", "/api/v1/history", token="sender").status == 403
