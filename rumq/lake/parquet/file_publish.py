"""Puts a file of the lake in place, and reads it back before the manifest names it."""

from __future__ import annotations

import pyarrow as pa

from rumq.lake.errors import LakeError
from rumq.lake.folder import Folder, Step
from rumq.lake.manifest import LakeFile
from rumq.lake.parquet.file_check import Content, examined


def publish(folder: Folder, file: LakeFile, raw: bytes | pa.Buffer, step: Step) -> LakeFile:
    """Put a file in place and read it back. raises: LakeError if its content differs"""
    folder.put(file.path, raw, step)
    found = examined(folder.read(file.path))
    expected = Content(file.rows, file.lsn, file.payload)
    if found.crc != file.crc or found.content != expected or found.repeated:
        raise LakeError(folder.location, f"{file.path} reads back as {found}, written was {file}: the disk or a bug")
    step("checked")
    return file
