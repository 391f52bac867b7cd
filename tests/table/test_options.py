"""Options of format "rumq": each checked, and each refusal says what to write instead."""

import pytest

from rumq.table.errors import BadOption, UnknownOption
from rumq.table.options import TableOptions, parse

NOW_US = 1_790_000_000_000_000


def options(*, streaming: bool = False, **given: str) -> TableOptions:
    return parse({"path": "d", **given}, now_us=NOW_US, streaming=streaming)


def test_defaults_are_everything_in_order() -> None:
    found = options()
    assert (found.start.word, found.end.word, found.filters, found.fail_on_data_loss) == (
        "earliest",
        "latest",
        (),
        True,
    )


def test_names_have_no_case_as_spark_hands_them_over() -> None:
    assert options(startingoffsets="latest").start.word == "latest"
    assert options(SUBSCRIBE="a/+ , b").filters == ("a/+", "b")


@pytest.mark.parametrize(
    ("value", "us"),
    [("1790000000000", NOW_US), ("-10m", NOW_US - 600_000_000), ("2026-09-21T14:13:20Z", NOW_US),
     ("2026-09-21T16:13:20+02:00", NOW_US), ("2026-09-21T14:13:20", NOW_US)],
)  # fmt: skip
def test_a_time_is_milliseconds_or_iso_or_how_long_ago(value: str, us: int) -> None:
    assert options(startingTimestamp=value).start.time_us == us


def test_a_time_counts_before_times_of_partitions_and_those_before_offsets() -> None:
    every = {
        "startingTimestamp": "5",
        "startingOffsetsByTimestamp": '{"main/g1/p0": 7}',
        "startingOffsets": "latest",
    }
    assert options(**every).start.time_us == 5000
    del every["startingTimestamp"]
    assert options(**every).start.times_us == {"main/g1/p0": 7000}


def test_offsets_of_a_checkpoint_are_understood() -> None:
    assert options(startingOffsets='{"v": 1, "lsn": {"main/g1/p0": 9}}').start.lsns == {"main/g1/p0": 9}


@pytest.mark.parametrize(
    ("given", "says"),
    [({"startingOffsets": "soon"}, "expected earliest, latest, tail:1000"),
     ({"startingOffsets": '{"main/g1/p0": -3}'}, "expected earliest"),
     ({"startingOffsets": '{"main/g1/p0": true}'}, "expected earliest"),
     ({"endingOffsets": "earliest"}, "expected latest, or JSON"),
     ({"endingOffsets": '{"main/g1/p0": -2}'}, "expected latest, or JSON"),
     ({"startingTimestamp": "10m"}, "how long ago: -10m"),
     ({"startingTimestamp": "20", "endingTimestamp": "10"}, "a time after startingTimestamp"),
     ({"subscribe": "a/#/b"}, "goes on after #"),
     ({"subscribe": "$share/g/a/+"}, "write a/\\+"),
     ({"subscribe": "a", "subscribePattern": "a"}, "not both"),
     ({"subscribePattern": "("}, "a regular expression"),
     ({"assign": "main/g1/p0"}, "names of partitions"),
     ({"minPartitions": "0"}, "a whole number, 1 or more"),
     ({"failOnDataLoss": "no"}, "expected true or false"),
     ({"properties": "none", "includeHeaders": "true"}, "only one of the two")],
)  # fmt: skip
def test_a_value_that_does_not_fit_is_refused_with_what_does(given: dict[str, str], says: str) -> None:
    with pytest.raises(BadOption, match=says):
        options(**given)


@pytest.mark.parametrize(
    ("given", "says"),
    [({"startingOfsets": "latest"}, "did you mean startingOffsets?"),
     ({"maxOffsetsPerTrigger": "5"}, "it is for streams"),
     ({"kafka.bootstrap.servers": "a:9092"}, r'\.load\("rumq-data"\)'),
     ({"group.id": "g"}, "in its checkpoint"),
     ({"zzz": "1"}, "there are path, subscribe")],
)  # fmt: skip
def test_a_name_that_is_not_known_is_refused_with_the_near_word(given: dict[str, str], says: str) -> None:
    with pytest.raises(UnknownOption, match=says):
        options(**given)


def test_what_is_of_a_batch_is_refused_in_a_stream() -> None:
    with pytest.raises(UnknownOption, match="it is for batch queries"):
        options(streaming=True, endingOffsets="latest")
