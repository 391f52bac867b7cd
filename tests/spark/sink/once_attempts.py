"""Attempts at the rows of one partition against a broker in memory, cut off where a test says."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count

import pyarrow as pa

from rumq.mqtt.packets import Connect
from rumq.sink.exactly_once import ExactlyOnce
from rumq.sink.progress_marker import ProgressMarker
from rumq.sink.publish_encoder import PublishEncoder, encode
from rumq.sink.sink_protocol import Wait
from tests.spark.sink.broker_model import Connection, ModelBroker

CLIENT, STATE = "rumq-spark-q-0", "rumq/spark/q/0"


class Cut(Exception):
    """The attempt ends here: its process was killed, or its connection cut."""


def rows(batch: int, count_: int) -> list[bytes]:
    return [b"%d/%d" % (batch, n) for n in range(count_)]


def frames(payloads: list[bytes], a_batch: int) -> Iterator[PublishEncoder]:
    for at in range(0, len(payloads), a_batch):
        part = pa.array(payloads[at : at + a_batch], pa.binary())
        yield encode(pa.RecordBatch.from_arrays([part], ["payload"]), topic="t", qos=2)


class Attempts:
    """packets: how many of those that wait the broker takes now, or the attempt gets, 0 to most; comps: likewise, of
    PUBCOMPs; a_batch: rows a batch of Arrow

    taken: packets that the broker took of the last attempt
    """

    def __init__(
        self, broker: ModelBroker, *, publisher: type[ExactlyOnce] = ExactlyOnce, repeat_in_doubt: bool = False,
        a_batch: int = 16,
        packets: Callable[[int], int] = lambda most: most, comps: Callable[[int], int] = lambda most: most,
    ) -> None:  # fmt: skip
        self.broker, self._publisher, self._repeat_in_doubt = broker, publisher, repeat_in_doubt
        self._packets, self._comps = packets, comps
        self._nonces, self._a_batch = count(), a_batch
        self.taken = 0

    def run(self, payloads: list[bytes], batch: int, *, cut_after: int | None = None) -> int:
        """One attempt; returns how many rows it says there are.

        raises: Cut once the broker took so many packets; if it is slow, once it has been sent another one"""
        self.taken, self._cut_after = -1, cut_after
        self._count()
        given = frames(payloads, self._a_batch)
        found: ProgressMarker | None = None
        for anew in (False, True):
            connect = Connect(CLIENT, 5, anew, properties={"session_expiry_interval": 99})
            connection = Connection(self.broker, connect)
            self._count()
            once = self._publisher(
                connection.connack, batch, STATE, f"probe-{next(self._nonces)}", repeat_in_doubt=self._repeat_in_doubt,
                clean_session=anew,
                found=found,
            )  # fmt: skip
            self._drive(once, connection, given)
            if not once.clean_start_wanted:
                break
            found = once.found
        return once.rows

    def _count(self) -> None:
        self.taken += 1
        if self.taken == self._cut_after and not self.broker.slow:
            raise Cut

    def _drive(self, once: ExactlyOnce, connection: Connection, given: Iterator[PublishEncoder]) -> None:
        while (wait := self._step(once, connection)) is not Wait.DONE:
            if wait is Wait.ROWS:
                once.add_rows(next(given, None))
            self._work(connection, self._packets(len(connection.arrived)))
            once.receive(connection.output(self._packets, self._comps))
            if wait is Wait.PACKETS:
                # Else it might wait for ever.
                self._work(connection, 1)
        self._work(connection, len(connection.arrived))

    def _step(self, once: ExactlyOnce, connection: Connection) -> Wait:
        wait = once.step()
        for chunk in once.output():
            connection.send(bytes(chunk))
        return wait

    def _work(self, connection: Connection, packets: int) -> None:
        for _ in range(min(packets, len(connection.arrived))):
            if self.taken == self._cut_after:
                raise Cut
            connection.work()
            self._count()
