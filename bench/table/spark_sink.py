"""The Spark sink, measured: `python -m bench.table.spark_sink mqtt://localhost:1883`. Rows a second into a running
broker, at QoS 0, 1, 2 and once, from a source that costs next to nothing; and what a small batch takes."""

import sys
import time
from typing import Any

import rumq.spark

ROWS = 2_000_000
RUNS = 3
WAYS = {"QoS 0": {"qos": "0"}, "QoS 1": {"qos": "1"}, "QoS 2": {"qos": "2"}, "once": {"once": "true"}}


def rows(spark: Any, count: int) -> Any:
    """64 bytes each, on 1,000 topics."""
    return spark.range(0, count, 1, 2).selectExpr(
        "concat('plant/', id % 10, '/device/', id % 1000) as topic",
        "lpad(cast(id as string), 64, 'x') as payload",
    )


def seconds(frame: Any, name: str, **options: str) -> float:
    start = time.perf_counter()
    frame.write.format(name).mode("append" if options else "overwrite").options(**options).save()
    return time.perf_counter() - start


def main() -> None:
    broker = sys.argv[1]
    spark = rumq.spark.session("bench", "local[2]", spark_ui_enabled="false", spark_log_level="ERROR")
    rumq.spark.register(spark)
    frame = rows(spark, ROWS)
    best = min(seconds(frame, "noop") for _ in range(RUNS))
    print(f"to nowhere: {ROWS / best / 1e6:.2f} million rows/s, best of {RUNS}", flush=True)
    for name, options in WAYS.items():
        runs = [seconds(frame, "rumq", broker=broker, **options) for _ in range(RUNS)]
        small = min(seconds(rows(spark, 20), "rumq", broker=broker, **options) for _ in range(RUNS))
        print(
            f"{name}: {ROWS / min(runs):,.0f} rows/s, best of {RUNS} (worst {ROWS / max(runs):,.0f}); "
            f"20 rows in two tasks {small * 1000:.0f} ms",
            flush=True,
        )
    spark.stop()


if __name__ == "__main__":
    main()
