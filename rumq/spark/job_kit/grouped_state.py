"""Ordered rows of each group, with a state kept between batches, in pandas."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

Step = Callable[[tuple[Any, ...], pd.DataFrame], tuple[tuple[Any, ...], pd.DataFrame]]


def step_by_group(
    df: DataFrame, by: Sequence[str], order: Sequence[str], step: Step, *,
    begin: tuple[Any, ...], state: str, out: str,
) -> DataFrame:  # fmt: skip
    """Rows returned by `step(state, rows of a group in order)`, which also returns the next state.

    by: columns of the group; begin: the first state; state, out: schemas in Spark's DDL. A batch query starts with
    `begin`; a stream keeps a state per group without expiry.
    """
    order = [*order]

    def in_order(frame: pd.DataFrame) -> pd.DataFrame:
        return frame.sort_values(order, kind="stable", ignore_index=True)

    def of_batch(frame: pd.DataFrame) -> pd.DataFrame:
        return step(begin, in_order(frame))[1]

    def of_stream(_: Any, frames: Iterator[pd.DataFrame], kept: GroupState) -> Iterator[pd.DataFrame]:
        rows = in_order(pd.concat(list(frames), ignore_index=True))
        after, made = step(kept.get if kept.exists else begin, rows)
        kept.update(after)
        yield made

    groups = df.groupBy(*by)
    if df.isStreaming:
        return groups.applyInPandasWithState(of_stream, out, state, "append", GroupStateTimeout.NoTimeout)
    return groups.applyInPandas(of_batch, out)


def types(df: DataFrame, *names: str) -> str:
    """Columns of a DataFrame as a schema."""
    return ", ".join(f"`{name}` {df.schema[name].dataType.simpleString()}" for name in names)
