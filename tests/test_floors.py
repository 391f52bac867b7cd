"""The architecture, as a test: who may import whom. The table is the specification."""

import sys
from pathlib import Path

import pytest

from tests.house.product import ROOT, circles, files, folders_of, imports, modules, top_of

# What a pure floor refuses to know of the standard library: the world, other tasks, the clock, chance.
WORLD = {
    "asyncio", "concurrent", "ctypes", "http", "logging", "multiprocessing", "random", "select", "selectors",
    "signal", "socket", "socketserver", "ssl", "subprocess", "threading", "time", "urllib",
}  # fmt: skip

# Floor: what it may import beside itself and the standard library; what of the standard library it may not.
ROUTER_DATA = {
    "router.commands", "router.effects", "router.readers.reader", "router.readers.slots", "router.readers.subscriber",
    "router.readers.subscription",
}  # fmt: skip
FLOORS: dict[str, tuple[set[str], set[str]]] = {
    "commitlog": ({"cython", "isal"}, WORLD - {"threading"}),
    "router": ({"commitlog", "cython"}, WORLD),
    "rumq/mqtt": ({"cython"}, WORLD | {"os"}),
    "rumq/auth": ({"argon2", "jwt", "cryptography", "msgspec", "rumq.mqtt.topics", "rumq.mqtt.errors"}, WORLD),
    "rumq/tracing": (
        {"msgspec", "commitlog.chunk", "commitlog.row_layout", "rumq.mqtt"},
        WORLD | {"os"},
    ),
    "rumq/session": (
        {"msgspec", "rumq.auth", "rumq.mqtt", "rumq.errors", "rumq.settings.table", *ROUTER_DATA},
        WORLD | {"os"},
    ),
    "rumq/settings/types": ({"msgspec"}, WORLD | {"os"}),
    "rumq/settings/table": ({"msgspec", "rumq.settings.types"}, WORLD | {"os"}),
    "rumq/admin/socket": ({"msgspec", "trio", "rumq.unix_address"}, {"ssl", "asyncio", "threading"}),
    "rumq/admin": ({"msgspec", "rumq.errors", "rumq.tracing.spans"}, WORLD | {"os"}),
    "rumq/mosquitto": ({"rumq.auth", "rumq.settings.table", "rumq.errors"}, WORLD),
    "rumq/settings": (
        {"msgspec", "rumq.errors", "rumq.mqtt.topics", "rumq.mqtt.errors", "rumq.unix_address"},
        WORLD | {"os"},
    ),
    "rumq/net": (
        {
            "msgspec", "wsproto", "cython", "rumq.mqtt", "rumq.session", "rumq.errors", "rumq.unix_address",
            "rumq.auth.quota_holder",
            "rumq.auth.fair_queue", "rumq.auth.connection_rate",
        },
        set(),
    ),
    "rumq/loop/kernels": ({"cython"}, WORLD - {"time"}),
    "rumq/loop": (
        {"trio", "rumq.net.pump", "rumq.net.turn_handler", "rumq.session", *ROUTER_DATA},
        {"socket", "subprocess", "ssl"},
    ),
    "rumq/supervision": ({"rumq.loop.backoff"}, {"ssl", "asyncio", "urllib"}),
    "rumq/events": (
        {"msgspec", "structlog", "rumq.unix_address"},
        {"asyncio", "ssl", "subprocess", "urllib"},
    ),
    "rumq/terminal": (set(), WORLD - {"time"}),
    "rumq/shards": (
        # The driver is where router, sessions, the pump and the kernels that build bytes meet.
        {
            "trio", "router", "commitlog", "msgspec", "rumq.admin", "rumq.auth", "rumq.session", "rumq.net",
            "rumq.mqtt", "rumq.tracing", "rumq.version", "rumq.events", "rumq.loop", "rumq.supervision.supervisor",
            "rumq.cluster.connections", "rumq.cluster.control", "rumq.cluster.links", "rumq.cluster.replication",
        },
        set(),
    ),
    "rumq/cluster/connections": (
        {
            "msgspec", "trio", "rumq.cluster.control", "rumq.cluster.links", "rumq.net", "rumq.session.ports",
            "rumq.unix_address",
        },
        set(),
    ),
    "rumq/cluster/edge": (
        # It is a shard's front without a shard: the same loop, sessions only up to where a client goes.
        {
            "msgspec", "rumq.auth.identity", "rumq.cluster.connections", "rumq.cluster.control", "rumq.cluster.links",
            "rumq.mqtt", "rumq.net", "rumq.session", "rumq.loop",
        },
        set(),
    ),
    "rumq/cluster/node": (
        {
            "commitlog", "msgspec", "rumq.auth.quota_holder", "rumq.compiled_modules",
            "rumq.settings.table", "rumq.errors",
            "rumq.net.frames",
            "rumq.cluster.connections", "rumq.cluster.control", "rumq.cluster.links", "rumq.cluster.replication",
        },
        {"asyncio", "urllib"},
    ),
    "rumq/cluster/control": (
        {"msgspec", "h11", "trio", "rumq.errors", "rumq.events.output", "rumq.admin.cluster_rows"},
        {"time", "random"},
    ),
    "rumq/cluster/agent": (
        {
            "msgspec", "trio", "rumq.admin.cluster_rows", "rumq.errors", "rumq.events.output",
            "rumq.cluster.connections.agent_socket", "rumq.cluster.control", "rumq.cluster.links",
            "rumq.cluster.orders",
        },
        {"random"},
    ),
    "rumq/cluster/orders": (
        {
            "msgspec", "trio", "rumq.events.output", "rumq.cluster.connections.agent_socket", "rumq.cluster.control",
            "rumq.cluster.links", "rumq.net.frames",
        },
        {"random", "threading"},
    ),
    "rumq/cluster/admin": (
        {
            "msgspec", "trio", "rumq.admin", "rumq.errors", "rumq.events.output", "rumq.cluster.orders",
            "rumq.cluster.control", "rumq.cluster.links", "rumq.net.frames", "rumq.unix_address",
        },
        {"time", "random", "threading"},
    ),
    "rumq/cluster/replication": (
        {"msgspec", "rumq.cluster.control.records", "rumq.cluster.links.greeting"},
        WORLD | {"os"},
    ),
    "rumq/cluster/links": ({"msgspec", "rumq.net.frames"}, WORLD - {"socket"}),
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
            "numpy", "pandas", "py4j", "rumq.sink", "pyarrow", "pyspark", "trio", "rumq.client", "rumq.errors",
            "rumq.lake", "rumq.mqtt", "rumq.records", "rumq.table", "rumq.version",
        },
        set(),
    ),
    "rumq/sink": (
        {"trio", "numpy", "pyarrow", "rumq.client", "rumq.errors", "rumq.mqtt", "rumq.table"},
        {"asyncio", "subprocess", "threading"},
    ),
    "rumq/mirror": (
        {
            "commitlog", "numpy", "pyarrow", "rumq.errors", "rumq.flight.client", "rumq.flight.copies_client",
            "rumq.flight.tickets", "rumq.sink", "rumq.table",
        },
        WORLD - {"threading"},
    ),
    "rumq/client/outbox": (
        {"commitlog", "trio", "rumq.client.session", "rumq.errors", "rumq.mqtt"},
        WORLD - {"time"},
    ),
    "rumq/client": (
        {"httpx", "msgspec", "opentelemetry", "trio", "wsproto", "rumq.mqtt", "rumq.errors", "rumq.unix_address"},
        {"asyncio", "subprocess", "threading"},
    ),
    "rumq/queues/rules": (
        {"commitlog.chunk", "commitlog.row_layout", "msgspec", "rumq.auth.permit", "rumq.errors", "rumq.mqtt"},
        WORLD | {"os"},
    ),
    "rumq/queues/kernels": ({"cython", "rumq.queues.rules"}, WORLD | {"os"}),
    "rumq/queues": (
        {
            "commitlog", "msgspec", "trio", "rumq.admin", "rumq.auth.credentials.vouched", "rumq.auth.permit",
            "rumq.client", "rumq.errors", "rumq.mqtt",
        },
        WORLD | {"os"},
    ),
    "rumq/gateway": (
        {
            "commitlog", "cryptography", "h11", "msgspec", "opentelemetry", "prometheus_client", "rumq.admin",
            "rumq.auth", "rumq.client", "rumq.settings.table.gateway", "rumq.settings.table.trace", "rumq.errors",
            "rumq.events.event_ring", "rumq.mqtt", "rumq.queues", "rumq.session.protocol.replay_syntax",
            "rumq.session.state.histogram", "rumq.tracing.spans", "rumq.unix_address", "rumq.version", "starlette",
            "trio", "wsproto",
        },
        {"subprocess", "multiprocessing", "asyncio"},
    ),
    "rumq/services": (
        # The one floor on asyncio: gRPC's own loop. It shares with the gateway what is neither HTTP nor a page.
        {
            "commitlog", "cryptography", "google", "grpc", "grpc_health", "grpc_reflection", "msgspec", "rumq.admin",
            "rumq.auth", "rumq.errors", "rumq.flight.serving.call_authorization", "rumq.gateway.access",
            "rumq.gateway.broker", "rumq.gateway.records.partition_views", "rumq.mqtt", "rumq.net.certificate",
            "rumq.queues", "rumq.session.state.histogram", "rumq.unix_address", "trio", "outcome", "cython",
        },
        {"subprocess", "multiprocessing"},
    ),
    "rumq/kafka/protocol": ({"rumq.errors"}, WORLD | {"os"}),
    "rumq/kafka/kernels": ({"cython"}, WORLD | {"os"}),
    "rumq/kafka/topics": (
        {"rumq.auth.permit", "rumq.mqtt.topics", "rumq.kafka.protocol.errors"},
        WORLD | {"os"},
    ),
    "rumq/kafka/groups": (
        {"commitlog.disk.files", "msgspec", "rumq.errors", "rumq.kafka.protocol.errors", "trio"},
        WORLD | {"os"},
    ),
    "rumq/kafka/nodes": (
        {
            "msgspec", "trio", "rumq.admin.socket", "rumq.cluster.control",
            "rumq.kafka.groups", "rumq.kafka.protocol.errors",
        },
        WORLD,
    ),
    "rumq/kafka": (
        # Logins are Flight's; it shares with the gateway what is neither HTTP nor a page.
        {
            "commitlog", "crc32c", "msgspec", "rumq.admin", "rumq.auth", "rumq.errors", "rumq.flight.serving",
            "rumq.gateway.broker.service_client", "rumq.gateway.records.partition_views", "rumq.mqtt.topics",
            "rumq.cluster.control", "rumq.net.certificate", "rumq.net.frames", "rumq.unix_address", "trio",
        },
        {"asyncio", "subprocess", "multiprocessing", "time"},
    ),
    "rumq/process": (
        {
            "commitlog", "cryptography", "msgspec", "pyarrow", "trio", "rumq.admin", "rumq.auth", "rumq.cluster",
            "rumq.bridge", "rumq.client", "rumq.compiled_modules", "rumq.errors", "rumq.events", "rumq.flight",
            "rumq.functions", "rumq.gateway",
            "rumq.kafka", "rumq.loop", "rumq.mosquitto", "rumq.mqtt", "rumq.net", "rumq.queues", "rumq.services",
            "rumq.session", "rumq.settings", "rumq.shards", "rumq.sink", "rumq.supervision",
            "rumq.table.flight_location", "rumq.terminal", "rumq.unix_address", "rumq.version", "grpc",
        },
        {"argparse"},  # a command parses, and calls
    ),
    "rumq/bridge/kernels": ({"cython", "rumq.mqtt"}, WORLD | {"os"}),
    "rumq/bridge/nodes": (
        {"trio", "rumq.admin.socket", "rumq.bridge.pairing", "rumq.cluster.control"},
        WORLD,
    ),
    "rumq/bridge": (
        {"trio", "rumq.client", "rumq.errors", "rumq.mqtt"},
        {"asyncio", "multiprocessing", "random", "socket", "ssl", "subprocess", "threading", "time"},
    ),
    "rumq/functions": (
        {
            "commitlog", "numpy", "pyarrow", "rumq.errors", "rumq.flight.schema", "rumq.mirror", "rumq.records",
            "rumq.sink", "rumq.table",
        },
        {"asyncio", "multiprocessing", "ssl"},
    ),
    "rumq/typed": (
        {"msgspec", "rumq.client", "rumq.errors", "rumq.mqtt"},
        WORLD - {"logging"} | {"os", "trio", "rumq.client.session"},  # what rumq.client tells everybody, no more
    ),
    "rumq/embedded": (
        {
            "pytest", "trio", "rumq.client", "rumq.errors", "rumq.process.broker",
            "rumq.process.listeners.gateway_listener", "rumq.settings",
        },
        {"argparse", "ssl"},
    ),
    "rumq/cli": (
        {
            "cryptography", "deltalake", "httpx", "msgspec", "pyarrow", "rich", "trio", "trustme", "router",
            "commitlog", "rumq",
        },
        set(),
    ),
}  # fmt: skip


