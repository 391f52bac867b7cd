"""The log as a table in Spark: `rumq.spark.register(spark)`, then `spark.read.format("rumq").load(DATA_DIR)`.

docs/spark.md. Knows no broker: it reads the files of a data directory, with the broker on or off."""

from typing import Any


def register(spark: Any) -> None:
    """Make format "rumq" known to a session. Not needed where the package `pyspark_rumq` can be imported."""
    from rumq.spark.source import RumqDataSource

    spark.dataSource.register(RumqDataSource)


__all__ = ["register"]
