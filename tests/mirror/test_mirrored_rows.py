"""What a mirror leaves out, tags and renames."""

import pyarrow as pa

from rumq.flight.schema import schema_of
from rumq.mirror.mirrored_rows import COLUMNS, STATE_TOPICS, VIA, mirrored

Pairs = list[tuple[str, str]]


def batch_of(*rows: tuple[str, Pairs | None]) -> pa.RecordBatch:
    schema = schema_of(COLUMNS, "array")
    return pa.RecordBatch.from_pylist(
        [
            {
                "topic": topic, "payload": topic.encode(), "retain": False,
                "properties": None if pairs is None else [{"key": k, "value": v} for k, v in pairs],
            }
            for topic, pairs in rows
        ],
        schema,
    )  # fmt: skip


def told(batch: pa.RecordBatch) -> list[tuple[str, Pairs]]:
    return [(row["topic"], [(pair["key"], pair["value"]) for pair in row["properties"]]) for row in batch.to_pylist()]


def test_each_row_gets_its_source_behind_its_own_properties() -> None:
    rows = batch_of(("a", [("x", "1"), ("x", "2")]), ("b", []), ("c", None), ("d", [("y", "3")]))
    assert told(mirrored(rows, "here", "there")) == [
        ("a", [("x", "1"), ("x", "2"), (VIA, "here")]), ("b", [(VIA, "here")]), ("c", [(VIA, "here")]),
        ("d", [("y", "3"), (VIA, "here")]),
    ]  # fmt: skip


def test_what_has_been_at_the_target_is_left_out_and_other_sites_go_on() -> None:
    rows = batch_of(("a", [(VIA, "third"), (VIA, "there")]), ("b", [(VIA, "third")]), ("c", [("x", "there")]))
    assert [topic for topic, _ in told(mirrored(rows, "here", "there"))] == ["b", "c"]
    assert mirrored(batch_of(("a", [(VIA, "there")])), "here", "there").num_rows == 0


def test_positions_of_mirrors_stay_where_they_are_and_topics_get_the_prefix() -> None:
    rows = batch_of((f"{STATE_TOPICS}a/0", []), ("plant/1", []))
    assert [topic for topic, _ in told(mirrored(rows, "here", "there", "site/"))] == ["site/plant/1"]


def test_rows_are_the_same_however_they_are_cut() -> None:
    rows = batch_of(*((f"t/{n}", [("n", str(n))] * (n % 3)) for n in range(20)))
    whole = told(mirrored(rows, "here", "there", "p/"))
    for at in (1, 7, 19):
        parts = [mirrored(part, "here", "there", "p/") for part in (rows.slice(0, at), rows.slice(at))]
        assert told(parts[0]) + told(parts[1]) == whole
