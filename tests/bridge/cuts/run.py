"""Two rumq brokers, the bridge of one of them, and a cutter between: publish both ways, harm, compare the logs."""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import trio

import rumq
from rumq.bridge.counts import FOLDER, read_figures
from rumq.client import Outgoing, Tls, connect
from rumq.embedded.broker import BlockingBroker
from rumq.errors import RumqError
from tests.bridge.cuts.cutter import Cutter
from tests.bridge.cuts.ledger import Found, Logged, compare
from tests.bridge.cuts.transports import Transport
from tests.tries import tries

TOPICS = 3  # of each QoS, each way
BATCH = 20
BATCH_PAUSE_S = 0.01
CUT_BYTES_MAX = 20_000
PAUSE_S_MAX = 0.4  # between two harms: shorter than the bridge needs to connect, and longer
SETTLE_S_MAX = 120.0
VICTIMS = ("bridge", "edge", "centre")
OUT = {f"out/{qos}/{n}": (f"edge/out/{qos}/{n}", qos) for qos in (1, 2) for n in range(TOPICS)}
IN = {f"in/{qos}/{n}": (f"in/{qos}/{n}", qos) for qos in (1, 2) for n in range(TOPICS)}
RULES = ('out/1/# out 1 "" edge/', 'out/2/# out 2 "" edge/', "in/1/# in 1", "in/2/# in 2")

Say = Callable[[str], None]


@dataclass(frozen=True)
class Plan:
    """cuts: of the line; kills: SIGKILL of bridge, edge or centre, in turn; seconds: it ends then, whatever is left

    transport: of the line
    unplugged_seconds: the line takes nothing for so long at the end, and the edge is killed meanwhile; 0: never"""

    cuts: int = 20
    kills: int = 3
    seconds: float = 600.0
    seed: int = 1
    unplugged_seconds: float = 0.0
    transport: Transport = field(default_factory=Transport)


@dataclass
class Outcome:
    found: Found
    cuts: int
    kills: int
    connections: int


def run(plan: Plan, say: Say = lambda _: None) -> Outcome:
    chance = random.Random(plan.seed)
    harms = ["cut"] * plan.cuts + [VICTIMS[n % len(VICTIMS)] for n in range(plan.kills)]
    chance.shuffle(harms)
    with contextlib.ExitStack() as stack:
        transport = plan.transport
        centre = stack.enter_context(rumq.broker(listener=transport.listener))
        cutter = Cutter((centre.host, centre.port))
        stack.callback(cutter.close)
        bridge = {
            "name": "cut", "url": f"{transport.scheme}://127.0.0.1:{cutter.port}", "topics": list(RULES),
            "retry_seconds_max": 0.5, **transport.bridge,
        }  # fmt: skip
        edge = stack.enter_context(rumq.broker(bridge=[bridge]))
        wait_for(lambda: edge.events("bridge.connected"))
        publishers = [
            stack.enter_context(publishing(edge.url, OUT)),
            stack.enter_context(publishing(centre.url, IN, transport.tls)),
        ]
        until, cuts_wanted, kills = time.monotonic() + plan.seconds, 0, 0
        for number, harm in enumerate(harms):
            if time.monotonic() > until:
                break
            if harm == "cut":
                cuts_wanted += 1
                cut(cutter, chance, cuts_wanted)
            else:
                kills += 1
                kill(harm, edge, centre)
            time.sleep(chance.random() * PAUSE_S_MAX)
            if number % 50 == 49:
                sent = sum(each.sent for each in publishers)
                say(f"{number + 1} harms, {cutter.cuts} cuts, {kills} kills, {sent} sent")
        if plan.unplugged_seconds:
            unplug(cutter, edge, plan.unplugged_seconds, say)
        for each in publishers:
            each.end()
        found = settled(edge, centre)
        return Outcome(found, cutter.cuts, kills, len(edge.events("bridge.connected")))


def cut(cutter: Cutter, chance: random.Random, wanted: int) -> None:
    """Until the line was cut so often: one that is not there yet cannot be."""
    size = chance.randrange(CUT_BYTES_MAX)
    for _ in tries(20):
        if cutter.cuts >= wanted:
            return
        cutter.cut_after(size)
        for _ in range(20):
            if cutter.cuts >= wanted:
                return
            time.sleep(0.01)


