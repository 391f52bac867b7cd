"""Arrow Flight, measured: `python -m bench.table.flight DIR [plain] [local] [cluster]`.

Rows a second of a plain client with one and two connections, and into Spark: two threads of one process, then two
executors with a JVM each (SPARK_HOME is pyspark's folder). Writes its own log in DIR, unless it is there."""

import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from bench.table.history import EIGHT
from bench.table.spark import RECORDS, ddl
from bench.table.spark_log import fill

ALL = [
    "client_id",
    "properties",
    "content_type",
    "response_topic",
    "correlation_data",
    "message_expiry",
    "payload_format",
]


class Server:
    """`rumqd flight` as a user starts it."""

    def __init__(self, root: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "rumq", "flight", "--data", root, "--port", "-1", "--host", "127.0.0.1"],
            stderr=subprocess.PIPE,
        )
        assert self._process.stderr is not None
        self.address = f"grpc://127.0.0.1:{json.loads(self._process.stderr.readline())['port']}"
        self.pid = self._process.pid

    def cpu_seconds(self) -> float:
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(20)


def best_of(server: Server, name: str, run: Any, times: int = 3) -> None:
    best, cpu = 1e9, 0.0
    for _ in range(times):
        start, before = time.perf_counter(), server.cpu_seconds()
        run()
        if (seconds := time.perf_counter() - start) < best:
            best, cpu = seconds, server.cpu_seconds() - before
    print(
        f"{name}: {RECORDS / best / 1e6:.2f} million rows/s, best of {times}; server {cpu / best:.2f} cores",
        flush=True,
    )


def plain(server: Server) -> None:
    """As any Arrow client does it: what a command gives, ticket by ticket."""
    import pyarrow.flight as fl

    with fl.connect(server.address) as client:

        def read(columns: list[str], connections: int) -> None:
            command = {"columns": columns, "maxRecordsPerPartition": 1_000_000}
            info = client.get_flight_info(fl.FlightDescriptor.for_command(json.dumps(command)))
            with ThreadPoolExecutor(connections) as pool:
                rows = sum(pool.map(lambda e: sum(c.data.num_rows for c in client.do_get(e.ticket)), info.endpoints))
            assert rows == RECORDS, rows

        for connections in (1, 2):
            best_of(server, f"plain, 8 columns, {connections} at once", partial(read, EIGHT, connections))
        best_of(server, "plain, 15 columns, 2 at once", lambda: read([*EIGHT, *ALL], 2))
        best_of(server, "plain, topic and payload, 2 at once", lambda: read(["topic", "payload"], 2))


def spark(server: Server, master: str) -> None:
    import rumq.spark

    more: dict[str, Any] = {
        "spark_driver_host": "127.0.0.1",
        "spark_executor_memory": "1g",
        "spark_cores_max": "2",
    }
    session = rumq.spark.session(
        "bench", master, spark_ui_enabled="false", spark_log_level="ERROR", spark_pyspark_python=sys.executable,
        **(more if master.startswith("local-cluster") else {}),
    )  # fmt: skip

    def frame(columns: list[str]) -> Any:
        return session.read.format("rumq").schema(ddl(columns)).option("broker", server.address).load()

    assert frame(["lsn"]).count() == RECORDS
    for columns in (EIGHT, ["topic", "payload"]):
        name = f"{master}, {len(columns)} columns by schema"
        best_of(server, name, partial(drain, frame(columns)))
    session.stop()


def drain(frame: Any) -> None:
    frame.write.format("noop").mode("overwrite").save()


def main() -> None:
    root, *only = sys.argv[1:]
    if not Path(root).exists():
        fill(root, RECORDS)
    server = Server(root)
    try:
        if not only or "plain" in only:
            plain(server)
        if not only or "local" in only:
            spark(server, "local[2]")
        if not only or "cluster" in only:
            spark(server, "local-cluster[2,1,1024]")
    finally:
        server.stop()


if __name__ == "__main__":
    main()
