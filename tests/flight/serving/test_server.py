"""Any Arrow client reads the log: through real sockets, as docs/guides/spark.md says."""

import json
import shutil
import time
from pathlib import Path
from typing import Any

import jwt
import pyarrow as pa
import pyarrow.flight as fl
import pytest

from commitlog import RealFiles
from commitlog.format.manifest import Manifest
from rumq.auth.credentials.authenticator import Authenticator
from rumq.auth.credentials.tokens import Claims, TokenLogin, parse_keys
from rumq.errors import RumqError
from rumq.flight.client_credentials import basic
from rumq.flight.errors import Failed, NotAllowed, TooManyReads
from rumq.flight.serving.read_slots import ReadSlots
from rumq.flight.serving.served_log import ServedLog
from rumq.flight.serving.server import LogServer
from rumq.flight.tickets import Ticket
from rumq.table.errors import DataLoss
from tests.commitlog.records import NOW
from tests.flight.served import client_at, door_of, rules, served, users
from tests.spark.histories import History
from tests.spark.logs import SECOND_US, Publisher, message, store_at

P0 = "main/g1/p0"


def read(client: Any, command: dict[str, Any], options: Any = None) -> pa.Table:
    """As any client does it: a command, and a ticket for each endpoint."""
    info = client.get_flight_info(fl.FlightDescriptor.for_command(json.dumps(command)), options)
    tables = [client.do_get(endpoint.ticket, options).read_all() for endpoint in info.endpoints]
    assert all(table.schema == info.schema for table in tables)
    return pa.concat_tables(tables) if tables else info.schema.empty_table()


