"""The gateway as a process beside its broker: started again when it dies, reloads tokens at SIGHUP, ends with it."""

import os
import shutil
import signal
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from rumq.auth.errors import SecretsError
from rumq.gateway.access.tokens import parse
from tests.cli.conftest import rumqd
from tests.flight.test_process import gone
from tests.gateway.conftest import Gateway, started
from tests.net.authorities import Authorities
from tests.net.conftest import authorities as authorities


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Gateway]:
    made = started(tmp_path, "auth.guess_seconds_max=0")
    yield made
    made.broker.end()


def beside(pid: int) -> int:
    """The gateway's process."""
    (found,) = [
        int(child)
        for task in Path(f"/proc/{pid}/task").iterdir()
        for child in (task / "children").read_text().split()
        if b"gateway\0--for-broker" in Path(f"/proc/{child}/cmdline").read_bytes()
    ]
    return found


def test_it_reads_tokens_again_and_is_started_again_when_it_dies(gateway: Gateway) -> None:
    broker = gateway.broker
    removed = rumqd("token", "remove", "reader", "--data", str(broker.data))
    assert removed.status == 0 and "reader" not in rumqd("token", "list", "--data", str(broker.data)).out
    broker.process.send_signal(signal.SIGHUP)
    assert broker.event("gateway.reloaded")["tokens"] == 3
    assert gateway.ask("GET", "/api/v1/status", token="reader").status == 401
    assert gateway.ask("GET", "/api/v1/status").status == 200
    process = beside(broker.process.pid)
    os.kill(process, signal.SIGKILL)
    assert broker.event("gateway.died")["why"] == "exit status -9"
    gateway.port = int(broker.event("listener.bound", number=4)["port"])
    assert gateway.publish({"topic": "t"}).status == 200
    last = beside(broker.process.pid)
    broker.kill()
    assert gone(last), "it ends with its broker, however that ends"


def test_certificates_are_renewed_at_a_reload_and_when_files_change(tmp_path: Path, authorities: Authorities) -> None:
    """D19: a broken file keeps the old one."""
    for kind in ("pem", "key"):
        shutil.copy(authorities.path("server", kind), tmp_path / f"now.{kind}")
    gateway = started(tmp_path, f"gateway.tls_certificate={tmp_path}/now.pem", f"gateway.tls_key={tmp_path}/now.key")
    broker, told = gateway.broker, gateway.broker.event
    try:
        assert shown(gateway.port, authorities) == ""
        (tmp_path / "now.pem").write_text("nonsense")
        assert "cannot be used" in told("certificate.refused")["why"]
        assert shown(gateway.port, authorities) == ""
        for kind in ("pem", "key"):
            shutil.copy(authorities.path("server2", kind), tmp_path / f"now.{kind}")
        broker.process.send_signal(signal.SIGHUP)
        told("gateway.reloaded")
        assert told("certificate.renewed")["of"] == "gateway"
        assert shown(gateway.port, authorities) == "the second one"
    finally:
        broker.end()


def shown(port: int, authorities: Authorities) -> str:
    """The common name of the gateway's certificate; "": it has none."""
    context = ssl.create_default_context(cafile=authorities.path("ca"))
    with context.wrap_socket(socket.create_connection(("127.0.0.1", port)), server_hostname="localhost") as secure:
        found = secure.getpeercert() or {}
    names = [value for part in found["subject"] for key, value in part if key == "commonName"]  # type: ignore[misc]
    return str(names[0]) if names else ""


def test_a_token_is_shown_once_and_its_hash_is_kept(tmp_path: Path) -> None:
    made = rumqd("token", "add", "desk", "--user", "anna", "--role", "publish", "--data", str(tmp_path))
    secret = made.out.strip()
    text = (tmp_path / "gateway-tokens").read_text()
    assert secret.startswith("rumq_") and secret not in text
    assert (tmp_path / "gateway-tokens").stat().st_mode & 0o777 == 0o600
    ((_, token),) = parse(text, "f").items()
    assert (token.name, token.roles, token.user) == ("desk", {"publish"}, "anna")
    again = rumqd("token", "add", "desk", "--data", str(tmp_path))
    assert again.status == 2 and "already" in again.err


@pytest.mark.parametrize("line", ["nonsense", '{"name": "a", "roles": ["root"], "sha256": "' + "0" * 64 + '"}'])
def test_a_line_that_is_no_token_is_refused_with_its_number(line: str) -> None:
    with pytest.raises(SecretsError, match="line 2"):
        parse(f"# tokens\n{line}\n", "f")


def test_a_token_may_be_made_before_the_first_start(tmp_path: Path) -> None:
    made = rumqd("token", "add", "ops", "--data", str(tmp_path / "data"))
    assert made.status == 0 and len(made.out.strip()) > 20, made.err
    assert (tmp_path / "data").stat().st_mode & 0o077 == 0
