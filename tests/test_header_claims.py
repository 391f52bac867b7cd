"""A module's header may say what the module knows nothing of. Each such claim is an import rule, and holds.

"Knows no socket, no log." in a docstring forbids the module to import sockets or the log. A claim that no
import can break is not allowed, because nothing would hold it."""

import ast
import re
from pathlib import Path

import pytest

from tests.test_floors import imports, lies_in

ROOT = Path(__file__).parents[1]
CLAIM = re.compile(r"\b[Kk]nows no ([^.:;(]+)")
SOCKETS = {"socket", "ssl", "select", "selectors", "socketserver"}

# What the word of a claim forbids to import.
CLAIMS: dict[str, set[str]] = {
    "socket": SOCKETS,
    "clock": {"time"},
    "thread": {"threading", "concurrent", "queue"},
    "task": {"trio", "asyncio"},
    "file": {"os", "io", "pathlib", "shutil", "tempfile", "commitlog.disk.files"},
    "packet": {"rumq.mqtt.packets", "rumq.mqtt.decode", "rumq.mqtt.encode"},
    "session": {"rumq.session", "pyspark"},
    "router": {"router"},
    "log": {"commitlog"},
    "broker": {"rumq.shards", "rumq.session", "rumq.net", "rumq.cli"},
    "command": {"rumq.cli", "argparse"},
    "MQTT": {"rumq"},
    "TLS": {"ssl", "rumq.net.tls.tls"},
    "JSON": {"json", "msgspec"},
    "Arrow": {"pyarrow"},
    "Parquet": {"pyarrow.parquet"},
    "gRPC": {"pyarrow.flight", "grpc"},
    "Flight": {"pyarrow.flight", "rumq.flight"},
    "Spark": {"pyspark", "rumq.spark"},
    "rule": {"rumq.auth.rules"},
    "client": {"rumq.session"},
    "connection": {"rumq.net.connection"},
    "subscriber": {"router.readers.subscriber"},
    "subscription": {"router.readers.subscription"},
    "partition": {"commitlog.log.partition", "commitlog.write.volatile"},
    "record": {"commitlog.chunk"},
    "manifest": {"commitlog.format.manifest", "rumq.lake.manifest"},
    "journal": {"rumq.session.journal", "rumq.shards.recovery"},
    "signal": {"signal"},
    "hash": {"rumq.auth.credentials.hashes", "hashlib"},
    "password": {"rumq.auth.credentials.passwords"},
    "method": {
        "rumq.auth.credentials.passwords",
        "rumq.auth.credentials.tokens",
        "rumq.auth.credentials.scram",
        "rumq.auth.credentials.callout",
    },
    "shard": {"rumq.shards"},
}


def claims_in(source: str) -> list[str]:
    """The nouns of `Knows no A, no B and no C.` in the module's docstring."""
    said = ast.get_docstring(ast.parse(source)) or ""
    found = []
    for claim in CLAIM.findall(" ".join(said.split())):
        found += [re.sub(r"^no ", "", noun.strip()) for noun in re.split(r",| and | or ", claim) if noun.strip()]
    return found


def broken_in(source: str) -> list[str]:
    """Claims of a module that its imports break, or that no import could break."""
    named = list(imports(source))
    broken = []
    for claim in claims_in(source):
        forbidden = CLAIMS.get(claim)
        if forbidden is None:
            broken.append(f"{claim}: no import rule can hold this")
        else:
            broken += [f"{claim}: imports {name}" for name in named if lies_in(name, forbidden)]
    return broken


def test_what_headers_claim_is_held_by_imports() -> None:
    broken = {
        str(path.relative_to(ROOT)): found
        for top in ("commitlog", "router", "rumq")
        for path in sorted((ROOT / top).rglob("*.py"))
        if (found := broken_in(path.read_text()))
    }
    assert broken == {}


@pytest.mark.parametrize(
    "source",
    [
        '"""A pump. Knows no socket."""\nimport socket',
        '"""Plans. Knows no Spark and\nno file."""\ndef f():\n    from pathlib import Path',
        '"""A buffer. Knows no sorrow."""',
    ],
)
def test_a_false_claim_is_seen(source: str) -> None:
    assert broken_in(source)


def test_a_true_claim_stands() -> None:
    assert broken_in('"""Plans. Knows no Spark, no file: text in, text out."""\nimport re') == []
