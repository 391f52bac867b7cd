"""Records become a function's batch, and its result messages: checked, with prefix and tag."""

from typing import Any

import pyarrow as pa
import pytest

from rumq.functions.function_rows import (
    SCHEMA,
    WrongResult,
    as_batch,
    as_bytes,
    derived,
    for_function,
    messages_of,
    no_rows,
)


def records(*topics: str, properties: Any = ()) -> pa.RecordBatch:
    rows = [
        {"topic": each, "payload": b"x", "lsn": number, "retain": False, "qos": 1, "properties": list(properties)}
        for number, each in enumerate(topics)
    ]
    return pa.RecordBatch.from_pylist(rows, SCHEMA)


def test_state_topics_and_what_has_come_through_it_are_left_out() -> None:
    batch = records("plant/7", "rumq/function/mean-main-g1/0", "plant/8")
    assert for_function(batch, "mean").column("topic").to_pylist() == ["plant/7", "plant/8"]
    again = records("plant/7", properties=[{"key": "rumq-via", "value": "function:mean"}])
    assert for_function(again, "mean").num_rows == 0
    assert for_function(again, "max").num_rows == 1


def test_a_result_keeps_what_a_message_has() -> None:
    found = messages_of(records("plant/7"))
    assert "lsn" not in found.schema.names and "qos" not in found.schema.names
    assert found.column("payload").to_pylist() == [b"x"]


@pytest.mark.parametrize(
    "result",
    [
        pa.table({"topic": ["a"], "payload": ["text"]}),
        pa.table({"topic": ["a"], "payload": [b"x"], "more": [1]}),
        pa.record_batch({"topic": pa.array(["a"], pa.large_string()), "payload": pa.array([b"x"], pa.large_binary())}),
        pa.table({"topic": pa.chunked_array([["a"], ["b"]]), "payload": pa.chunked_array([[b"x"], [b"y"]])}),
        no_rows(),
        pa.table({"topic": pa.array([], pa.string()), "payload": pa.array([], pa.binary())}),
    ],
)
def test_every_shape_of_a_result_is_taken(result: object) -> None:
    found = messages_of(result)
    assert found.schema.field("payload").type == pa.binary() and found.schema.field("topic").type == pa.string()


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (None, "returned NoneType"),
        ([1], "returned list"),
        (pa.table({"payload": [b"x"]}), "no column 'topic'"),
        (pa.table({"topic": ["a"]}), "no column 'payload'"),
        (pa.table([pa.array([None], pa.string()), pa.array([b"x"])], ["topic", "payload"]), "1 rows"),
        (pa.table({"topic": ["a"], "payload": [1.5]}), "'payload' is double: expected binary"),
        (pa.table({"topic": ["a"], "payload": [b"x"], "properties": ["x"]}), "'properties' is string"),
        (pa.table([pa.array(["a"]), pa.array(["b"]), pa.array([b"x"])], ["topic", "topic", "payload"]), "twice"),
    ],
)  # fmt: skip
def test_what_is_no_result_is_named(result: object, words: str) -> None:
    with pytest.raises(WrongResult, match=words):
        messages_of(result)


@pytest.mark.parametrize("properties", [None, [{"key": "a", "value": "b"}]])
def test_a_derived_message_has_prefix_and_tag(properties: Any) -> None:
    result = messages_of(records("plant/7", properties=properties or []))
    if properties is None:
        result = result.drop_columns(["properties"])
    found = derived(result, "mean/", "mean").to_pylist()[0]
    assert found["topic"] == "mean/plant/7"
    assert found["properties"] == [*(properties or []), {"key": "rumq-via", "value": "function:mean"}]


def test_a_batch_survives_its_bytes() -> None:
    batch = records("plant/7", "plant/8")
    assert as_batch(as_bytes(batch)) == batch
    assert as_batch(as_bytes(no_rows())).num_rows == 0
