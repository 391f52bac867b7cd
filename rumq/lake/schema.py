"""The columns of the lake, their order, and how Parquet stores them. docs/guides/lake.md.

Names and types are those of format "rumq" in Spark (docs/guides/spark.md), with the levels of the topic beside them."""

from __future__ import annotations

from inspect import signature

import pyarrow as pa
import pyarrow.parquet as pq

LEVELS = 8  # columns l0..l7; deeper levels are in `topic` only
PAIRS = pa.list_(pa.struct([pa.field("key", pa.string()), pa.field("value", pa.string())]))
# Columns that queries filter by are first: table formats keep statistics of the first columns only.
SCHEMA = pa.schema(
    [
        ("ts", pa.timestamp("us", "UTC")),
        ("topic", pa.string()),
        ("topic_offset", pa.int64()),
        ("lsn", pa.int64()),
        ("levels", pa.int16()),
        *((f"l{level}", pa.string()) for level in range(LEVELS)),
        ("partition", pa.string()),
        ("client_id", pa.string()),
        ("qos", pa.int8()),
        ("retain", pa.bool_()),
        ("payload", pa.binary()),
        ("properties", PAIRS),
        ("content_type", pa.string()),
        ("response_topic", pa.string()),
        ("correlation_data", pa.binary()),
        ("message_expiry", pa.int64()),
        ("payload_format", pa.int8()),
    ]
)
GAPS = pa.schema([("partition", pa.string()), ("base_lsn", pa.int64()), ("next_lsn", pa.int64()), ("why", pa.string())])
GROUP_ROWS = 16_384  # a row group: what a reader without a page index can skip
MERGED_GROUP_ROWS = 65_536  # in a large file the footer would be most of the bytes read for one topic
PAGE_BYTES = 64 * 1024
PAGE_ROWS = 2048  # a page, what a reader with a page index can skip; 64 KiB of dictionary codes would be far more rows
NUMBERS = ("ts", "topic_offset", "lsn", "levels")
NAMES = (
    "topic",
    *(f"l{level}" for level in range(LEVELS)),
    "partition",
    "client_id",
    "content_type",
    "response_topic",
)


# Not every pyarrow that reads the lake can limit pages by rows.
PAGES = {"max_rows_per_page": PAGE_ROWS} if "max_rows_per_page" in signature(pq.ParquetWriter).parameters else {}


def writer(out: pa.NativeFile) -> pq.ParquetWriter:
    """A writer of files of the lake. out: anything that pyarrow writes to"""
    return pq.ParquetWriter(
        out,
        SCHEMA,
        compression="zstd",
        compression_level=1,  # on the example series smaller than 3, and faster
        write_page_index=True,
        data_page_size=PAGE_BYTES,
        **PAGES,
        # Payloads are not queried by range, and their bounds are long.
        write_statistics=[*NUMBERS, *NAMES[:-2], "qos", "retain"],
        # Payloads seldom repeat, so a dictionary is useless; zstd compresses repetitions.
        use_dictionary=[*NAMES, "properties.list.element.key", "properties.list.element.value"],
        column_encoding=dict.fromkeys(NUMBERS, "DELTA_BINARY_PACKED"),
        sorting_columns=pq.SortingColumn.from_ordering(SCHEMA, [("topic", "ascending"), ("topic_offset", "ascending")]),
        store_schema=False,
    )
