"""The architecture, as a test: who may import whom. The table is the specification."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# What a pure floor refuses to know of the standard library: the world, other tasks, the clock, chance.
WORLD = {
    "asyncio", "concurrent", "ctypes", "http", "logging", "multiprocessing", "random", "select", "selectors",
    "signal", "socket", "socketserver", "ssl", "subprocess", "threading", "time", "urllib",
}  # fmt: skip

# Floor: what it may import beside itself and the standard library; what of the standard library it may not.
ROUTER_DATA = {
    "router.commands", "router.effects", "router.reader", "router.slots", "router.subscriber",
    "router.subscription",
}  # fmt: skip
FLOORS: dict[str, tuple[set[str], set[str]]] = {
    "commitlog": ({"cython"}, WORLD - {"threading"}),
    "router": ({"commitlog", "cython"}, WORLD),
    "rumq/mqtt": ({"cython"}, WORLD | {"os"}),
    "rumq/auth": ({"argon2", "jwt", "cryptography", "msgspec", "rumq.mqtt.topics", "rumq.mqtt.errors"}, WORLD),
    "rumq/tracing": (
        {"msgspec", "commitlog.chunk", "commitlog.row_layout", "rumq.mqtt"},
        WORLD | {"os"},
    ),
    "rumq/session": ({"msgspec", "rumq.auth", "rumq.mqtt", "rumq.errors", "rumq.config", *ROUTER_DATA}, WORLD | {"os"}),
    "rumq/config": ({"msgspec"}, WORLD | {"os"}),
    "rumq/admin": ({"msgspec", "rumq.errors", "rumq.tracing.spans"}, WORLD | {"os"}),
    "rumq/mosquitto": ({"rumq.auth", "rumq.config", "rumq.errors"}, WORLD),
    "rumq/settings": (
        {"msgspec", "rumq.config", "rumq.errors", "rumq.mqtt.topics", "rumq.mqtt.errors"},
        WORLD | {"os"},
    ),
    "rumq/net": (
        {
            "msgspec", "wsproto", "cython", "rumq.mqtt", "rumq.session", "rumq.errors", "rumq.auth.quota_holder",
            "rumq.auth.fair_queue", "rumq.auth.connection_rate",
        },
        set(),
    ),
    "rumq/shards": (
        # The driver is where router, sessions, the pump and the kernels that build bytes meet.
        {
            "trio", "router", "commitlog", "msgspec", "rumq.admin", "rumq.auth", "rumq.session", "rumq.net",
            "rumq.mqtt", "rumq.tracing", "rumq.version",
            "rumq.event_ring", "rumq.events", "rumq.cluster.connections", "rumq.cluster.control.records",
            "rumq.cluster.links",
            "rumq.cluster.replication",
        },
        set(),
    ),
    "rumq/cluster/connections": (
        {
            "msgspec", "rumq.cluster.agent.messages", "rumq.cluster.control.records", "rumq.cluster.links", "rumq.net",
            "rumq.session.connection.transport",
        },
        set(),
    ),
    "rumq/cluster/edge": (
        # It is a shard's front without a shard: of `rumq.shards` it has the loop's parts, not what they serve.
        {
            "msgspec", "rumq.auth.identity", "rumq.cluster.agent.messages", "rumq.cluster.connections",
            "rumq.cluster.control.records", "rumq.cluster.links", "rumq.mqtt",
            "rumq.net", "rumq.session", "rumq.shards.processes", "rumq.shards.turn",
        },
        set(),
    ),
    "rumq/cluster/control": ({"msgspec", "h11", "trio", "rumq.errors", "rumq.events"}, {"time", "random"}),
    "rumq/cluster/agent": (
        {
            "msgspec", "trio", "rumq.admin.cluster_rows", "rumq.errors", "rumq.events",
            "rumq.cluster.connections.leaders", "rumq.cluster.control", "rumq.cluster.links",
        },
        {"random"},
    ),
    "rumq/cluster/admin": (
        {
            "msgspec", "trio", "rumq.admin", "rumq.errors", "rumq.events", "rumq.cluster.agent",
            "rumq.cluster.connections.leaders", "rumq.cluster.control", "rumq.cluster.links",
        },
        {"time", "random", "threading"},
    ),
    "rumq/cluster/replication": (
        {"msgspec", "rumq.cluster.control.records", "rumq.cluster.links.greeting"},
        WORLD | {"os"},
    ),
    "rumq/cluster/links": ({"msgspec"}, WORLD - {"socket"}),
    "rumq/lake": ({"commitlog", "cython", "numpy", "pyarrow", "rumq.errors"}, WORLD - {"urllib"}),
    "rumq/table": (
        {"commitlog", "numpy", "pyarrow", "rumq.errors", "rumq.lake", "rumq.mqtt"},
        WORLD - {"threading", "urllib"} | {"pyarrow.flight"},  # gRPC does not survive the forks of Spark's workers
    ),
    "rumq/table/arrow": ({"commitlog", "numpy", "pyarrow", "rumq.lake.piece"}, WORLD | {"os"}),
    "rumq/flight": (
        {
            "commitlog", "msgspec", "pyarrow", "rumq.auth", "rumq.errors", "rumq.mqtt.errors", "rumq.mqtt.topics",
            "rumq.table",
        },
        WORLD - {"ssl", "threading", "time"},
    ),
    "rumq/records": (
        {
            "duckdb", "pandas", "polars", "pyarrow", "rumq.flight.client", "rumq.flight.copies_client",
            "rumq.flight.schema", "rumq.flight.tickets", "rumq.lake", "rumq.table",
        },
        WORLD - {"time"},
    ),
    "rumq/spark": (
        {
            "numpy", "pandas", "py4j", "pyarrow", "pyspark", "trio", "rumq.client", "rumq.errors", "rumq.lake",
            "rumq.mqtt", "rumq.records", "rumq.table", "rumq.version",
        },
        set(),
    ),
    "rumq/mirror": (
        {
            "commitlog", "numpy", "pyarrow", "rumq.errors", "rumq.flight.client", "rumq.flight.copies_client",
            "rumq.flight.tickets", "rumq.spark.sink", "rumq.table",
        },
        WORLD - {"threading"},
    ),
    "rumq/client": ({"trio", "wsproto", "rumq.mqtt", "rumq.errors"}, set()),
    "rumq/gateway": (
        {
            "commitlog", "cryptography", "h11", "msgspec", "opentelemetry", "prometheus_client", "rumq.admin",
            "rumq.auth",
            "rumq.client", "rumq.config.gateway", "rumq.config.trace", "rumq.errors", "rumq.event_ring", "rumq.mqtt",
            "rumq.session.protocol.replay_syntax", "rumq.session.state.histogram", "rumq.shards.stats.admin_socket",
            "rumq.tracing.spans", "rumq.version", "starlette", "trio", "wsproto",
        },
        {"subprocess", "multiprocessing", "asyncio"},
    ),
    "rumq/cli": (
        {
            "cryptography", "deltalake", "httpx", "msgspec", "pyarrow", "rich", "trio", "trustme", "router",
            "commitlog", "rumq",
        },
        set(),
    ),
}  # fmt: skip


def imports(source: str, where: str = "") -> Iterator[str]:
    """Every dotted name the source imports: `from a.b import c` gives a.b.c."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{where}:{node.lineno}: say the whole path, not a relative one"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def lies_in(name: str, packages: set[str]) -> bool:
    return any(name == package or name.startswith(package + ".") for package in packages)


