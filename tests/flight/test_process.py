"""Flight as a process: beside a broker that is told to, and by hand. docs/guides/spark.md, docs/guides/operating.md."""

import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from rumq.errors import ConfigError
from rumq.flight.client import LogClient
from rumq.flight.errors import Away, NotAllowed
from rumq.flight.tickets import Ticket
from rumq.process.flight.flight_server import NICE
from rumq.process.listeners.listener_policies import ListenerPolicies
from rumq.process.wiring.sidecars import check_sidecars
from rumq.settings.table import Flight, Settings
from rumq.table.flight_location import FlightLocation
from tests.broker_process import Rumqd
from tests.cli.conftest import ENVIRONMENT, command, rumqd
from tests.flight.served import HASHED, client_at, served
from tests.flight.test_client import Certificates, lsns
from tests.spark.logs import Publisher, message, store_at

P0 = "main/g1/p0"
NICE_MAX = 19  # of Linux: what is started so stays so


class ByHand:
    """`rumqd flight` on any free port; what it told when it was ready."""

    def __init__(self, root: str, *flags: str) -> None:
        self.process = subprocess.Popen(
            command("flight", "--data", root, "--port", "-1", *flags), stderr=subprocess.PIPE, env=ENVIRONMENT
        )
        self.bound = self.event("listener.bound")
        self.address = f"grpc://127.0.0.1:{self.bound['port']}"

    def event(self, name: str) -> dict[str, Any]:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            event: dict[str, Any] = json.loads(line)
            if event["event"] == name:
                return event
        raise AssertionError(f"it ended without {name}")

    def stop(self) -> int:
        self.process.terminate()
        return self.process.wait(60)


def secrets(path: Path, text: str) -> str:
    path.write_text(text)
    path.chmod(0o600)
    return str(path)


def test_it_serves_until_it_is_stopped_and_reads_users_again(root: str, tmp_path: Path) -> None:
    path = secrets(tmp_path / "users", f"anna:{HASHED}\n")
    ready = ByHand(root, "--set", f"auth.password_file={path}")
    password = secrets(tmp_path / "password", "secret\n")
    anna = client_at(ready.address, username="anna", password_file=password)
    ben = client_at(ready.address, username="ben", password_file=password)
    assert ready.bound["protocol"] == "flight" and lsns(anna) == list(range(300))
    with pytest.raises(NotAllowed, match="wrong user name, password or token"):
        ben.heads()
    assert "ben" in ready.event("flight.refused")["why"]
    secrets(tmp_path / "users", "nonsense\n")
    ready.process.send_signal(signal.SIGHUP)
    assert "line 1: expected user:hash" in ready.event("settings.refused")["why"]
    assert P0 in anna.heads()
    secrets(tmp_path / "users", f"ben:{HASHED}\n")
    ready.process.send_signal(signal.SIGHUP)
    ready.event("flight.reloaded")
    assert P0 in ben.heads()
    with pytest.raises(NotAllowed):
        anna.heads()
    assert ready.stop() == 0


def test_a_server_that_is_killed_in_the_middle_costs_a_reader_a_moment(tmp_path: Path) -> None:
    """54 MB do not fit into what lies between the two when it dies."""
    store = store_at(str(tmp_path / "d"), segment_bytes_max=64 << 20)
    publisher = Publisher(store.own[0])
    for _ in range(6):
        publisher.chunk([message("a", b"x" * 900_000)] * 10)
    store.close()
    first = ByHand(str(tmp_path / "d"))
    servers = [first]

    def wait(seconds: float) -> None:
        if len(servers) == 1:
            servers.append(ByHand(str(tmp_path / "d"), "--port", str(first.bound["port"])))

    client = LogClient(FlightLocation(first.address), wait=wait)
    batches = client.batches(Ticket(partition=P0, start=0, end=60))
    found = [next(batches)]
    first.process.kill()
    first.process.wait()
    found += batches
    assert [lsn for batch in found for lsn in batch.column("lsn").to_pylist()] == list(range(60))
    assert len(servers) == 2 and servers[1].stop() == 0


def test_it_speaks_tls_and_wants_a_certificate_where_the_settings_say_so(root: str, tmp_path: Path) -> None:
    files = Certificates(tmp_path)
    os.chmod(files.chain_and_key, 0o600)
    ready = ByHand(
        root, "--set", f"flight.tls_certificate={files.chain_and_key}", "--set", f"flight.tls_authority={files.ca}",
        "--set", "flight.anonymous=yes",
    )  # fmt: skip
    assert ready.bound["protocol"] == "flight over TLS"
    address = ready.address.replace("grpc", "grpc+tls")
    assert len(lsns(client_at(address, tls_ca=files.ca, tls_certificate=files.client))) == 300
    with pytest.raises(Away, match="client certificate"):
        client_at(address, tls_ca=files.ca).heads()
    assert ready.stop() == 0
    os.chmod(files.chain_and_key, 0o604)
    exposed = rumqd("flight", "--data", root, "--set", f"flight.tls_certificate={files.chain_and_key}")
    assert exposed.status == 2 and "flight.tls_key" in exposed.err and "chmod o-rw" in exposed.err