# The folders of a wing, from above to below; those of one line stand beside each other. A folder imports from lines
# below its own. "." is the wing itself: what lies in none of its folders.
WINGS = {
    "rumq/admin": ("socket .",),
    "commitlog": ("testing", "log replica", "replica/tail", "read write", "index", "format", "disk kernels", ". names"),
    "router": (".", "matching", "kernels readers"),
    "rumq/auth": ("credentials", "."),
    "rumq/bridge": ("nodes", ".", "kernels"),
    "rumq/cli": ("analytics", "data", "admin client gateway settings", ". top", "ask cluster"),
    "rumq/cluster": (
        "node", "node/upkeep", "admin agent", "edge orders", "connections replication/standby", "replication",
        "control links",
    ),
    "rumq/client": (".", "queues", "outbox patterns", "session", "login transport"),
    "rumq/flight": ("serving", "."),
    "rumq/gateway": (
        ".", "queues", "handlers", "relay", "broker contract", "access consumers history http metrics records",
    ),
    "rumq/kafka": (".", "parked reports", "answers", "nodes", "access groups log topics", "kernels protocol"),
    "rumq/lake": ("parquet", ".", "kernels"),
    "rumq/loop": (".", "kernels"),
    "rumq/mqtt": (".", "kernels"),
    "rumq/net": ("listening", "tls websocket", "transport", ".", "kernels sockets"),
    "rumq/process": (
        "broker", "node", "flight functions gateway grpc kafka shard", "certificates wiring", "bridge", "listeners",
    ),
    "rumq/services": (
        ".", "queues", "calls", "publishing", "reading", "access", "contract", "generated kernels",
    ),
    "rumq/session": (
        "moves", "handshake", "protocol", "connection", "journal", "state", "flow_control", "ports",
    ),
    "rumq/shards": (
        "moves", "assembly", ".", "admin", "admin/queries replication", "admin/listings",
        "clients links replication/feeding", "recovery stats turn",
        "delivery peers retention", "bus write_path",
    ),
    "rumq/spark": ("jobs", "job_kit runtime", "source"),
    "rumq/queues": (".", "engine", "link reading", "kernels", "rules"),
    "rumq/settings": (".", "table", "types"),
    "rumq/table": (".", "arrow"),
}  # fmt: skip


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


