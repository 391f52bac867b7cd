"""The power goes at any call while snapshots are written and what is before them is removed: a start finds every
session, order and kept value that was durable, as it was then or later. The fault model is that of
commitlog/testing/simulated_files.py."""

from random import Random

from commitlog import StreamSpec
from commitlog.testing.simulated_device import Choose
from commitlog.testing.simulated_files import SimulatedFiles
from rumq.session.journal import entries as e
from tests.commitlog.records import index, write
from tests.shards.recovery.world import Run

STATE = StreamSpec("_state", (), 1, "disk", 1 << 15, 1 << 30)  # a snapshot each four pages
# Sessions' expiry in seconds; orders; kept values.
State = tuple[dict[str, int], dict[tuple[str, str, str], e.StandingOrder], dict[bytes, bytes]]
SEED = 20_261_128


class Life:
    """A journal over several runs. said: its state after each turn; durable: the first of those that a start may find

    judged: states of the disk after a power loss; removals: how often segments went, over all runs"""

    def __init__(self, chance: Random, *, sample: int) -> None:
        self.chance, self.sample = chance, sample
        self.files = SimulatedFiles()
        self.judged = self.removals = self.runs = 0
        self.said: list[State] = [({}, {}, {})]
        self.durable = 0
        self._open()

    def _open(self) -> None:
        self.files.before_call = self._lose
        self.run = Run(self.files, self.runs, STATE)
        self.runs += 1

    def _lose(self) -> None:
        """The power would go now."""
        for _ in range(self.sample):
            self.judge(self.chance.randrange)
        self.judge(lambda n: 0)

    def judge(self, choose: Choose) -> None:
        found = state_of(Run(self.files.after_power_loss(choose), 900 + self.judged, STATE))
        assert found in self.said[self.durable :], "a state that was never said, or is older than what was durable"
        self.judged += 1

    def turn(self) -> None:
        """A second: somebody comes, goes for good or is banned; a value is kept, or no longer; the journal is written;
        what may go is removed."""
        run, chance = self.run, self.chance
        run.hand.monotonic += 1.0
        name = f"c{chance.randrange(6)}"
        session = run.find(name)
        if session is None:
            run.session(name, chance.randrange(1000, 2000))
        elif chance.randrange(2):
            run.registry.end(session)
            run.recorder.ended(session)
        order = e.StandingOrder("ban", "client", f"o{chance.randrange(3)}", run.hand.now_us + chance.randrange(99), 9e9)
        run.orders[order.what, order.kind, order.name] = order
        kept = e.KeptValue(b"k%d" % chance.randrange(3), b"%d" % chance.randrange(99) if chance.randrange(3) else b"")
        run.kept = {name: value for name, value in (run.kept | {kept.name: kept.value}).items() if value}
        self.said.append(state_of(run))
        run.journal.write_standing([order, kept], run.hand.now_us)
        run.journal.end_turn()
        self.remove()
        if chance.randrange(3):  # else the disk is slow: parts of a snapshot wait for it together
            assert write(run.journal.partition, small=bool(chance.randrange(2)))
            self.durable = len(self.said) - 1
            self.remove()

    def remove(self) -> None:
        partition = self.run.journal.partition
        index(partition)
        removal = self.run.journal.take_removal()
        if removal is not None:
            removal.run()
            partition.removed(removal)
            self.removals += removal.done

    def kill(self) -> None:
        self.said[self.durable + 1 :] = []
        self.files = self.files.after_kill()
        self._open()


def state_of(run: Run) -> State:
    sessions = {session.client_id: session.expiry_seconds for session in run.registry.sessions.values()}
    return sessions, dict(run.orders), dict(run.kept)


def test_the_power_may_go_at_any_call_of_a_snapshot_and_of_the_removal_behind_it() -> None:
    life = Life(Random(SEED), sample=2)
    while life.removals < 4:
        life.turn()
    assert life.judged > 200


def test_a_snapshot_goes_over_the_end_of_a_run() -> None:
    chance = Random(SEED + 1)
    life = Life(chance, sample=1)
    for _ in range(12):
        for _ in range(chance.randrange(1, 9)):
            life.turn()
        life.kill()
    assert life.removals > 4
