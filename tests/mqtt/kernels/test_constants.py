"""Kernels repeat numbers of the log and of in-flight windows as C constants: each has the value of its owner."""

import ast
from pathlib import Path

import pytest

from commitlog import chunk, row_layout
from commitlog.names import topic_table
from router.readers import slots

ROOT = Path(__file__).parents[3]
OWNED = {
    "commitlog/kernels/rows.py": {
        "HEADER_BYTES": chunk.HEADER_BYTES,
        "UNIFORM": chunk.FLAG_UNIFORM,
        "QOS_AND_VERSION": row_layout.ROW_QOS | row_layout.ROW_V5,
    },
    "commitlog/kernels/topics.py": {
        "ITEM_BYTES": chunk.TOPIC_ITEM.size,
        "RECORD_WORDS": topic_table.TOPIC.size // 4,
    },
    "rumq/mqtt/kernels/trace_context.py": {
        "ROW_PROPERTIES": row_layout.ROW_PROPERTIES,
        "CHUNK_V5": chunk.FLAG_V5,
    },
    "rumq/mqtt/kernels/window.py": {"PARTITION_MASK": slots.PARTITION_MASK},
}


def constants(source: str) -> dict[str, int]:
    """NAME = cython.declare(type, value) of a module."""
    return {
        node.targets[0].id: ast.literal_eval(node.value.args[1])
        for node in ast.parse(source).body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.Call)
        and len(node.value.args) == 2
        and isinstance(node.value.args[1], ast.Constant)
    }


@pytest.mark.parametrize("path", OWNED)
def test_a_kernel_has_its_owners_constants(path: str) -> None:
    found = constants((ROOT / path).read_text())
    assert {name: found.get(name) for name in OWNED[path]} == OWNED[path]


@pytest.mark.parametrize("path", sorted((ROOT / "rumq/mqtt/kernels").glob("*.py")), ids=lambda path: path.stem)
def test_flags_of_rows_and_chunks_are_those_of_the_log(path: Path) -> None:
    """The kernels that write and send frames name them ROW_* as row_layout does, and CHUNK_* for chunk's FLAG_*."""
    for name, value in constants(path.read_text()).items():
        if name.startswith("ROW_"):
            assert value == getattr(row_layout, name), name
        elif name.startswith("CHUNK_"):
            assert value == getattr(chunk, name.replace("CHUNK_", "FLAG_")), name


def test_arrays_of_rows_have_the_fields_of_the_struct() -> None:
    pytest.importorskip("numpy")
    from rumq.lake.piece import ROW

    fields = [row_layout.ROW.unpack(bytes(range(32)))]
    assert ROW.itemsize == row_layout.ROW_BYTES
    import numpy as np

    assert [tuple(np.frombuffer(bytes(range(32)), ROW)[0].tolist())] == fields
