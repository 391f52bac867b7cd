"""The messages of a batch are read back as they were, and those of another batch are not taken for them."""

from pathlib import Path

import pyarrow as pa

from rumq.functions.result_file import ResultFile

MESSAGES = pa.record_batch({"topic": pa.array(["a/b"]), "payload": pa.array([b"x"])})


def test_a_batch_is_read_back(tmp_path: Path) -> None:
    file = ResultFile(tmp_path, "main/g1/p0")
    assert file.maybe_read(7) is None
    file.write(7, MESSAGES)
    found = file.maybe_read(7)
    assert found is not None and found.equals(MESSAGES)
    assert file.maybe_read(8) is None
    assert ResultFile(tmp_path, "main/g1/p1").maybe_read(7) is None
    file.remove()
    file.remove()
    assert file.maybe_read(7) is None


def test_a_file_that_is_no_result_is_none(tmp_path: Path) -> None:
    file = ResultFile(tmp_path, "main/g1/p0")
    file.write(7, MESSAGES)
    (path,) = tmp_path.iterdir()
    path.write_bytes(path.read_bytes()[:20])
    assert file.maybe_read(7) is None
