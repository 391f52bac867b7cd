"""The columns of a schema in Spark's DDL, found without Spark."""

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed (pip install 'rumq[spark]')")

from rumq.spark.job_kit.known_columns import known_columns, names_of


@pytest.mark.parametrize(
    ("schema", "names"),
    [
        ("n int, x double", ["n", "x"]),
        ("n: int", ["n"]),
        ("at struct<lat: double, lon: double>, price decimal(9, 2)", ["at", "price"]),
        ("m map<string, array<int>> not null, z string", ["m", "z"]),
        ("`a b` int", None),
        ("int", None),
        ("a int, ", None),
        ("a struct<b int", None),
    ],
)
def test_names_of_a_schema(schema: str, names: list[str] | None) -> None:
    assert names_of(schema) == names


def test_columns_of_the_log_of_topics_and_of_payloads() -> None:
    found = known_columns({"path": "x"}, "plant/{plant}/#", "celsius double")
    assert found is not None and {"topic", "lsn", "ts", "payload", "plant", "celsius"} <= set(found)
    assert known_columns({"path": "x"}, None, "`odd name` int") is None
