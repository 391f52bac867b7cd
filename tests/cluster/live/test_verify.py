"""`rumqd cluster verify` at a live cluster: equal while clients publish, and one flipped byte of a record is found."""

import os
import time
from pathlib import Path

import pytest

from tests.cli.conftest import rumqd
from tests.cluster.live.cluster import LiveCluster, address_of
from tests.cluster.live.test_live import pytestmark as needs_etcd

pytestmark = needs_etcd
SECONDS_MAX = 90.0


@pytest.mark.timeout(400)
def test_copies_are_equal_until_a_byte_flips(tmp_path: Path) -> None:
    live = LiveCluster(tmp_path, settings=("log.scrub_bytes_per_second=0", "log.pack_bytes_per_second=0"))
    try:
        live.start()
        host, port = address_of(live.nodes[0])
        sent = rumqd("pub", "-h", host, "-p", str(port), "-q", "1", "plant/7", "-m", "x" * 4000, "--repeat", "300")
        assert sent.status == 0, sent.err
        data = str(live.nodes[1].data)
        until = time.monotonic() + SECONDS_MAX
        while (ended := rumqd("cluster", "verify", "--data", data)).status:
            assert time.monotonic() < until, ended.out + ended.err
        lines = ended.out.splitlines()
        assert lines[-1].startswith(f"{len(lines) - 1} of {len(lines) - 1} copies") and len(lines) > 9
        assert all(line.startswith("equal") for line in lines[:-1])
        path = finished_segment(live)
        with open(path, "r+b") as file:
            at = file.read().index(b"x" * 100)  # not of the padding behind a chunk, which is no record's
            file.seek(at)
            file.write(b"y")
        ended = rumqd("cluster", "verify", "--data", data)
        assert ended.status == 1
        (wrong,) = [line for line in ended.out.splitlines() if line.startswith("different")]
        assert path.name in wrong and f"  {path.parents[3].name}: " in wrong
    finally:
        live.stop()


def finished_segment(live: LiveCluster) -> Path:
    """A sealed one of a copy at a node that does not lead its shard."""
    records = live.shard_records()
    for node in live.nodes:
        for folder in sorted(Path(node.data, "main", "g1").glob("p*")):
            leader = records[int(folder.name[1:]) % len(records)]["leader"].partition("#")[0]
            found = sorted(folder.glob("*.seg"))
            if leader != node.name and len(found) > 1 and os.path.getsize(found[0]) > 8192:
                return found[0]
    raise AssertionError("no copy has a finished segment")
