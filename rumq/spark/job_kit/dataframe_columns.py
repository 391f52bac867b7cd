"""Columns from topics and JSON payloads, and messages from columns, for batch and streaming DataFrames.

docs/guides/spark.md, "Jobs"."""

from __future__ import annotations

import difflib
import re

from pyspark.errors import ParseException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import ArrayType, StructField, StructType

from rumq.table.errors import BadOption, NoColumn

CORRUPT = "_rumq_corrupt"
# Columns of a message for the sink, beside topic and payload.
OF_A_MESSAGE = (
    "qos", "retain", "properties", "content_type", "response_topic", "correlation_data", "message_expiry",
    "payload_format",
)  # fmt: skip


def check_columns(df: DataFrame, *names: str) -> None:
    """raises: NoColumn"""
    for name in names:
        if name not in df.columns:
            near = difflib.get_close_matches(name, df.columns, 1, 0.6)
            raise NoColumn(name, f"did you mean {near[0]}?" if near else f"there are {', '.join(df.columns)}")


def topic_parts(pattern: str) -> dict[str, int]:
    """Name -> level (from 0) of "plant/{plant}/dev/{device}". raises: BadOption"""
    parts: dict[str, int] = {}
    levels = pattern.split("/")
    for number, level in enumerate(levels):
        named = re.fullmatch(r"\{([A-Za-z_]\w*)\}", level)
        if named and named[1] not in parts:
            parts[named[1]] = number
        elif named or re.search(r"[{}]", level) or (level != "#" and "#" in level) or ("#" in levels[:-1]):
            raise BadOption(
                "topics", pattern, "levels that are words, + or {name}, each name once, and # only at the end"
            )
    return parts


def of_topic(pattern: str) -> Column:
    """Whether column `topic` matches the pattern. raises: BadOption"""
    topic_parts(pattern)
    levels = pattern.split("/")
    split = f.split("topic", "/")
    open_end = levels[-1] == "#"
    if open_end:
        levels.pop()
    found = f.size(split) >= len(levels) if open_end else f.size(split) == len(levels)
    for number, level in enumerate(levels):
        if level != "+" and not level.startswith("{"):
            found = found & (f.get(split, f.lit(number)) == level)
    return found


def with_topic_parts(df: DataFrame, pattern: str) -> DataFrame:
    """Columns of the levels named in "plant/{plant}/dev/{device}", null for topics that do not match.

    raises: BadOption, NoColumn
    """
    check_columns(df, "topic")
    found, split = of_topic(pattern), f.split("topic", "/")
    return df.withColumns(
        {name: f.when(found, f.get(split, f.lit(number))) for name, number in topic_parts(pattern).items()}
    )


def with_json(df: DataFrame, schema: str, bad: str | None = None) -> DataFrame:
    """The fields of JSON payloads as columns, replacing columns of the same name; null for missing fields.

    schema: in Spark's DDL, "time timestamp, celsius double"
    bad: name of a further column: why the payload does not match the schema, null if it does
    raises: BadOption, NoColumn
    """
    check_columns(df, "payload")
    fields = parsed(schema)
    text = f.col("payload").cast("string")
    # from_json ignores text after the first value. Inside an array such text is an error.
    inner = f.concat(f.lit('{"_":['), text, f.lit("]}"))
    whole = StructType([StructField("_", ArrayType(StructType([*fields]))), *corrupt()])
    options = {"columnNameOfCorruptRecord": CORRUPT, "allowNonNumericNumbers": "false"}
    fit = df.withColumn("_rumq_json", f.from_json(inner, whole, options))
    json = f.col("_rumq_json")
    boxed = f.try_parse_json(f.concat(f.lit('{"_":'), text, f.lit("}")))
    # Only payloads that are bad, or could close the array themselves, are parsed a second time.
    good = (
        json[CORRUPT].isNull() & (f.size(json["_"]) == 1) & json["_"][0].isNotNull() & f.is_valid_utf8(text)
        & text.rlike(r"^\s*\{") & (~text.contains("]") | boxed.isNotNull())
    )  # fmt: skip
    alone = f.try_parse_json(f.concat(f.lit("["), text, f.lit("]")))
    more = f.try_variant_get(alone, "$[1]", "variant").isNotNull()
    why = (
        f.when(good, None)
        .when(~f.coalesce(text.rlike(r"\S"), f.lit(False)), "empty")
        .when(~f.is_valid_utf8(text), "not UTF-8")
        .when(alone.isNull() | more | boxed.isNull(), "not JSON")
        .when(~text.rlike(r"^\s*\{"), "JSON, but not an object")
        .otherwise(f"JSON, but not of the schema: {schema}")
    )
    fit = fit.withColumn("_rumq_why", why)
    columns = {
        field.name: f.when(f.col("_rumq_why").isNull(), f.col("_rumq_json")["_"][0][field.name]) for field in fields
    }
    if bad is not None:
        columns[bad] = f.col("_rumq_why")
    return fit.withColumns(columns).drop("_rumq_why", "_rumq_json")


def parsed(schema: str) -> StructType:
    """raises: BadOption"""
    try:
        found = StructType.fromDDL(schema)
    except ParseException:
        found = None
    if not isinstance(found, StructType):  # a type alone, "int", is a schema as well
        raise BadOption("json", schema, "columns and their types, 'time timestamp, celsius double'")
    return found


def corrupt() -> StructType:
    return StructType().add(CORRUPT, "string")


def as_messages(df: DataFrame, topic: str, *keep: str) -> DataFrame:
    """Rows as messages for the sink: unchanged if they have `payload`, otherwise all columns as a JSON object.

    topic: "weather/{city}/daily" with columns as levels; forbidden characters become _ ({topic} keeps its /)
    keep: further columns to keep
    raises: NoColumn
    """
    names = re.findall(r"\{(\w+)\}", topic)
    check_columns(df, *names)
    texts = re.split(r"\{\w+\}", topic)
    parts: list[Column] = [f.lit(texts[0])]
    for name, text in zip(names, texts[1:], strict=True):
        never = r"[+#\x00]" if name == "topic" else r"[/+#\x00]"
        value = f.regexp_replace(f.col(name).cast("string"), never, "_")
        parts += [f.when(f.length(value) > 0, value).otherwise(f.lit("_")), f.lit(text)]
    made = f.concat(*parts).alias("topic")
    if "payload" not in df.columns:
        return df.select(*keep, made, f.to_json(f.struct(*df.columns)).alias("payload"))
    return df.select(*keep, made, "payload", *(name for name in OF_A_MESSAGE if name in df.columns))
