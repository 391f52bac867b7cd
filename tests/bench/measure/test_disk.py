"""The disk below a broker is measured as often as asked, and nothing is left behind."""

from array import array
from pathlib import Path

from bench.measure.disk import fdatasync_ns


def test_each_sync_is_one_sample_and_the_file_is_gone(tmp_path: Path) -> None:
    took_ns = array("Q", fdatasync_ns(str(tmp_path), 3))
    assert len(took_ns) == 3 and all(took_ns)
    assert list(tmp_path.iterdir()) == []
