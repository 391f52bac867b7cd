"""Spark looks for packages named pyspark_*: this one makes format "rumq" known without an import.

Spark imports it in every session that uses any source in Python, so it must not fail in one that has no pyarrow:
there the format is not known, and `rumqd spark doctor` says why."""

try:
    from rumq.spark.source.data_source import RumqDataSource as DefaultSource

    __all__ = ["DefaultSource"]
except ImportError:
    __all__ = []
