"""The lake as a Delta table: commits in `_delta_log` name the files that the manifest names. Nothing is copied.

The protocol is Delta's, reader version 1 and writer version 2:
https://github.com/delta-io/delta/blob/master/PROTOCOL.md. No library of Delta is used; the time is an argument."""

from __future__ import annotations

import json
import re
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import pyarrow as pa

from rumq.lake.file_names import file_path
from rumq.lake.folder import Folder, absolute
from rumq.lake.manifest import LakeEdit, LakeFile, LakeManifest
from rumq.lake.schema import SCHEMA

LOG = "_delta_log"
COMMIT = re.compile(r"\d{20}\.json")
TYPES = {
    pa.timestamp("us", "UTC"): "timestamp", pa.string(): "string", pa.int64(): "long", pa.int16(): "short",
    pa.int8(): "byte", pa.bool_(): "boolean", pa.binary(): "binary",
}  # fmt: skip
PARTS = {"stream": "string", "dt": "date", "hr": "integer"}


def register(folder: Folder, now_ms: int) -> tuple[int, int]:
    """Update the table to the manifest; returns its version, and the number of new versions.

    Each line of the manifest is a version, so repeated and concurrent calls write the same.
    raises: LakeError, OSError"""
    edits = list(LakeManifest(folder).readable().edits())
    begin = next_version(folder)
    for version in range(begin, len(edits)):
        actions = [] if version else head(folder, now_ms)
        actions += actions_of(edits[version], now_ms)
        text = "".join(json.dumps(action, separators=(",", ":")) + "\n" for action in actions)
        folder.put(commit_name(version), text.encode(), lambda _: None)
    return len(edits) - 1, max(0, len(edits) - begin)


def commit_name(version: int) -> str:
    return f"{LOG}/{version:020d}.json"


def next_version(folder: Folder) -> int:
    names = [name.rpartition("/")[2] for name in folder.names(LOG)]
    return max((int(name[:20]) + 1 for name in names if COMMIT.fullmatch(name)), default=0)


def actions_of(edit: LakeEdit, now_ms: int) -> list[dict[str, Any]]:
    """The actions of one line: added and removed files."""
    # Merging and showing move records between files: a streaming reader of the table must not see them again.
    is_new = edit["edit"] == "add"
    actions = [removal(path, now_ms, is_new) for path in edit.get("gone", ())]
    actions += [addition(LakeFile(partition=edit["partition"], **fields), now_ms, is_new) for fields in edit["files"]]
    return [*actions, {"commitInfo": {"timestamp": now_ms, "operation": edit["edit"], "engineInfo": "rumq"}}]


def head(folder: Folder, now_ms: int) -> list[dict[str, Any]]:
    """The first actions of the first commit."""
    fields = [field(name, kind) for name, kind in PARTS.items()]
    fields += [field(each.name, delta_type(each.type)) for each in SCHEMA]
    return [
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {
            "metaData": {
                "id": str(uuid5(NAMESPACE_URL, absolute(folder.location))), "name": "rumq",
                "format": {"provider": "parquet", "options": {}},
                "schemaString": json.dumps({"type": "struct", "fields": fields}),
                "partitionColumns": list(PARTS), "configuration": {}, "createdTime": now_ms,
            }
        },
    ]  # fmt: skip


def field(name: str, kind: str | dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "type": kind, "nullable": True, "metadata": {}}


def delta_type(kind: pa.DataType) -> str | dict[str, Any]:
    if pa.types.is_list(kind):
        return {"type": "array", "elementType": delta_type(kind.value_type), "containsNull": True}
    if pa.types.is_struct(kind):
        return {"type": "struct", "fields": [field(each.name, delta_type(each.type)) for each in kind]}
    return TYPES[kind]


def addition(file: LakeFile, now_ms: int, is_new: bool) -> dict[str, Any]:
    # Delta escapes paths as in a URI: paths of the lake need no escapes.
    # A hidden file belongs to the hour in which it will be shown.
    shown = file_path(file.partition, file.hour, file.base_lsn, file.next_lsn)
    values = dict(part.split("=", 1) for part in shown.split("/")[:-1])
    values["hr"] = str(int(values["hr"]))
    return {
        "add": {
            "path": file.path, "partitionValues": values, "size": file.bytes, "modificationTime": now_ms,
            "dataChange": is_new, "stats": json.dumps(statistics(file)),
        }
    }  # fmt: skip


def statistics(file: LakeFile) -> dict[str, Any]:
    """Statistics by which readers skip a file."""
    least: dict[str, Any] = {"lsn": file.base_lsn, "partition": file.partition}
    most: dict[str, Any] = {"lsn": file.next_lsn - 1, "partition": file.partition}
    if file.first_topic and file.last_topic:
        least["topic"], most["topic"] = file.first_topic, file.last_topic
    return {
        "numRecords": file.rows,
        "minValues": least,
        "maxValues": most,
        "nullCount": {"lsn": 0, "topic": 0},
    }


def removal(path: str, now_ms: int, is_new: bool) -> dict[str, Any]:
    return {"remove": {"path": path, "deletionTimestamp": now_ms, "dataChange": is_new}}
