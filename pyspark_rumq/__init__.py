"""Spark looks for packages named pyspark_*: this one makes format "rumq" known without an import."""

from rumq.spark.source import RumqDataSource as DefaultSource

__all__ = ["DefaultSource"]
