"""A data directory of format version 1, as the first release wrote it: it stays readable, and is written the same.

`python -m tests.commitlog.test_golden` writes it anew: for a new version, into a new folder."""

import json
import shutil
from pathlib import Path

from commitlog import RealFiles
from commitlog.disk.files import Files
from commitlog.format.manifest import decode_edits, encode_edit
from commitlog.read.log_reader import LogReader
from commitlog.read.verify import verify
from commitlog.testing.simulated_files import SimulatedFiles
from tests.commitlog.records import (
    DEAD,
    NOW,
    append,
    everything,
    index,
    mark,
    opened,
    records_of,
    some_records,
    viewed,
    write,
)

GOLDEN = Path(__file__).parent / "golden" / "v1"
EXPECTED = GOLDEN.parent / "v1.json"


def history(files: Files, root: str) -> None:
    """Two partitions: sealed segments with an index, a stop and a start, a segment not sealed; QoS 2 tags."""
    for turn in range(2):
        store = opened(files, root=root, durability="process", partitions=2, segment_bytes_max=6400, seed=1000 * turn)
        for partition in store.partitions:
            for group in range(4):
                first = 10 * (4 * turn + group) + partition.number
                append(partition, some_records(10, first), NOW + 1000 * first, f"device-{group}", {3: 7 + group})
                write(partition)
                index(partition)
            mark(partition)
        if turn == 0:
            assert store.close() == []


def content(files: Files, root: str) -> dict[str, bytes]:
    found = {}
    for name in files.names(root):
        path = f"{root}/{name}"
        try:
            handle = files.open(path)
            found[path] = files.read(handle, 0, files.size(path))
        except OSError:
            found.update(content(files, path))
    return found


def without_salts(name: str, raw: bytes) -> bytes:
    """A file; of a manifest, without what earlier readers of version 1 did not know, and skip."""
    if not name.endswith("/MANIFEST"):
        return raw
    known = [{key: value for key, value in edit.items() if key != "salt"} for edit in decode_edits(raw)]
    return b"".join(encode_edit(edit) for edit in known)  # type: ignore[arg-type]


def test_version_1_is_written_as_it_was() -> None:
    files = SimulatedFiles()
    history(files, "data")
    written = {path.removeprefix("data/"): raw for path, raw in content(files, "data").items()}
    golden = {str(p.relative_to(GOLDEN)): p.read_bytes() for p in GOLDEN.rglob("*") if p.is_file()}
    assert sorted(written) == sorted(golden)
    for name, raw in golden.items():
        assert without_salts(name, written[name]) == raw, name


def test_version_1_is_read_as_it_was() -> None:
    expected = json.loads(EXPECTED.read_text())
    for seen in LogReader(RealFiles(), str(GOLDEN)).partitions():
        found, gaps = viewed(seen)
        assert gaps == []
        said = [
            [s.lsn, s.topic.decode(), s.offset, s.payload.decode(), s.ts, s.client_id.decode(), s.tag] for s in found
        ]
        assert said == expected[seen.name]
    assert [f for f in verify(RealFiles(), str(GOLDEN)) if f.severity != "note"] == []


def test_version_1_is_opened_and_written_on(tmp_path: Path) -> None:
    root = str(tmp_path / "data")
    shutil.copytree(GOLDEN, root)
    store = opened(RealFiles(), root=root, durability="process", partitions=2, seed=5000)
    for partition in store.partitions:
        append(partition, some_records(1))
        write(partition)
        found, gaps = everything(partition)
        assert len(found) == 81 and gaps == [] and records_of(found)[-1] == some_records(1)[0]
    assert store.close() == []
    assert list(verify(RealFiles(), root)) == []


if __name__ == "__main__":
    shutil.rmtree(GOLDEN, ignore_errors=True)
    simulated = SimulatedFiles()
    history(simulated, "data")
    assert DEAD.encode() in content(simulated, "data").values()
    for where, raw in content(simulated, "data").items():
        target = GOLDEN / where.removeprefix("data/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(raw)
    said = {}
    for partition_view in LogReader(simulated, "data").partitions():
        said[partition_view.name] = [
            [s.lsn, s.topic.decode(), s.offset, s.payload.decode(), s.ts, s.client_id.decode(), s.tag]
            for s in viewed(partition_view)[0]
        ]
    EXPECTED.write_text(
        "{"
        + ",\n".join(
            f'"{name}": [\n{rows}]'
            for name, rows in ((name, ",\n".join(map(json.dumps, rows))) for name, rows in said.items())
        )
        + "}\n"
    )