def unplug(cutter: Cutter, edge: BlockingBroker, seconds: float, say: Say) -> None:
    """Both brokers are published to meanwhile; in the middle of it the edge's power fails."""
    for _ in tries(20):
        if figures(edge).get("up"):
            break
        time.sleep(0.05)
    cutter.unplug()
    say(f"unplugged for {seconds:g} s")
    time.sleep(seconds / 2)
    kill("edge", edge, edge)
    time.sleep(seconds / 2)
    cutter.plug_in()
    say("plugged in")


def kill(victim: str, edge: BlockingBroker, centre: BlockingBroker) -> None:
    """SIGKILL; brokers are started again."""
    if victim == "bridge":
        wait_for(lambda: maybe_bridge(edge)).kill()
        return
    broker = edge if victim == "edge" else centre
    broker.kill()
    broker.restart()


def maybe_bridge(broker: BlockingBroker) -> psutil.Process | None:
    with contextlib.suppress(psutil.Error):
        for each in psutil.Process(broker.events("broker.starting")[-1]["pid"]).children(recursive=True):
            with contextlib.suppress(psutil.Error):
                if "bridge" in each.cmdline():
                    return each
    return None


# --- messages


class Publisher:
    """Publishes numbers to the topics of `names` until it is told to end. sent: acknowledged ones"""

    def __init__(self, url: str | Sequence[str], names: dict[str, tuple[str, int]], tls: Tls | None = None) -> None:
        self._url, self._names, self._tls = url, names, tls
        self._is_ending = threading.Event()
        self.sent = 0
        self._thread = threading.Thread(target=lambda: trio.run(self._publish))
        self._thread.start()

    def end(self) -> None:
        self._is_ending.set()
        self._thread.join()

    async def _publish(self) -> None:
        number = 0
        while not self._is_ending.is_set():
            # A client that gives up is followed by another one: the log says what came of its messages.
            with contextlib.suppress(RumqError, OSError):
                async with connect(self._url, reconnect=True, connect_seconds_max=1.0, tls=self._tls) as client:
                    while not self._is_ending.is_set():
                        batch = []
                        for _ in range(BATCH):
                            topic, (_, qos) = list(self._names.items())[number % len(self._names)]
                            batch.append(Outgoing(topic, b"%d" % number, qos))
                            number += 1
                        with trio.fail_after(30):
                            await client.publish_batch(batch)
                        self.sent += len(batch)
                        await trio.sleep(BATCH_PAUSE_S)


@contextlib.contextmanager
def publishing(
    url: str | Sequence[str], names: dict[str, tuple[str, int]], tls: Tls | None = None
) -> Iterator[Publisher]:
    publisher = Publisher(url, names, tls)
    try:
        yield publisher
    finally:
        publisher.end()


def settled(edge: BlockingBroker, centre: BlockingBroker) -> Found:
    """The ledger, once nothing changes it any more."""
    found, said = Found(), ""
    quiet_since = began = time.monotonic()
    while True:
        found = Found()
        compare(found, logged(edge, "out/#"), logged(centre, "edge/#"), OUT)
        compare(found, logged(centre, "in/#"), logged(edge, "in/#"), IN)
        now = time.monotonic()
        if (saying := repr(found)) != said:
            said, quiet_since = saying, now
        is_done = found.is_right and now - quiet_since > 2
        if is_done or now - quiet_since > 20 or now - began > SETTLE_S_MAX:
            return found
        time.sleep(0.5)


def logged(broker: BlockingBroker, topic_filter: str) -> Logged:
    with contextlib.suppress(LookupError):  # none is there
        rows = rumq.read(broker.data, topic_filter, columns=["topic", "payload"]).to_arrow().to_pylist()
        return [(row["topic"], row["payload"].decode()) for row in rows]
    return []


def figures(broker: BlockingBroker) -> dict[str, Any]:
    return read_figures(Path(broker.data) / FOLDER).get("cut", {})


def wait_for(look: Callable[[], Any]) -> Any:
    """What it is once it is true."""
    for _ in tries(60):
        if found := look():
            return found
        time.sleep(0.02)
    raise AssertionError("it never was")