def floor_of(path: Path) -> str:
    """The innermost of the table that a file lies in."""
    return max((floor for floor in FLOORS if path.is_relative_to(ROOT / floor)), key=len)


def climbs(wing: str, folders: dict[str, set[str]]) -> list[str]:
    """Imports within a wing that do not go down, and folders that stand on no line. folders: as of `folders_of`"""
    own = wing.replace("/", ".")
    level = {
        own if name == "." else f"{own}.{name.replace('/', '.')}": number
        for number, line in enumerate(WINGS[wing])
        for name in line.split()
    }
    inside = {name: others for name, others in folders.items() if lies_in(name, {own})}
    return [f"{name} stands on no line" for name in inside if name not in level] + [
        f"{name} imports {other}"
        for name, others in inside.items()
        for other in others
        if name in level and other in level and level[other] <= level[name]
    ]


@pytest.mark.parametrize("floor", FLOORS)
def test_a_floor_imports_only_what_lies_below_it(floor: str) -> None:
    bad = {
        str(path.relative_to(ROOT)): names
        for path in sorted((ROOT / floor).rglob("*.py"))
        if floor_of(path) == floor and (names := strangers(floor, path.read_text()))
    }
    assert not bad


@pytest.mark.parametrize("wing", WINGS)
def test_the_folders_of_a_wing_import_downwards(wing: str) -> None:
    assert climbs(wing, folders_of(modules())) == []


