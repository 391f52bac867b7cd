"""Two brokers that mirror each other exactly once, while each process is killed in turn. docs/guides/mirrors.md."""

import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow", reason="pyarrow is not installed (pip install 'rumq[flight]')")

from rumq.errors import RumqError
from rumq.flight.tickets import Ticket
from rumq.mirror.partition_mirror import MirrorRules, PartitionMirror
from rumq.mirror.position import PositionFile
from rumq.sink.sink_connection import publish_all
from rumq.sink.sink_options import parse_sink_options
from tests.broker_process import ENVIRONMENT, Rumqd
from tests.cli.conftest import rumqd
from tests.flight.served import client_at

COUNT = 1_500
SECONDS_MAX = 90.0


class Site:
    """A broker with its Flight server, on the same ports at each start."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        streams = 'stream=[{name="main", filters=["#"], partitions=2}]'
        self.broker = Rumqd(
            folder / name, "--set", "flight.port=-1", "--set", "flight.host=127.0.0.1", "--set", streams
        )
        self.broker.start()
        flight = self.broker.heard(lambda event: event.get("protocol") == "flight")["port"]
        self.port, self.flight = self.broker.address.port, f"grpc://127.0.0.1:{flight}"
        self.broker.flags = (*self.broker.flags, "--port", str(self.port), "--set", f"flight.port={flight}")

    def publish(self, first: int) -> list[bytes]:
        told = [b"%s-%d" % (self.name.encode(), n) for n in range(first, first + COUNT)]
        for topic, part in (("plant/1", told[::2]), ("plant/2", told[1::2])):
            sent = rumqd("pub", topic, "-l", "-q", "1", "--port", str(self.port), stdin=b"\n".join(part))
            assert sent.status == 0, sent.err
        return told

    def stored(self) -> Counter[bytes]:
        """How often it has each payload below plant/."""
        client = client_at(self.flight, retries=3)
        found: Counter[bytes] = Counter()
        try:
            for name, head in client.heads().items():
                ticket = Ticket(
                    partition=name, start=head["first"], end=head["committed"], columns=("payload",),
                    topics=("plant/#",),
                )  # fmt: skip
                for batch in client.batches(ticket):
                    found.update(batch.column("payload").to_pylist())
        finally:
            client.close()
        return found


class Mirroring:
    """`rumqd mirror` as a process."""

    def __init__(self, source: Site, target: Site, folder: Path) -> None:
        name = f"{source.name}-to-{target.name}"
        self._command = [
            sys.executable, "-m", "rumq", "mirror", "--name", name, "--source", source.flight,
            "--target", f"mqtt://127.0.0.1:1,mqtt://127.0.0.1:{target.port}", "--source-site", source.name,
            "--target-site", target.name, "--positions", str(folder / name), "--once",
        ]  # fmt: skip
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(self._command, env=ENVIRONMENT, stderr=subprocess.DEVNULL)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture
def sites(tmp_path: Path) -> Iterator[tuple[Site, Site]]:
    found: list[Site] = []
    try:
        for name in "ab":
            found.append(Site(name, tmp_path))
        yield found[0], found[1]
    finally:
        for site in found:
            site.broker.end()


def wait_until(what: Callable[[], bool]) -> None:
    until = time.monotonic() + SECONDS_MAX
    while not what():
        assert time.monotonic() < until
        time.sleep(0.1)


def has(site: Site, wanted: int) -> bool:
    try:
        return sum(site.stored().values()) >= wanted
    except RumqError:
        return False  # its server is not back yet


@pytest.mark.parametrize("once", [True, False])
def test_a_batch_that_was_stored_and_not_written_down_is_repeated(
    sites: tuple[Site, Site], tmp_path: Path, once: bool
) -> None:
    """As after a kill at the worst moment: exactly once stores nothing again, at least once all of it."""
    one, other = sites
    told = one.publish(0)
    to = parse_sink_options({"broker": f"mqtt://127.0.0.1:{other.port}"})
    rules = MirrorRules("m", "a", "b", (to,), once=once)

    def killed_behind(*arguments: Any) -> int:
        publish_all(*arguments)
        raise OSError("killed")

    client = client_at(one.flight, retries=3)
    for partition in ("main/g1/p0", "main/g1/p1"):
        first = PartitionMirror(rules, partition, client, PositionFile(tmp_path, partition), killed_behind)
        head = client.heads()[partition]
        if head["committed"] == head["first"]:
            continue
        with pytest.raises(OSError, match="killed"):
            first.step()
        again = PartitionMirror(rules, partition, client, PositionFile(tmp_path, partition))
        assert again.next_lsn == head["first"]
        while again.step():
            pass
    wait_until(lambda: has(one, len(told)) and has(other, len(told) if once else len(told) + 1))
    if once:
        assert other.stored() == Counter(told)
    else:
        assert set(other.stored()) == set(told)


@pytest.mark.long
@pytest.mark.timeout(400)
def test_two_brokers_have_every_message_once_whoever_is_killed(sites: tuple[Site, Site], tmp_path: Path) -> None:
    """It does not echo either: what came from the other side does not go back."""
    one, other = sites
    mirrors = [Mirroring(one, other, tmp_path), Mirroring(other, one, tmp_path)]
    told: list[bytes] = []
    try:
        for number, killed in enumerate((mirrors[0], other.broker, one.broker, mirrors[1])):
            told += one.publish(number * COUNT) + other.publish(number * COUNT)
            most = len(told) - COUNT + 1  # in the middle of what they copy
            wait_until(lambda most=most: has(one, most) or has(other, most))  # type: ignore[misc]
            killed.kill()
            if isinstance(killed, Rumqd):
                killed.wait_for_death(20.0)
            killed.start()
        for site in sites:
            wait_until(lambda site=site: has(site, len(told)))  # type: ignore[misc]
        told += one.publish(10 * COUNT)
        for site in sites:
            wait_until(lambda site=site: has(site, len(told)))  # type: ignore[misc]
        for site in sites:
            assert site.stored() == Counter(told)
    finally:
        for mirror in mirrors:
            mirror.kill()
