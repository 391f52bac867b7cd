"""An answer as text: columns are aligned and stable, numbers stand at the right, rows that are left out are told."""

import pytest

from rumq.admin import answers as a
from rumq.admin import cluster_rows as c
from rumq.admin import rows as r
from rumq.admin.operations import TABLE
from rumq.cli.ask.tables import COLUMNS, heading, text_of, units


def topic(name: str, records: int, rate: float = 0.0) -> r.TopicRow:
    return r.TopicRow(topic=name, stream="main", partition=0, records=records, records_per_second=rate)


def test_rows_are_a_table() -> None:
    answer = a.Topics(topics=[topic("a", 1), topic("plant/7", 12345, 2.5)])
    assert [*text_of(answer)] == [
        "topic    stream  partition  records  records/s",
        "a        main            0        1          0",
        "plant/7  main            0   12,345      2.5/s",
    ]


def test_rows_left_out_are_told_and_none_are_none() -> None:
    assert [*text_of(a.Topics(topics=[], left_out=0))] == ["topics: none"]
    assert [*text_of(a.Topics(topics=[topic("a", 1)], left_out=1200))][-1] == "and 1,200 more: --limit, --offset"


def test_shards_of_a_cluster_that_do_not_answer_are_told() -> None:
    missing = [c.MissingShard(shard=2, why="it has no leader that lives")]
    lines = [*text_of(a.Topics(topics=[topic("a", 1)], missing=missing))]
    assert lines[0].startswith("topic") and len(lines) == 3
    assert lines[-1] == "without shard 2, which does not answer: it has no leader that lives"


def test_figures_are_names_and_values_and_lists_of_rows_follow() -> None:
    detail = a.ClientDetail(
        found=True, expires_seconds=61.0, subscriptions=[r.SubscriptionRow(filter="a/#", kind="live", qos=1)]
    )
    lines = [*text_of(detail)]
    assert lines[0].split() == ["found", "yes"] and any(line.split() == ["expires", "1m", "1s"] for line in lines)
    assert lines[lines.index("subscriptions:") + 1].startswith("filter  kind  qos")
    assert "in_flight: none" in lines


def test_two_lists_of_rows_have_their_names_and_nothing_before_the_first() -> None:
    lines = [*text_of(a.Ledger(undelivered=[], pending=[]))]
    assert lines == ["undelivered: none", "", "pending: none"]


def test_columns_are_fields() -> None:
    for row, names in COLUMNS.items():
        assert set(names) <= set(row.__struct_fields__)


def test_wide_has_every_column() -> None:
    row = dict.fromkeys(r.ClientRow.__struct_fields__, 0)
    answer = a.Clients(clients=[r.ClientRow(**{**row, "client_id": "c", "subscriptions": []})])  # type: ignore[arg-type]
    narrow, wide = (next(text_of(answer, is_wide=is_wide)).split() for is_wide in (False, True))
    assert len(wide) == len(r.ClientRow.__struct_fields__) > len(narrow)


@pytest.mark.parametrize("operation", TABLE, ids=lambda operation: operation.name)
def test_headings_of_one_answer_differ(operation: object) -> None:
    answer = operation.answer  # type: ignore[attr-defined]
    headings = [heading(name) for name in units(answer)]
    assert len(headings) == len(set(headings))


def test_headings_have_units_only_where_a_value_does_not_show_them() -> None:
    names = (
        "since_seconds",
        "log_bytes",
        "records_per_second",
        "time_us",
        "behind_records",
        "bytes_in_per_second",
    )
    assert [heading(name) for name in names] == [
        "since",
        "log",
        "records/s",
        "time",
        "behind_records",
        "bytes_in/s",
    ]
