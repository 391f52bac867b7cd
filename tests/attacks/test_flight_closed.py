# ruff: noqa: E402
"""Flight is to stay open: attacks by many calls at once that show wrong secrets, or that do not take what they get."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed (pip install 'rumq[flight]')")
import pyarrow.flight as fl

from rumq.flight.client_credentials import basic
from rumq.flight.errors import TooManyReads
from rumq.flight.serving.read_slots import ReadSlots
from rumq.flight.tickets import Ticket
from tests.flight.served import client_at, door_of, served, users
from tests.spark.logs import Publisher, message, store_at, write_example

SECONDS_MAX = 60.0


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> str:
    made = str(tmp_path_factory.mktemp("closed") / "data")
    write_example(made)
    return made


@contextmanager
def besieged(address: str, count: int, attack: Callable[[Any, int], Any]) -> Iterator[None]:
    """Threads that attack again and again, each with a connection of its own."""
    over = threading.Event()
    begun = threading.Barrier(count + 1)

    def go(number: int) -> None:
        first = True
        with fl.connect(address) as client:
            while not over.is_set():
                if first:
                    begun.wait(SECONDS_MAX)
                    first = False
                try:
                    attack(client, number)
                except (fl.FlightError, pa.ArrowException):
                    over.wait(0.01)

    with ThreadPoolExecutor(count) as pool:
        running = [pool.submit(go, number) for number in range(count)]
        try:
            begun.wait(SECONDS_MAX)
            yield
        finally:
            over.set()
        for each in running:
            each.result(SECONDS_MAX)


def held_door(*names: str) -> tuple[Any, threading.Event, threading.Semaphore]:
    """A door whose refusals wait until the event; the semaphore counts them."""
    free, held = threading.Event(), threading.Semaphore(0)

    def wait(seconds: float) -> None:
        held.release()
        free.wait(SECONDS_MAX)

    return door_of(users(*names), wait=wait), free, held


def test_wrong_handshakes_do_not_keep_out_right_ones(root: str) -> None:
    """24 threads shake hands with a wrong password; one with the right one comes in by a handshake, and reads."""
    door, free, held = held_door("anna")
    with served(root, door) as server:
        try:
            with besieged(server.address, 24, lambda c, _: c.authenticate_basic_token("anna", "wrong")):
                for _ in range(16):
                    assert held.acquire(timeout=SECONDS_MAX)
                with fl.connect(server.address) as client:
                    header = client.authenticate_basic_token("anna", "secret")
                    options = fl.FlightCallOptions(headers=[header])
                    assert list(client.do_action("heads", options))
                    worthless = client.authenticate_basic_token("anna", "wrong too")
                    assert b"wrong" not in worthless[1]
                    free.set()
                    with pytest.raises(fl.FlightUnauthenticatedError, match="wrong user name, password"):
                        list(client.do_action("heads", fl.FlightCallOptions(headers=[worthless])))
        finally:
            free.set()


def test_wrong_calls_do_not_keep_out_another_user_of_their_address(root: str) -> None:
    door, free, held = held_door("anna", "ben")
    with served(root, door) as server:
        wrong = fl.FlightCallOptions(headers=[(b"authorization", basic("anna", "wrong").encode())])
        right = fl.FlightCallOptions(headers=[(b"authorization", basic("anna", "secret").encode())])
        with fl.connect(server.address) as client:
            assert list(client.do_action("heads", right))
            try:
                with besieged(server.address, 24, lambda c, _: list(c.do_action("heads", wrong))):
                    for _ in range(16):
                        assert held.acquire(timeout=SECONDS_MAX)
                    ben = fl.FlightCallOptions(headers=[(b"authorization", basic("ben", "secret").encode())])
                    assert list(client.do_action("heads", ben))
                    assert list(client.do_action("heads", right))  # it was right before
                    with pytest.raises(fl.FlightUnauthenticatedError, match="try again later"):
                        list(client.do_action("heads", wrong))
                    free.set()
            finally:
                free.set()


def test_readers_that_do_not_read_hold_no_place_of_others(tmp_path: Any) -> None:
    """As many as may read at once take nothing of what they get; another reads on."""
    store = store_at(str(tmp_path / "d"), segment_bytes_max=64 << 20)
    Publisher(store.own[0]).chunk([message("a", b"x" * 900_000)] * 120)
    store.close()
    ticket = Ticket(partition="main/g1/p0", start=0, end=120, columns=("lsn", "payload"))
    clock = [0.0]
    with served(str(tmp_path / "d"), reads=ReadSlots(4, now=lambda: clock[0])) as server:
        stalled = [fl.connect(server.address) for _ in range(4)]
        readers = [client.do_get(fl.Ticket(ticket.to_bytes())) for client in stalled]
        for reader in readers:
            reader.read_chunk()
        give_up = time.monotonic() + SECONDS_MAX
        while time.monotonic() < give_up:
            clock[0] += 60.0
            try:
                found = list(client_at(server.address).batches(ticket))
                break
            except TooManyReads:
                time.sleep(0.02)
        assert sum(batch.num_rows for batch in found) == 120
        for reader, client in zip(readers, stalled, strict=True):
            reader.cancel()
            client.close()


@pytest.mark.long
def test_one_thousand_wrong_calls_at_once(root: str) -> None:
    """A thousand calls with as many user names show wrong passwords for some seconds; a handshake still comes in."""
    with served(root, door_of(users("anna"), wait=time.sleep)) as server:

        def attack(client: Any, number: int) -> None:
            client.authenticate_basic_token(f"user{number}", "wrong")

        with besieged(server.address, 200, attack), fl.connect(server.address) as client:
            for _ in range(5):
                header = client.authenticate_basic_token("anna", "secret")
                assert list(client.do_action("heads", fl.FlightCallOptions(headers=[header])))