def test_every_folder_has_a_rule() -> None:
    """A new folder needs a line in a table before it needs code."""
    without = {
        folder
        for folder in folders_of(modules())
        if not folder.startswith("pyspark_rumq")
        and not any(lies_in(folder, {wing.replace("/", ".")}) for wing in WINGS)
        and folder.replace(".", "/") not in FLOORS
    }
    assert without == {"rumq"}  # errors, version and their like, which import nothing of the product


def test_no_folder_imports_itself_by_way_of_others() -> None:
    assert circles(folders_of(modules())) == []
    assert circles(top_of(modules())) == []


def test_a_climb_is_seen() -> None:
    assert climbs("rumq/net", {"rumq.net.tls": {"rumq.net.transport"}}) == []
    assert climbs("rumq/net", {"rumq.net.transport": {"rumq.net.tls"}})
    assert climbs("rumq/net", {"rumq.net.tls": {"rumq.net.websocket"}})  # beside it
    assert climbs("rumq/net", {"rumq.net.quic": set()})


def test_nobody_imports_the_bench_the_tests_or_the_simulated_disk() -> None:
    for path in files():
        if path.parent.name != "testing":
            for_tests = {"bench", "tests", "commitlog.testing"}
            assert not [name for name in imports(path.read_text()) if lies_in(name, for_tests)], path


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
        ("rumq/shards", "from rumq.process.shard import shard"),
        ("rumq/process", "import argparse"),
        ("rumq/cluster/edge", "from rumq.shards.turn import turn"),
        ("rumq/loop", "from rumq.shards.turn.turn import Turn"),
        ("rumq/sink", "from pyspark import TaskContext"),
        ("rumq/client", "from rumq.net import pump"),
        ("rumq/kafka", "from rumq.shards.turn.turn import Turn"),
        ("rumq/kafka", "import asyncio"),
        ("rumq/kafka/protocol", "import socket"),
        ("rumq/services", "from rumq.gateway.handlers.context import Context"),
        ("rumq/services", "from rumq.client.client import Client"),
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
        ("rumq/spark", "from rumq.flight.serving.server import LogServer"),
        ("rumq/spark", "import commitlog"),
        ("rumq/typed", "from rumq.client.session.connection import BrokerConnection"),
        ("rumq/embedded", "from rumq.cli.main import main"),
    ],
)
def test_a_breach_is_seen(floor: str, source: str) -> None:
    assert strangers(floor, source)