def test_certificates_are_renewed_while_a_read_goes_on(tmp_path: Path) -> None:
    """D19: 54 MB do not fit into what lies between the two; new connections need the new authority."""
    store = store_at(str(tmp_path / "d"), segment_bytes_max=64 << 20)
    publisher = Publisher(store.own[0])
    for _ in range(6):
        publisher.chunk([message("a", b"x" * 900_000)] * 10)
    store.close()
    (tmp_path / "new").mkdir()
    old, new = Certificates(tmp_path), Certificates(tmp_path / "new")
    os.chmod(old.chain_and_key, 0o600)
    ready = ByHand(str(tmp_path / "d"), "--set", f"flight.tls_certificate={old.chain_and_key}")
    address = ready.address.replace("grpc", "grpc+tls")
    batches = client_at(address, tls_ca=old.ca).batches(Ticket(partition=P0, start=0, end=60))
    found = [next(batches)]
    Path(old.chain_and_key).write_text("nonsense")
    ready.process.send_signal(signal.SIGHUP)
    assert "no PEM certificate" in ready.event("settings.refused")["why"]
    assert P0 in client_at(address, tls_ca=old.ca).heads()
    shutil.copyfile(new.chain_and_key, old.chain_and_key)
    ready.process.send_signal(signal.SIGHUP)
    assert ready.event("certificate.renewed")["of"] == "flight"
    assert P0 in client_at(address, tls_ca=new.ca).heads()
    with pytest.raises(Away, match="authority"):
        client_at(address, tls_ca=old.ca).heads()
    found += batches
    assert [lsn for batch in found for lsn in batch.column("lsn").to_pylist()] == list(range(60))
    assert ready.stop() == 0


def test_what_it_cannot_start_with_is_one_sentence(root: str, tmp_path: Path) -> None:
    with served(root) as other:  # gRPC would share the port with it, without a word
        port = other.port
        for flags, status, says in (
            (["--port", str(port), "--host", "127.0.0.1"], 1, f"on 127.0.0.1:{port}: Address already in use"),
            (["--data", str(tmp_path)], 3, "no data directory of rumq"),
        ):
            ended = rumqd("flight", "--data", root, *flags)
            assert ended.status == status and says in ended.err and ended.err.count("\n") == 1, ended.err


@pytest.mark.parametrize(
    ("flight", "says"),
    [
        (Flight(port=1, password_file="/nowhere"), "flight.password_file: /nowhere: cannot be read"),
        (Flight(port=1, rules_file="/nowhere"), "flight.rules_file: /nowhere: cannot be read"),
        (Flight(port=1, tls_certificate="/nowhere"), 'flight.tls_certificate = "/nowhere"'),
        (Flight(port=1, tls_authority="/nowhere"), "tls_authority needs TLS"),
    ],
)
def test_a_broker_refuses_settings_that_its_flight_could_not_start_with(flight: Flight, says: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(says)) as caught:
        check_sidecars(Settings(flight=flight))
    assert "\n" not in str(caught.value)


def test_without_pyarrow_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"flight.port: Flight needs pyarrow and numpy: pip install pyarrow numpy"):
        check_sidecars(Settings(flight=Flight(port=1)))


def test_others_come_in_only_where_users_are_set_up_or_everybody_may() -> None:
    for host, anonymous, expected in (("127.0.0.1", "auto", True), ("*", "auto", False), ("*", "yes", True)):
        settings = Settings(flight=Flight(port=1, host=host, anonymous=anonymous))
        assert ListenerPolicies(settings).flight().authenticator.anonymous is expected


@pytest.fixture
def broker(tmp_path: Path) -> Any:
    rules = secrets(tmp_path / "rules.toml", '[[rule]]\nallow = ["subscribe", "replay"]\ntopics = ["plant/#"]\n')
    flags = ("flight.port=-1", "flight.host=127.0.0.1", f"flight.rules_file={rules}")
    made = Rumqd(tmp_path / "data", *(word for flag in flags for word in ("--set", flag)))
    yield made
    made.end()


def test_a_broker_serves_it_beside_itself_and_starts_it_again(broker: Rumqd, tmp_path: Path) -> None:
    broker.start()
    bound = broker.event("listener.bound", number=2)
    assert bound["protocol"] == "flight"
    told = [f"m{n}" for n in range(5)]
    sent = rumqd("pub", "plant/7", "-l", "-q", "1", "--port", str(broker.address.port), stdin="\n".join(told).encode())
    assert sent.status == 0, sent.err
    client = client_at(f"grpc://127.0.0.1:{bound['port']}", retries=20, retry_seconds=0.0)
    assert client.heads()[P0]["committed"] in range(6)  # the mark of the last group may be on its way
    nothing = Ticket(partition=P0, start=0, end=0)
    assert list(client.batches(nothing)) == []
    secrets(tmp_path / "rules.toml", '[[rule]]\nallow = ["subscribe"]\ntopics = ["plant/#"]\n')
    broker.process.send_signal(signal.SIGHUP)
    broker.event("flight.reloaded")
    with pytest.raises(NotAllowed, match="to replay any topic"):
        list(client.batches(nothing))
    server = beside(broker.process.pid)
    nice = os.getpriority(os.PRIO_PROCESS, broker.process.pid)
    assert os.getpriority(os.PRIO_PROCESS, server) == min(nice + NICE, NICE_MAX), "the broker has priority"
    os.kill(server, signal.SIGKILL)
    assert broker.event("flight.died")["why"] == "exit status -9"
    again = broker.event("listener.bound", number=3)
    assert client_at(f"grpc://127.0.0.1:{again['port']}").heads()[P0]["first"] == 0
    last = beside(broker.process.pid)
    broker.kill()
    assert gone(last), "it ends with its broker, however that ends"


def beside(pid: int) -> int:
    """The process that the broker has beside itself."""
    found = [
        int(child)
        for task in Path(f"/proc/{pid}/task").iterdir()
        for child in (task / "children").read_text().split()
        if b"flight" in Path(f"/proc/{child}/cmdline").read_bytes()
    ]
    assert len(found) == 1
    return found[0]


def gone(pid: int) -> bool:
    """Waits for it; a descriptor of a process is readable once it has ended (pidfd_open(2))."""
    import select

    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    ready, _, _ = select.select([descriptor], [], [], 60)
    os.close(descriptor)
    return bool(ready)
