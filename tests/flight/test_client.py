"""A client outlives a server that stops, and says in a sentence why it cannot read."""

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import trustme

from rumq.flight.client import LogClient
from rumq.flight.errors import Away, TooManyReads
from rumq.flight.serving.read_slots import ReadSlots
from rumq.flight.serving.served_log import ServedLog
from rumq.flight.serving.server import LogServer
from rumq.flight.tickets import Ticket
from rumq.table.flight_location import FlightLocation, maybe_address
from tests.commitlog.records import NOW
from tests.flight.served import client_at, served
from tests.spark.logs import SECOND_US

P0 = "main/g1/p0"
ALL = Ticket(partition=P0, start=0, end=300, columns=("lsn",))


class Faltering(ServedLog):
    """Gives a batch of ten records for each thing it is asked, and fails then, so often."""

    def __init__(self, path: str, times: int) -> None:
        super().__init__(path)
        self.times = times
        self.starts: list[int] = []

    def batches(self, ticket: Any, caller: Any) -> Iterator[Any]:
        self.starts.append(ticket.start)
        for batch, _ in super().batches(ticket, caller):
            if len(self.starts) > self.times:
                yield batch, 300
                return
            yield batch.slice(0, 10), ticket.start + 10
            raise TooManyReads("the server stops")


def faltering(times: int, logs: list[Faltering]) -> Any:
    def made(location: str, log: ServedLog, door: Any, **more: Any) -> LogServer:
        logs.append(Faltering(log.path, times))
        return LogServer(location, logs[-1], door, **more)

    return made


def lsns(client: LogClient) -> list[int]:
    return [lsn for batch in client.batches(ALL) for lsn in batch.column("lsn").to_pylist()]


def test_a_lost_connection_goes_on_behind_the_last_batch(root: str) -> None:
    """However often, as long as there is progress: retries count anew with each batch."""
    logs: list[Faltering] = []
    waited: list[float] = []
    with served(root, made=faltering(5, logs)) as server:
        client = LogClient(FlightLocation(server.address, retries=1, retry_seconds=0.5), wait=waited.append)
        assert lsns(client) == list(range(300))
    assert logs[0].starts == [0, 10, 20, 30, 40, 50]
    assert waited == [0.5] * 5


def test_who_finds_nobody_waits_twice_as_long_each_time_and_gives_up() -> None:
    waited: list[float] = []
    client = LogClient(FlightLocation("grpc://127.0.0.1:1", retries=3, retry_seconds=0.5), wait=waited.append)
    with pytest.raises(Away, match=r"no log is served at grpc://127.0.0.1:1: nobody listens there.*\[flight\] port"):
        client.heads()
    assert waited == [0.5, 1.0, 2.0]
    with pytest.raises(Away):
        lsns(client)
    assert waited == [0.5, 1.0, 2.0] * 2


class Retried(Exception):
    """The client would read again."""


def test_a_server_that_says_nothing_is_waited_for_so_long(root: str) -> None:
    go_on = threading.Event()
    has_begun = False

    class Silent(ServedLog):
        def batches(self, ticket: Any, caller: Any) -> Iterator[Any]:
            yield next(super().batches(ticket, caller))
            go_on.wait(20)

    def wait(seconds: float) -> None:
        # On a busy machine the first batch too may take longer: it is asked for until it comes.
        if has_begun:
            raise Retried

    with served(
        root, made=lambda location, log, door, **more: LogServer(location, Silent(log.path), door, **more)
    ) as server:
        location = FlightLocation(server.address, retries=1000, read_seconds_max=0.2)
        found = LogClient(location, wait=wait).batches(ALL)
        try:
            next(found)
            has_begun = True
            with pytest.raises(Retried) as retried:
                next(found)
        finally:
            go_on.set()
    silence = retried.value.__context__
    assert isinstance(silence, Away) and "no answer in 0.2 s (readTimeoutMs)" in str(silence)


def test_who_reads_only_some_leaves_nothing_behind(root: str) -> None:
    with served(root, reads=ReadSlots(1, now=time.monotonic)) as server:
        # The server hears of it a moment later: until then it has no place for another.
        client = LogClient(FlightLocation(server.address, retries=1000), wait=lambda seconds: time.sleep(0.01))
        for _ in range(3):
            found = client.batches(ALL)
            next(found)
            found.close()
            assert not [thread for thread in threading.enumerate() if thread.name == "rumq-flight"]
        assert len(lsns(client)) == 300


