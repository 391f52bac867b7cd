"""The columns over the network are those of the Spark source."""

import subprocess
import sys

import pytest

from rumq.flight.schema import KAFKA, NAMES, makers_of, schema_of
from rumq.table.arrow.columns import MAKERS


@pytest.mark.parametrize(("style", "properties"), [("rumq", "array"), ("rumq", "map"), ("kafka", "array")])
def test_types_and_order_are_sparks(style: str, properties: str) -> None:
    pytest.importorskip("pyspark", reason="pyspark is not installed (pip install 'rumq[spark]')")
    from pyspark.sql.pandas.types import from_arrow_schema

    from rumq.spark.source.schema import schema_of as sparks
    from rumq.table.options import TableOptions

    ours = from_arrow_schema(schema_of(NAMES if style == "rumq" else tuple(KAFKA), properties))
    theirs = sparks(TableOptions("d", style=style, properties=properties))
    assert [(f.name, f.dataType.simpleString()) for f in ours] == [(f.name, f.dataType.simpleString()) for f in theirs]


def test_each_column_has_what_makes_it() -> None:
    for properties in ("array", "map"):
        assert set(makers_of((*NAMES, *KAFKA), properties).values()) <= set(MAKERS)


def test_neither_side_needs_spark() -> None:
    asked = "import sys, rumq.flight.serving.server, rumq.flight.client; assert 'pyspark' not in sys.modules"
    subprocess.run([sys.executable, "-c", asked], check=True, timeout=60)
