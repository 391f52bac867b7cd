"""The exporter as a process: by hand, and beside a broker that is told to export. docs/guides/lake.md."""

import json
from pathlib import Path

import pytest

pytest.importorskip("pyarrow", reason="pyarrow is not installed (pip install 'rumq[spark]')")

import pyarrow.parquet as pq

from commitlog import RealFiles
from commitlog.disk.export_marker import exported_lsn
from tests.cli.conftest import Broker, rumqd
from tests.lake.lakes import lsns_in, parquet_files


def publish(broker: Broker, count: int) -> None:
    """So many messages of a kilobyte."""
    lines = b"".join(b"%06d" % n + b"." * 1000 + b"\n" for n in range(count))
    sent = rumqd("pub", "plant/7/temp", "-l", "-q", "1", "--port", broker.port, stdin=lines)
    assert sent.status == 0, sent.err


def test_a_broker_exports_what_it_seals_and_the_rest_by_hand(tmp_path: Path) -> None:
    data, to = tmp_path / "data", tmp_path / "lake"
    broker = Broker(
        data, "--set", "log.segment_bytes_max=64 KiB", "--set", f"log.export_to={to}",
        "--set", "log.retention_bytes_max=64 KiB", "--set", "log.retain_for_export_bytes_max=1 GiB",
    )  # fmt: skip
    publish(broker, 200)
    told = broker.wait("lake.exported")
    assert (told["stream"], told["partition"], told["base_lsn"]) == ("main", 0, 0)
    assert broker.stop() == 0
    known = exported_lsn(RealFiles(), f"{data}/main/g1/p0")
    assert known >= told["next_lsn"] > 0
    # The note that retention goes by may be one file behind what is committed, never ahead of it.
    there = lsns_in(to)
    assert there == list(range(len(there))) and len(there) >= known

    # What the broker had not come to; the folder is its own again.
    again = rumqd("lake", "export", "--data", str(data), "--to", str(to), "--once")
    assert again.status == 0, again.err
    assert lsns_in(to) == list(range(len(lsns_in(to)))) and len(lsns_in(to)) >= known
    assert pq.ParquetFile(parquet_files(to)[0]).read()["topic"].to_pylist()[0] == "plant/7/temp"
    sound = rumqd("lake", "verify", str(to), "--data", str(data))
    assert (sound.status, sound.out) == (0, "sound: the lake has every record once\n")

    path = parquet_files(to)[0]
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 1
    path.write_bytes(raw)
    damaged = rumqd("lake", "verify", str(to), "--json")
    assert damaged.status == 1
    assert json.loads(damaged.out.splitlines()[0])["where"] == str(path.relative_to(to))


def test_what_is_no_data_directory_and_what_is_no_lake_is_said(tmp_path: Path) -> None:
    none = rumqd("lake", "export", "--data", str(tmp_path), "--to", str(tmp_path / "lake"), "--once")
    assert none.status == 3 and "no data directory of rumq" in none.err
    none = rumqd("lake", "verify", str(tmp_path))
    assert none.status == 1 and "no lake of rumq" in none.err
