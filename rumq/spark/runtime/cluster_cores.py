"""How many tasks a cluster runs at once: what its settings promise, or what has registered.

docs/guides/spark-cluster.md.
The time is an argument: `wait` sleeps."""

from __future__ import annotations

import time
from collections.abc import Callable

from pyspark.sql import SparkSession

PARALLELISM = "spark.default.parallelism"
LOOKS_MAX, LOOK_SECONDS, LOOKS_EQUAL = 20, 0.25, 4  # executors of one start register within about a second


def cluster_cores(spark: SparkSession, *, wait: Callable[[float], None] = time.sleep) -> int:
    """Cores of the executors; 0 if unknown (Spark Connect without settings).

    cost: for a cluster without such settings about a second, until no more executors register"""
    context = getattr(spark, "_sc", None)
    if context is not None and context.master.startswith("local"):
        return int(context.defaultParallelism)
    promised = promised_cores(lambda name: spark.conf.get(name, None))
    if promised or context is None:
        return promised
    return settled(lambda: int(context.defaultParallelism), wait)


def promised_cores(setting: Callable[[str], str | None]) -> int:
    """By settings: of all tasks, of all cores, or of executors and the cores of each; 0 if they do not say."""
    if (said := number(setting(PARALLELISM))) or (said := number(setting("spark.cores.max"))):
        return said
    executors = setting("spark.executor.instances")
    if setting("spark.dynamicAllocation.enabled") == "true":
        executors = setting("spark.dynamicAllocation.maxExecutors")
    return number(executors) * number(setting("spark.executor.cores") or "1")


def number(text: str | None) -> int:
    return int(text) if text is not None and text.isdecimal() else 0


def settled(look: Callable[[], int], wait: Callable[[float], None]) -> int:
    """A number, once it has been the same several times."""
    seen: list[int] = []
    while len(seen) < LOOKS_MAX:
        seen.append(look())
        if len(seen) >= LOOKS_EQUAL and len(set(seen[-LOOKS_EQUAL:])) == 1:
            break
        wait(LOOK_SECONDS)
    return seen[-1]
