"""docs/explanation/architecture.md lists the files from a QoS 1 PUBLISH to its PUBACK; a trace of one finds the same.

A file is on the walk if it stands on the call stack when the message changes hands: bytes from the socket, a row and a
PUBACK of the kernel, a chunk with an lsn, a promise that waits, a group for the writer thread, bytes written and
synced, a commit, the PUBACK in the outbox and on the socket (`tests/publish_walk.py`)."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
HEADING = "### A QoS 1 PUBLISH, file by file"
FILES_MAX = 10
HANDED = [
    "receive", "put_ack", "Chunk.set", "hold", "put", "SimulatedFiles.write",
    "SimulatedFiles.sync", "eventfd_write", "Partition.complete", "Connection.write", "send_one",
]  # fmt: skip


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What the trace of a product without compiled modules says."""
    plain = tmp_path_factory.mktemp("plain")
    for floor in ("commitlog", "router", "rumq"):
        for source in (ROOT / floor).rglob("*.py"):
            target = plain / source.relative_to(ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(source.read_bytes())
    done = subprocess.run(
        [sys.executable, "-m", "tests.publish_walk", str(plain)], cwd=plain, capture_output=True, text=True,
        env=os.environ | {"PYTHONPATH": f"{plain}:{ROOT}", "PYTHONSAFEPATH": "1"}, timeout=180, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def listed(document: str) -> list[str]:
    """The files of the numbered list under the heading."""
    section = document.partition(HEADING)[2].partition("\n#")[0]
    return re.findall(r"^\d+\. `([^`]+)`", section, re.MULTILINE)


def test_the_message_changes_hands_in_order(traced: Any) -> None:
    """Without these the trace would find few files for the wrong reason."""
    assert traced["handed"] == HANDED


def test_the_document_lists_the_files_that_a_reader_opens(traced: Any) -> None:
    files = listed((ROOT / "docs/explanation/architecture.md").read_text())
    assert files == traced["walk"] and len(files) <= FILES_MAX


def test_what_is_left_out_is_no_secret(traced: Any) -> None:
    """Kernels, values, clocks and what else a turn does ran as well: none of them is on a stack."""
    assert set(traced["walk"]) < set(traced["ran"])
    assert {"commitlog/chunk.py", "rumq/loop/scheduler.py", "router/shard.py"} <= set(traced["ran"])


def test_a_list_is_read_from_its_section_alone() -> None:
    document = f"1. `before.py`\n{HEADING}\ntext\n1. `a.py`: one\n2. `b.py`: two, `c.py`\n## Next\n1. `after.py`\n"
    assert listed(document) == ["a.py", "b.py"]
