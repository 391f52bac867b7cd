"""A whole file is put in place, small or past the page cache, on a real disk and on the simulated one."""

import os
from array import array
from pathlib import Path

import pytest

from commitlog.disk.files import (
    DIRECT_BYTES_MIN,
    PAGE,
    STEP_BYTES,
    Files,
    RealFiles,
    replace_file,
    whole_file,
)
from commitlog.testing.simulated_files import SimulatedFiles

SIZES = [
    0, 1, DIRECT_BYTES_MIN - 1, DIRECT_BYTES_MIN, DIRECT_BYTES_MIN + 1, DIRECT_BYTES_MIN + PAGE - 1,
    DIRECT_BYTES_MIN + PAGE, DIRECT_BYTES_MIN + STEP_BYTES, 2 * DIRECT_BYTES_MIN + 3 * STEP_BYTES + 5,
]  # fmt: skip


@pytest.fixture(params=["real", "simulated"])
def files(request: pytest.FixtureRequest) -> Files:
    return RealFiles() if request.param == "real" else SimulatedFiles()


@pytest.mark.parametrize("size", SIZES)
def test_a_file_in_pieces_has_all_of_them_and_nothing_more(files: Files, tmp_path: Path, size: int) -> None:
    files.make_directory(str(tmp_path / "d"))
    path = str(tmp_path / "d" / "file")
    whole = os.urandom(size)
    words = array("I", range(1000))
    pieces = [
        whole[:10],
        bytearray(whole[10:7000]),
        memoryview(whole)[7000:],
        b"",
        memoryview(words).cast("B"),
    ]
    for _ in range(2):  # also in place of another
        replace_file(files, path, *pieces)
        assert whole_file(files, path) == whole + words.tobytes()
    assert files.names(str(tmp_path / "d")) == ["file"]


def test_a_large_file_bypasses_the_page_cache_page_by_page() -> None:
    written: list[tuple[int, int]] = []

    class Watched(SimulatedFiles):
        def write_direct(self, handle: int, path: str, position: int, data: memoryview) -> None:
            written.append((position, len(data)))
            super().write_direct(handle, path, position, data)

    files = Watched()
    files.make_directory("d")
    replace_file(files, "d/small", bytes(DIRECT_BYTES_MIN - 1))
    assert written == []
    replace_file(files, "d/large", bytes(DIRECT_BYTES_MIN + 1))
    assert written == [(at, STEP_BYTES) for at in range(0, DIRECT_BYTES_MIN, STEP_BYTES)] + [(DIRECT_BYTES_MIN, PAGE)]
    assert files.size("d/large") == DIRECT_BYTES_MIN + 1