def test_times_and_bytes_are_looked_up_where_the_log_is(root: str) -> None:
    with served(root) as server:
        client = client_at(server.address)
        assert client.find_time(P0, NOW + 99 * SECOND_US) == 80
        assert client.end_within(P0, 0, 300, 1) == 20
        assert client.end_within(P0, 0, 300, 1 << 30) == 300


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("grpc://h", "grpc://h:8815"),
        ("grpc+tls://h:1", "grpc+tls://h:1"),
        ("grpc://[::1]:2", "grpc://[::1]:2"),
        *((wrong, None) for wrong in ("", "h:1", "mqtt://h", "grpc://", "grpc://h:x", "grpc://h/p", "grpc://u:p@h")),
    ],
)
def test_an_address_is_a_scheme_a_host_and_a_port(text: str, address: str | None) -> None:
    assert maybe_address(text) == address


class Certificates:
    """An authority, and files of what it made."""

    def __init__(self, folder: Path) -> None:
        self.authority = trustme.CA()
        self.server = self.authority.issue_cert("127.0.0.1")
        names = ("ca.pem", "client.pem", "other.pem", "server.pem")
        self.ca, self.client, self.other, self.chain_and_key = (str(folder / name) for name in names)
        self.server.private_key_and_cert_chain_pem.write_to_path(self.chain_and_key)
        self.authority.cert_pem.write_to_path(self.ca)
        self.authority.issue_cert("client.invalid").private_key_and_cert_chain_pem.write_to_path(self.client)
        trustme.CA().cert_pem.write_to_path(self.other)

    def options(self) -> dict[str, Any]:
        chain = b"".join(pem.bytes() for pem in self.server.cert_chain_pems)
        return {"certificates": [(chain, self.server.private_key_pem.bytes())], "tls": True}


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


def test_tls_and_what_does_not_fit_it_is_a_sentence(root: str, certificates: Certificates) -> None:
    with served(root, **certificates.options()) as server:
        assert P0 in client_at(server.address, tls_ca=certificates.ca).heads()
        plain = server.address.replace("grpc+tls", "grpc")
        for address, files, says in (
            (plain, {}, r"TLS \(grpc\+tls://\)"),
            (server.address, {}, "an authority that tlsCa does not have"),
            (server.address, {"tls_ca": certificates.other}, "an authority that tlsCa does not have"),
            (
                server.address.replace("127.0.0.1", "localhost"),
                {"tls_ca": certificates.ca},
                "for another name",
            ),
            (server.address, {"tls_ca": __file__}, r"\(tlsCa\) holds no certificates in PEM"),
            (server.address, {"tls_ca": "/nowhere"}, "/nowhere cannot be read on this machine"),
            (server.address, {"tls_certificate": certificates.ca}, "no certificate and its key"),
        ):
            with pytest.raises(Away, match=says):
                client_at(address, **files).heads()
    with served(root) as server, pytest.raises(Away, match="it speaks no TLS there: write grpc://"):
        client_at(server.address.replace("grpc", "grpc+tls"), tls_ca=certificates.ca).heads()


def test_a_client_certificate_is_wanted_where_an_authority_is_named(root: str, certificates: Certificates) -> None:
    pem = Path(certificates.ca).read_bytes()
    with served(root, authority=pem, **certificates.options()) as server:
        shown = client_at(server.address, tls_ca=certificates.ca, tls_certificate=certificates.client)
        assert P0 in shown.heads()
        with pytest.raises(Away, match=r"client certificate \(tlsCertificate\)"):
            client_at(server.address, tls_ca=certificates.ca).heads()


def test_who_has_answered_is_waited_for_through_a_restart(root: str) -> None:
    """Longer than somebody who never has; and no longer than it is told."""
    waited: list[float] = []
    back: list[bool] = []
    servers = ExitStack()
    server = servers.enter_context(served(root))
    where = FlightLocation(server.address, retries=2, retry_seconds=1.0, away_seconds_max=300.0)
    port = server.port

    def wait(seconds: float) -> None:
        waited.append(seconds)
        if len(waited) == 12 and not back:
            back.append(True)
            again = servers.enter_context(served(root, port=port))
            assert again.port == port

    with servers:
        client = LogClient(where, wait=wait, now=lambda: sum(waited))
        assert client.heads()
        server.close(5)
        assert client.heads()
        assert waited == [1.0, 2.0, 4.0] + [5.0] * 9
    waited.clear()
    with pytest.raises(Away):
        client.heads()
    assert 290 < sum(waited) <= 303
    # A worker of Spark's is told that the driver has had an answer.
    waited.clear()
    told = LogClient(where, wait=waited.append, now=lambda: sum(waited), known=True)
    with pytest.raises(Away):
        lsns(told)
    assert 290 < sum(waited) <= 303
    waited.clear()
    with pytest.raises(Away):
        LogClient(where, wait=waited.append, now=lambda: sum(waited)).heads()
    assert waited == [1.0, 2.0]