def strangers(floor: str, source: str) -> list[str]:
    """What the source may not import as a file of this floor."""
    allowed, refused = FLOORS[floor]
    own = floor.replace("/", ".")
    return [
        name
        for name in imports(source, floor)
        if lies_in(name, refused) or not lies_in(name, allowed | {own} | set(sys.stdlib_module_names))
    ]


@pytest.mark.parametrize("floor", FLOORS)
def test_a_floor_imports_only_what_lies_below_it(floor: str) -> None:
    bad = {
        str(path.relative_to(ROOT)): names
        for path in sorted((ROOT / floor).rglob("*.py"))
        if (names := strangers(floor, path.read_text()))
    }
    assert not bad


def test_nobody_imports_the_bench_the_tests_or_the_simulated_disk() -> None:
    for top in ("commitlog", "router", "rumq"):
        for path in sorted((ROOT / top).rglob("*.py")):
            if path.parent.name != "testing":
                for_tests = {"bench", "tests", "commitlog.testing"}
                assert not [name for name in imports(path.read_text()) if lies_in(name, for_tests)], path


def test_every_folder_of_rumq_is_a_floor_of_the_table_or_heavy() -> None:
    """A new folder needs a line in the table before it needs code."""
    folders = {f"rumq/{path.parent.name}" for path in (ROOT / "rumq").glob("*/*.py")}
    assert folders - {"rumq/cluster"} <= set(FLOORS)


@pytest.mark.parametrize(
    ("floor", "source"),
    [
        ("commitlog", "import trio"),
        ("commitlog", "from router import commands"),
        ("commitlog", "def f():\n    import time"),  # also where it hides in a function
        ("router", "from time import monotonic"),
        ("router", "import rumq.mqtt.packets"),
        ("rumq/mqtt", "import socket"),
        ("rumq/mqtt", "from rumq import session"),
        ("rumq/mqtt", "import numpy"),
        ("rumq/session", "from router.shard import Shard"),
        ("rumq/session", "import commitlog"),
        ("rumq/auth", "import socket"),
        ("rumq/auth", "from rumq.session import link"),
        ("rumq/net", "import commitlog.log"),
        ("rumq/net", "from router import Router"),
        ("rumq/shards", "from rumq.cli import run"),
        ("rumq/client", "from rumq.net import pump"),
        ("rumq/table", "from pyspark.sql import DataFrame"),
        ("rumq/table", "import pyarrow.flight"),
        ("rumq/table", "def f():\n    from rumq.flight.client import LogClient"),
        ("rumq/table", "from rumq.spark.source import schema"),
        ("rumq/table", "from time import time_ns"),
        ("rumq/table/arrow", "from rumq.table.options import Options"),
        ("rumq/flight", "from rumq.spark.source.schema import schema_of"),
        ("rumq/records", "from pyspark.sql import DataFrame"),
        ("rumq/records", "from rumq.spark.source import schema"),
        ("rumq/spark", "from rumq.cli.main import main"),
        ("rumq/spark", "from rumq.flight.server import LogServer"),
        ("rumq/spark", "import commitlog"),
    ],
)
def test_a_breach_is_seen(floor: str, source: str) -> None:
    assert strangers(floor, source)