def test_a_command_becomes_tickets_and_those_rows(root: str) -> None:
    with served(root) as server, fl.connect(server.address) as client:
        whole = read(client, {"maxRecordsPerPartition": 70})
        assert whole.column("lsn").to_pylist() == list(range(300))
        assert whole.column("payload").to_pylist() == [b"%d" % n for n in range(300)]
        some = read(client, {"topics": ["plant/1/+"], "columns": ["topic", "payload"], "startingOffsets": {P0: 150}})
        assert some.schema.names == ["topic", "payload"]
        assert some.column("topic").unique().to_pylist() == ["plant/1/temp"]
        assert [int(payload) for payload in some.column("payload").to_pylist()] == list(range(151, 300, 3))
        late = read(client, {"startingTimestamp": str((NOW + 99 * SECOND_US) // 1000), "columns": ["lsn"]})
        assert late.num_rows == 220
        assert read(client, {"startingOffsets": "latest"}).num_rows == 0
        maps = read(client, {"columns": ["properties"], "properties": "map", "endingOffsets": {P0: 2}})
        assert maps.column(0).to_pylist() == [[("n", "again")], []]


def test_partitions_are_listed_with_where_they_begin_and_end(root: str) -> None:
    with served(root) as server, fl.connect(server.address) as client:
        heads = client_at(server.address).heads()
        assert heads == {P0: {"first": 0, "committed": 300, "generation": 1, "last_ts": NOW + 299 * SECOND_US}}
        (listed,) = client.list_flights()
        assert (b"/".join(listed.descriptor.path).decode(), listed.total_records) == (P0, 300)
        assert client.do_get(listed.endpoints[0].ticket).read_all().num_rows == 300
        assert client.get_flight_info(listed.descriptor).schema == listed.schema
        assert {action.type for action in client.list_actions()} == {
            "heads",
            "find_time",
            "end_within",
            "segments",
        }


def test_batches_are_bounded_in_rows_and_bytes(tmp_path: Path) -> None:
    store = store_at(str(tmp_path / "d"), segment_bytes_max=64 << 20)
    publisher = Publisher(store.own[0])
    for count, size in [(30_000, 1), (60_000, 1), (20, 900_000), (10_000, 1)]:
        publisher.chunk([message("a", b"x" * size)] * count)
    # A client id stands in a record as a number, and in every row as it is.
    Publisher(store.own[0], "c" * 60_000).chunk([message("a", b"x")] * 1_000)
    store.close()
    with served(str(tmp_path / "d")) as server:
        found = list(client_at(server.address).batches(Ticket(partition=P0, start=0, end=101_020)))
    assert [lsn for batch in found for lsn in batch.column("lsn").to_pylist()] == list(range(101_020))
    assert max(batch.num_rows for batch in found) <= 65_536
    for name in ("payload", "client_id"):
        assert max(batch.column(name).nbytes for batch in found) <= 9 << 20


def test_what_cannot_be_read_is_a_typed_error_with_its_exact_range(root: str, tmp_path: Path) -> None:
    copied = tmp_path / "data"
    shutil.copytree(root, copied)
    paths = sorted((copied / P0).glob("*.seg"))
    first = int(paths[1].name[:20])
    manifest = Manifest(RealFiles(), str(copied / P0))
    manifest.rewrite([*manifest.load(), {"edit": "first", "lsn": first}])
    manifest.close()
    paths[0].unlink()
    with served(str(copied)) as server, fl.connect(server.address) as raw:
        client = client_at(server.address)
        with pytest.raises(DataLoss, match="retention has removed them") as caught:
            list(client.batches(Ticket(partition=P0, start=3, end=300)))
        assert (caught.value.first, caught.value.next_lsn) == (3, first)
        with pytest.raises(DataLoss, match=f"records 300 to 309 of {P0}") as caught:
            list(client.batches(Ticket(partition=P0, start=first, end=310)))
        with pytest.raises(fl.FlightServerError) as told:
            raw.do_get(fl.Ticket(Ticket(partition=P0, start=3, end=300).to_bytes())).read_all()
        assert json.loads(told.value.extra_info) == {
            "error": "data_loss", "partition": P0, "first": 3, "next": first, "why": "retention has removed them",
        }  # fmt: skip
        tolerant = Ticket(partition=P0, start=0, end=310, columns=("lsn",), failOnDataLoss=False)
        assert sum(batch.num_rows for batch in client.batches(tolerant)) == 300 - first


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        (lambda c: c.do_get(fl.Ticket(b"no JSON")).read_all(), "this ticket cannot be served: expected JSON"),
        (
            lambda c: c.do_get(fl.Ticket(Ticket(partition="main/g1/p9", start=0, end=1).to_bytes())).read_all(),
            "there is no partition 'main/g1/p9'; there are main/g1/p0",
        ),
        (lambda c: read(c, {"tpics": []}), "did you mean topics"),
        (lambda c: read(c, {"startingOffsets": {P0: 301}}), "no more than where the log ends, 300"),
        (lambda c: list(c.do_action("drop")), "there is no 'drop'; there are heads"),
        (lambda c: list(c.do_action(("find_time", b"{}"))), "missing required field"),
    ],
)
def test_a_bad_request_is_one_sentence(root: str, ask: Any, says: str) -> None:
    with served(root) as server, fl.connect(server.address) as client:
        with pytest.raises(fl.FlightServerError, match=says) as caught:
            ask(client)
        assert "Traceback" not in str(caught.value)
        assert server.told == []


def test_nothing_is_told_of_a_bug_but_that_it_is_one(root: str) -> None:
    class Broken(ServedLog):
        def heads(self) -> Any:
            raise ZeroDivisionError(self.path)

        def batches(self, ticket: Any, caller: Any) -> Any:
            yield next(super().batches(ticket, caller))
            raise ZeroDivisionError(self.path)

    with served(
        root, made=lambda location, log, door, **more: LogServer(location, Broken(log.path), door, **more)
    ) as server:
        client = client_at(server.address)
        for ask in (client.heads, lambda: list(client.batches(Ticket(partition=P0, start=0, end=300)))):
            with pytest.raises(Failed) as caught:
                ask()
            assert str(caught.value) == "rumq: the server failed: a bug, see its events"
        assert [name for name, _ in server.told] == ["flight.failed"] * 2


def test_a_topic_that_may_not_be_replayed_never_leaves(root: str) -> None:
    with served(root, door_of(users("anna", "ben"), rules())) as server, fl.connect(server.address) as client:

        def options(user: str, password: str = "secret") -> Any:
            return fl.FlightCallOptions(headers=[(b"authorization", basic(user, password).encode())])

        table = read(client, {}, options("anna"))
        assert set(table.column("topic").to_pylist()) == {"plant/1/temp"} and table.num_rows == 100
        # The ticket of one is no permission of another, nor of nobody.
        ticket = fl.Ticket(Ticket(partition=P0, start=0, end=300).to_bytes())
        with pytest.raises(fl.FlightUnauthorizedError, match="'ben' to replay any topic"):
            client.do_get(ticket, options("ben")).read_all()
        with pytest.raises(fl.FlightUnauthorizedError, match="plant/2/#"):
            read(client, {"topics": ["plant/2/#"]}, options("anna"))
        for each in (None, options("anna", "wrong"), options("carl")):
            for ask in (
                lambda o: client.do_get(ticket, o).read_all(), lambda o: read(client, {}, o),
                lambda o: list(client.do_action("heads", o)), lambda o: list(client.list_flights(options=o)),
            ):  # fmt: skip
                with pytest.raises(fl.FlightUnauthenticatedError) as caught:
                    ask(each)
                assert "secret" not in str(caught.value)
        why = [fields["why"] for name, fields in server.told if name == "flight.refused"]
        assert len(why) == 12 and not any("secret" in each for each in why)
        assert {fields["peer"] for _, fields in server.told} == {"127.0.0.1"}


def test_what_only_the_lake_has_is_under_the_same_rules(tmp_path: Path) -> None:
    history = History(tmp_path)
    history.publish(60)
    history.export()
    history.remove(1)
    kept, end = history.view(0).first_lsn, history.view(0).end_lsn
    history.close()
    ticket = Ticket(partition=P0, start=0, end=end, columns=("topic", "lsn"))
    with served(history.data, door_of(users("anna"), rules())) as server:
        secret = tmp_path / "secret"
        secret.write_text("secret")
        client = client_at(server.address, username="anna", password_file=str(secret))
        table = pa.Table.from_batches(client.batches(ticket))
    assert set(table.column("topic").to_pylist()) == {"plant/1/temp", "plant/1/speed"}
    lsns = table.column("lsn").to_pylist()
    assert lsns == sorted(lsns) and 0 < lsns[0] < kept <= lsns[-1]


def test_hands_are_shaken_as_flight_does_it(root: str) -> None:
    with served(root, door_of(users("anna"))) as server, fl.connect(server.address) as client:
        header = client.authenticate_basic_token("anna", "secret")
        assert read(client, {}, fl.FlightCallOptions(headers=[header])).num_rows == 300
        with pytest.raises(fl.FlightUnauthenticatedError, match="wrong user name, password or token"):
            client.authenticate_basic_token("anna", "wrong")


def test_more_readers_than_may_be_come_back_later(root: str) -> None:
    with served(root, reads=ReadSlots(0, now=time.monotonic)) as server:
        with pytest.raises(TooManyReads):
            list(client_at(server.address).batches(Ticket(partition=P0, start=0, end=300)))
        assert client_at(server.address).heads()


def test_files_of_secrets_are_read_where_they_are_used(root: str, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    with served(root, door_of(users("anna"))) as server:
        client = client_at(server.address, username="anna", password_file=str(secret))
        with pytest.raises(RumqError, match="secret cannot be read on this machine: No such file"):
            client.heads()
        secret.write_text("wrong\n")
        with pytest.raises(NotAllowed, match="wrong user name, password or token"):
            client.heads()
        secret.write_text("secret\n")
        assert P0 in client.heads()
    key = "k" * 32
    authenticator = Authenticator([TokenLogin(parse_keys(key, "keys"), Claims())])
    with served(root, door_of(authenticator)) as server:
        client = client_at(server.address, token_file=str(secret))
        with pytest.raises(NotAllowed, match="wrong user name, password or token"):
            client.heads()
        secret.write_text(jwt.encode({"sub": "anna"}, key, "HS256"))
        assert P0 in client.heads()
