"""Writer epochs: higher than all on the disk, those of runs that are no longer on it, and those of earlier terms."""

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from commitlog import StreamSpec
from commitlog.chunk import EPOCH_MAX
from commitlog.disk.files import RealFiles
from commitlog.log.store import check_format, hold
from rumq.process.shard.shard_store import ShardEnvironment, open_shard_store
from rumq.settings.table import Settings
from rumq.shards.bus.writer_epoch import ALONE_MAX, SECONDS_BEGIN, TERMS_BEGIN, writer_epoch

SECOND = 1_000_000


def at(seconds: int) -> int:
    """The epoch of a broker alone that starts so many seconds after 2020 began."""
    return writer_epoch((SECONDS_BEGIN + seconds) * SECOND, None)


def test_a_run_that_starts_later_has_a_higher_epoch_whatever_its_disk_has() -> None:
    assert at(100) == 100 and at(101) == 101


def test_a_term_is_above_all_that_a_broker_alone_had_and_above_earlier_terms() -> None:
    assert at(1 << 40) == ALONE_MAX < writer_epoch(0, 1) < writer_epoch(0, 2) < EPOCH_MAX
    assert writer_epoch(0, TERMS_BEGIN - 1) < EPOCH_MAX, "the log can read it"


def test_a_clock_before_2020_is_none_of_it() -> None:
    assert at(-5) == 0


@pytest.mark.parametrize("term", [None, 7])
def test_a_shard_opens_its_log_under_it(tmp_path: Path, term: int | None) -> None:
    data = str(tmp_path / "data")
    lock = hold(RealFiles(), data, "")
    check_format(RealFiles(), data)
    office = SimpleNamespace(lead=SimpleNamespace(epoch=term), tails={})
    led: Any = SimpleNamespace(office=office) if term is not None else None
    nowhere: Any = None
    place = ShardEnvironment(data, lock, nowhere, [StreamSpec("main", ("#",))], 1, 0.0, [], cluster=led)
    before = time.time_ns() // 1000
    store = open_shard_store(Settings(), place)
    epoch = store.own[0].starts[-1][0]
    assert epoch == TERMS_BEGIN + 7 if term else epoch >= writer_epoch(before, None) > 0
    store.close()
