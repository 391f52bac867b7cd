"""The tallies of shards as topics: what is added up, and what becomes of a shard that dies."""

from rumq.shards.bus import messages as m
from rumq.shards.bus.shard_tally import Counts, PartitionTally, Standing
from rumq.shards.stats.broker_stats import BrokerStats

COUNTED = Counts(packets_in=7, published=3, bytes_in=100)
STANDING = Standing(connected=2, sessions=3, subscriptions=4, partitions=[PartitionTally("main", 0, 10, 25, 20)])


def tally(shard: int, incarnation: int = 1, counts: Counts = COUNTED) -> m.Tally:
    return m.Tally(shard, incarnation, counts, STANDING)


def below(census: BrokerStats, uptime_seconds: float = 1.0) -> dict[str, str]:
    return {name.removeprefix("$SYS/"): text for name, text in census.topics(uptime_seconds).items()}


def test_shards_are_added_up() -> None:
    census = BrokerStats("rumq version 1")
    census.update(tally(0))
    census.update(tally(1))
    told = below(census, 61.9)
    assert told["broker/version"] == "rumq version 1"
    assert told["broker/uptime"] == "61 seconds"
    assert (told["broker/messages/received"], told["broker/publish/messages/received"]) == ("14", "6")
    assert (told["broker/clients/connected"], told["broker/clients/total"]) == ("4", "6")
    assert told["broker/clients/disconnected"] == told["broker/clients/inactive"] == "2"
    assert told["broker/store/messages/count"] == told["broker/messages/stored"] == "30"
    assert told["rumq/shards/1/connections"] == "2"
    assert told["rumq/partitions/main/0/next_lsn"] == "25"
    assert told["rumq/partitions/main/0/committed_lsn"] == "20"


def test_the_newest_tally_of_a_shard_counts_alone() -> None:
    census = BrokerStats("")
    census.update(tally(0))
    census.update(tally(0, counts=Counts(published=5)))
    assert below(census)["broker/publish/messages/received"] == "5"


def test_what_a_shard_counted_before_it_died_still_counts() -> None:
    census = BrokerStats("")
    census.update(tally(0))
    census.update(tally(1))
    census.lost(1)
    told = below(census)
    assert (told["broker/publish/messages/received"], told["broker/clients/connected"]) == ("6", "2")
    census.update(tally(1, incarnation=2, counts=Counts(published=1)))
    told = below(census)
    assert (told["broker/publish/messages/received"], told["broker/clients/connected"]) == ("7", "4")


def test_the_most_clients_at_once_are_remembered() -> None:
    census = BrokerStats("")
    census.update(tally(0))
    below(census)
    census.update(m.Tally(0, 1, COUNTED, Standing(connected=1, sessions=1)))
    told = below(census)
    assert (told["broker/clients/connected"], told["broker/clients/maximum"]) == ("1", "2")


def test_loads_are_there_once_time_has_passed() -> None:
    census = BrokerStats("")
    census.update(tally(0, counts=Counts()))
    assert not [name for name in below(census, 1.0) if "load" in name]
    census.update(tally(0, counts=Counts(published=600)))
    told = below(census, 61.0)
    assert told["broker/load/publish/received/1min"] == "379.27"  # 600 (1 - 1/e)
    assert told["broker/load/bytes/sent/15min"] == "0.00"


def test_every_load_has_its_three_windows() -> None:
    census = BrokerStats("")
    for now in (1.0, 2.0):
        told = below(census, now)
    loads = sorted(name for name in told if name.startswith("broker/load/"))
    assert len(loads) == 27
    assert loads[:3] == [f"broker/load/bytes/received/{window}" for window in ("15min", "1min", "5min")]
