"""One live run: a cluster, clients, harms one after another, then the end: drained, replayed, compared.

Which harms come, and to whom, follows from the seed; when exactly they hit does not."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from tests.cluster.live.checker import (
    acknowledged_nowhere,
    check_copies,
    check_replays,
    replay,
    settled_copies,
)
from tests.cluster.live.cluster import LiveCluster
from tests.cluster.live.gaps import Gap, gap_of
from tests.cluster.live.harm import ETCD_AWAY_S, IN_NAMESPACES, ON_SMALL_DISKS, Harm, Scene
from tests.cluster.live.network import Network
from tests.cluster.live.time_travel import BACK_IN_TIME, EVERY_KIND
from tests.cluster.live.workload import Doors, Workload
from tests.conformance.peer import Ended
from tests.faults.kill.ledger import Ledger

QUIET_S = 0.5  # before a harm: what a gap begins from
BEFORE_RESTART = 0.75  # of the time that the dead stay dead belongs to the gap; what follows, to their return
RECOVERY_S = 30.0
END_S = 60.0
TMPFS_BYTES = 512 << 20  # of each node: 50 harms write some 100 MiB


@dataclass
class Result:
    """faults: what must not be; gaps: of each harm; acknowledged: messages; lost: of these, on no disk;
    reads: of retained messages, each compared with what was acknowledged before it"""

    seed: int
    faults: list[str] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)
    harms: list[str] = field(default_factory=list)
    acknowledged: int = 0
    lost: int = 0
    reads: int = 0

    def report(self) -> str:
        told = "\n".join(self.faults[:30])
        return (
            f"seed {self.seed}: {len(self.harms)} harms, {self.acknowledged:,} acknowledged, {self.lost} lost, "
            f"{self.reads:,} reads of retained messages, {len(self.faults)} faults\n{told}\n"
            f"harms: {'; '.join(self.harms)}"
        )


class LiveRun:
    """kinds: names of `EVERY_KIND`, taken in turn in an order of the seed; away_s: how long etcd is away

    round_trip_s: between members of different numbers, as if n1 and etcd1 were in one data centre, n2 and etcd2 in the
    next one; calm_s: before each harm. After terms of less than 5 s followers are more patient (R14)"""

    def __init__(
        self, data: Path, seed: int, kinds: Sequence[str], *, nodes: int = 3, publishers: int = 6, subscribers: int = 3,
        settings: Sequence[str] = (), away_s: float = ETCD_AWAY_S, round_trip_s: float = 0.0,
        calm_s: float = QUIET_S, tell: Callable[[str], None] = lambda line: None,
    ) -> None:  # fmt: skip
        self.data, self.kinds, self.tell, self._calm_s = data, list(kinds), tell, calm_s
        self.random = random.Random(seed)
        self.result = Result(seed)
        self.ledger = Ledger()
        names = [f"n{number + 1}" for number in range(nodes)] + [f"etcd{number + 1}" for number in range(3)]
        self.network = Network(names) if round_trip_s or set(kinds) & set(IN_NAMESPACES) else None
        self._delays = delays_of(names, round_trip_s)
        small = TMPFS_BYTES if set(kinds) & set(ON_SMALL_DISKS) else 0
        self.live = LiveCluster(data, nodes=nodes, network=self.network, tmpfs_bytes=small, settings=settings)
        self.scene = Scene(self.live, self.random, away_s)
        self.workload = Workload(Doors(self.live.addresses, seed), publishers, subscribers, self.ledger)

    def run(self, harms: int) -> Result:
        with ExitStack() as ending:
            ending.callback(self.live.remove)
            if self.network is not None:
                ending.callback(self.network.remove)
                self.network.make()
                if self._delays:
                    self.network.delay(self._delays)
            ending.callback(self.live.stop)
            self.live.start()
            ending.callback(self.workload.end)
            self.workload.start()
            if self._recovered("the start", RECOVERY_S):
                for number in range(harms):
                    if not self._harm(number):
                        break
            self._end()
        self.result.faults += self.ledger.faults
        self.result.acknowledged = len(self.ledger.acknowledged)
        self.result.reads = sum(each.history.reads for each in self.workload.registers)
        return self.result

    def _harm(self, number: int) -> bool:
        """Harm, heal, and wait until every publisher goes on; False if one does not."""
        if number % len(self.kinds) == 0:
            self.random.shuffle(self.kinds)
        kind = self.kinds[number % len(self.kinds)]
        self.workload.go_home()
        if not self._recovered(f"before {kind}", RECOVERY_S):
            return False
        time.sleep(self._calm_s)
        nodes = [each.client.node for each in self.workload.publishers]
        harm = EVERY_KIND[kind](self.scene)
        harm.healed = max(time.monotonic(), harm.began + BEFORE_RESTART * self.live.cluster.restart_seconds)
        what = f"{harm.kind} {harm.what}"
        self.result.harms.append(what)
        recovered = self._recovered(what, RECOVERY_S) and self._all_are_back(what)
        # Acknowledgements that were on their way when the harm began come after it: the gap is looked for up to here.
        harm.ends = time.monotonic()
        harm.healed = min(harm.healed, harm.ends)
        recovered = recovered and self._recovered(f"after {what}", RECOVERY_S)
        gap = self._gap(harm, nodes)
        self.result.gaps.append(gap)
        silent = f", at the return {gap.return_s:.3f} s"
        silent += f", silent {gap.silent_s:.3f} s" if gap.silent_s else ""
        self.tell(f"{number + 1}: {gap.kind} {gap.what}: gap {gap.seconds:.3f} s{silent}")
        return recovered

    def _recovered(self, after: str, seconds: float) -> bool:
        late = self.workload.wait_for_acks(seconds)
        if late:
            self.result.faults.append(f"{after}: no acknowledgement for {' '.join(late)} in {seconds:g} s")
        return not late

    def _all_are_back(self, after: str) -> bool:
        """Every member lives, every node serves clients of every shard, no copy is doubted: the next harm finds a whole
        cluster. Two of three disks lost in one second, before a leader has filled the first again, are too many."""
        until = time.monotonic() + RECOVERY_S
        while time.monotonic() < until:
            if (
                all(each.is_alive for each in self.live.cluster.members)
                and not (missing := self.live.all_serve(2.0))
                and (after.split()[0] not in BACK_IN_TIME or not (missing := self.live.doubted()))
            ):
                return True
            time.sleep(0.1)
        dead = [f"{each.name} is dead" for each in self.live.cluster.members if not each.is_alive]
        self.result.faults.append(f"{after}: after {RECOVERY_S:g} s: {'; '.join(dead or missing)}")
        return False

    def _gap(self, harm: Harm, nodes: Sequence[int]) -> Gap:
        gaps, silent, back = [0.0], [0.0], [0.0]
        for node, publisher in zip(nodes, self.workload.publishers, strict=True):
            of_it = gap_of(publisher.acked_at, harm.began, harm.healed)
            (silent if node in harm.silent else gaps).append(of_it)
            if node not in harm.silent:
                back.append(gap_of(publisher.acked_at, harm.healed, harm.ends))
        return Gap(harm.kind, harm.what, max(gaps), max(silent), max(back))

    def _end(self) -> None:
        faults, topics = self.result.faults, len(self.workload.publishers)
        faults += self.workload.drain(END_S)
        try:
            self.tell("drained")
            faults += self.workload.finish(END_S)
            self.tell("every subscriber has everything")
            replays = {
                node.name: replay(address, topics, END_S)
                for node, address in zip(self.live.nodes, self.live.addresses, strict=True)
            }
        except (AssertionError, OSError, Ended) as fault:
            faults.append(f"the end: {fault!r}")
            replays = {}
        self.tell("replayed through every node")
        copies = settled_copies({node.name: node.data for node in self.live.nodes}, 20.0)
        self.result.lost = len(acknowledged_nowhere(copies, self.ledger))
        faults += check_copies(copies, self.ledger)
        faults += check_replays(replays, copies, self.ledger)
        for subscriber in self.workload.subscribers:
            faults += self.ledger.check_subscriber(subscriber.name, subscriber.qos)


def delays_of(names: Sequence[str], round_trip_s: float) -> dict[tuple[str, str], float]:
    """Seconds one way for each pair that is not in one data centre; nothing for no time."""
    pairs = [(one, other) for one in names for other in names if one[-1] != other[-1]]
    return dict.fromkeys(pairs, round_trip_s / 2) if round_trip_s else {}
