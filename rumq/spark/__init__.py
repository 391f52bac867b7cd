"""The log as a table in Spark: `rumq.spark.session()`, then `spark.read.format("rumq").load(DATA_DIR)`, or
`rumq.spark.read(spark, DATA_DIR)` to read the files of a lake natively. docs/guides/spark.md."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rumq.spark.job_kit.dataframe_columns import as_messages, of_topic, with_json, with_topic_parts
    from rumq.spark.runtime.query_lag import report_lag
    from rumq.spark.runtime.registration import check_workers, register
    from rumq.spark.runtime.spark_session import session
    from rumq.spark.source.history import read
    from rumq.spark.source.topic_predicates import mqtt_filter_to_predicate

MODULES = {
    "as_messages": "job_kit.dataframe_columns",
    "check_workers": "runtime.registration",
    "mqtt_filter_to_predicate": "source.topic_predicates",
    "of_topic": "job_kit.dataframe_columns",
    "read": "source.history",
    "register": "runtime.registration",
    "report_lag": "runtime.query_lag",
    "session": "runtime.spark_session",
    "with_json": "job_kit.dataframe_columns",
    "with_topic_parts": "job_kit.dataframe_columns",
}


def __getattr__(name: str) -> object:
    """Import a public name at its first use: pyspark loads this module in every session that searches for sources."""
    if name in MODULES:
        return getattr(import_module(f"rumq.spark.{MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "as_messages", "check_workers", "mqtt_filter_to_predicate", "of_topic", "read", "register", "report_lag", "session",
    "with_json", "with_topic_parts",
]  # fmt: skip
