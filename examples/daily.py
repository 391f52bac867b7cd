"""A PySpark job on the log: daily minimum, mean and maximum per device.

python examples/daily.py DATA_DIR [--wait]

With --wait Spark starts, and reads once there is a line on standard input: the log may be written meanwhile."""

import os
import sys

# Spark starts its workers with this Python, not with the first one on the path.
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)

from pyspark.sql import SparkSession
from pyspark.sql import functions as f


def main(data: str, *, wait: bool) -> None:
    spark = (
        SparkSession.builder.master("local[2]")
        .appName("rumq daily")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )
    if wait and not sys.stdin.readline():
        return
    readings = (
        spark.read.format("rumq")
        .option("subscribe", "weather/+/temperature")
        .load(data)
        .select(
            f.split("topic", "/")[1].alias("device"),
            f.from_json(f.col("payload").cast("string"), "time timestamp, celsius double").alias("r"),
        )
    )
    daily = (
        readings.groupBy("device", f.to_date("r.time").alias("day"))
        .agg(
            f.count("*").alias("readings"),
            f.round(f.min("r.celsius"), 1).alias("min"),
            f.round(f.avg("r.celsius"), 1).alias("mean"),
            f.round(f.max("r.celsius"), 1).alias("max"),
        )
        .orderBy("day", "device")
    )
    daily.show(20, truncate=False)
    print(f"{daily.count()} device-days from {readings.count()} readings in the log")
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], wait="--wait" in sys.argv[2:])
