"""Faults of the rules, planted one at a time into the loaded modules: the runs must find each within some seeds.

A fault that no run finds would mean that the simulation proves nothing about its rule."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

CORES = "rumq.cluster.replication."
HERE = "tests.cluster.simulation."


class Line(NamedTuple):
    module: str
    right: str
    wrong: str


class Mutant(NamedTuple):
    """rule: of docs/explanation/replication.md; first: a seed whose run fails; seeds_max: within so many from 0 on,
    one is found; packs: in a run in which copies pack their segments"""

    name: str
    rule: str
    lines: list[Line]
    first: int = 0
    seeds_max: int = 1000
    packs: bool = False


MUTANTS = [
    Mutant(
        "acknowledgement before the sync", "R6",
        [
            Line(
                HERE + "disk",
                "        if self.sync_is_real:\n            for part",
                "        if False:\n            for part",
            )
        ],
    ),
    Mutant(
        "the leader counts itself before its sync", "R6",
        [
            Line(
                HERE + "leader", "        self._send_on(partition)\n        self._sync()\n",
                "        self._send_on(partition)\n        self.core.written(partition, lsn + 1)\n"
                "        self._sync()\n",
            )
        ], first=1,
    ),
    Mutant(
        "a promise is lost in a crash", "R2",
        [
            Line(
                HERE + "disk", "        self._disk.note = self._note\n",
                "        lost = self._disk.note\n"
                "        self._disk.note = self._note._replace(promised=max(lost.promised, self._note.opened))\n",
            )
        ], first=3623,
    ),
    Mutant(
        "the longest log wins", "R3",
        [
            Line(
                CORES + "standby.adoption",
                "latest = {peer: each for peer, each in promised.items() if each.opened == best}",
                "latest = dict(promised)",
            ),
            Line(CORES + "standby.adoption", "if own.opened == best and ends[node]", "if ends[node]"),
        ], first=14,
    ),
    Mutant(
        "the log with the highest promise wins", "R3",
        [
            Line(
                CORES + "standby.standby_core",
                "        self._reply(link, promised_here(epoch, self._state, self._logs))\n",
                "        self._reply(link, m.Promised(epoch, was, self._logs.ends(), str(was)))\n",
            ),
            Line(
                CORES + "standby.standby_core", "        self._state.promise(epoch, message.term, message.forced)\n",
                "        was = self._state.promised\n"
                "        self._state.promise(epoch, message.term, message.forced)\n",
            ),
        ],
    ),
    Mutant(
        "acknowledgements of followers that have not opened the term count", "R7",
        [
            Line(
                CORES + "leader_core",
                "            if follower.has_opened:\n                self._commit(message.partition)\n",
                "            self._commit(message.partition)\n",
            ),
            Line(
                CORES + "leader_core", "for peer, f in self._followers.items() if f.has_opened}",
                "for peer, f in self._followers.items()}",
            ),
        ], first=1169,
    ),
    Mutant(
        "the term is open once a majority has promised it", "R4",
        [
            Line(
                CORES + "leader_core",
                "            if follower.has_opened:\n                self._commit(message.partition)\n",
                "            self._commit(message.partition)\n",
            ),
            Line(
                CORES + "leader_core", "for peer, f in self._followers.items() if f.has_opened}",
                "for peer, f in self._followers.items()}",
            ),
            Line(
                CORES + "leader_core", "*(peer for peer, f in self._followers.items() if f.has_opened)",
                "*(peer for peer, f in self._followers.items() if f.has_promised)",
            ),
        ], first=1169,
    ),
    Mutant(
        "followers do not check the epoch", "R5",
        [
            Line(
                CORES + "standby.standby_core",
                'elif link != self._leader.link or getattr(message, "epoch", -1) != self._state.promised:',
                "elif False:",
            ),
            Line(
                CORES + "standby.standby_core",
                "        if epoch < self._state.promised or self._is_of_another(message):\n"
                "            self._outdated(link)\n            return\n"
                "        if self",
                "        epoch = max(epoch, self._state.promised)\n        if self",
            ),
        ], first=35,
    ),
    Mutant(
        "a leader starts without a majority of promises", "R2",
        [Line(CORES + "standby.office", "if not has_quorum(members, sound):", "if len(sound) < 1:")],
    ),
    Mutant(
        "a cut goes below the committed mark", "R5",
        [
            Line(
                "commitlog.replica.differences",
                "    drop = [state.name for state in theirs if state.name not in kept]\n",
                "    drop = [state.name for state in theirs]\n    tail = None\n",
            )
        ],
    ),
    Mutant(
        "the claim is not conditional", "C1",
        [Line(HERE + "control", "won = self.stored.revision == revision or", "won = True or")], first=27,
    ),
    Mutant(
        "a majority of the new members is enough", "R7",
        [
            Line(
                CORES + "quorum",
                "return [record.replicas, record.old_replicas] if record.old_replicas is not None else"
                " [record.replicas]",
                "return [record.replicas]",
            )
        ], first=5,
    ),
    Mutant(
        "a leader commits what it has not synced itself", "R7",
        [
            Line(
                CORES + "leader_core", "copies_lsn(copies_min, synced), self.own[partition]",
                "copies_lsn(copies_min, synced)",
            )
        ], first=631,
    ),
    Mutant(
        "a change of members ends before its term is open", "R7",
        [
            Line(
                HERE + "leader",
                "if self._claimed is not None or not self.core.is_open or self.core.is_deposed:",
                "if self._claimed is not None or self.core.is_deposed:",
            ),
        ], first=4390,
    ),
    Mutant(
        "a follower notes the term before it has the log", "R4",
        [
            Line(
                CORES + "standby.followed_leader",
                "        if isinstance(message, m.Inventory):\n            self.flush()\n",
                "        if isinstance(message, m.Inventory):\n"
                "            self._state.open(epoch, self._state.promised_term)\n"
                "            self.flush()\n",
            )
        ], first=238,
    ),
    Mutant(
        "a claimant notes the term before it has the log", "R4",
        [
            Line(
                CORES + "standby.office",
                "        self.step, self._at = OfficeStep.ADOPTING, now + FETCH_SECONDS\n        self._ask",
                "        self._state.open(*self.claim)\n"
                "        self.step, self._at = OfficeStep.ADOPTING, now + FETCH_SECONDS\n        self._ask",
            )
        ], first=309,
    ),
    Mutant(
        "a damaged copy counts", "R11",
        [
            Line(CORES + "standby.office", "if each.opened != m.DOUBTED]", "]"),
            Line(
                CORES + "standby.adoption",
                "for each in promised.values() if each.opened != m.DOUBTED)",
                "for each in promised.values())",
            ),
            Line(
                CORES + "standby.adoption", "for peer, each in promised.items() if each.opened != m.DOUBTED}",
                "for peer, each in promised.items()}",
            ),
            Line(CORES + "standby.adoption", "            if mark > end:\n", "            if False:\n"),
            Line(
                CORES + "standby.standby_core",
                "        if self._state.opened == m.DOUBTED and not self._is_chosen(self.view.record):\n"
                "            return  # R11\n",
                "",
            ),
        ], first=35,
    ),
    Mutant(
        "the mark is told of copies that have not opened the term", "R5",
        [
            Line(CORES + "leader_core", "        if not follower.has_opened:\n            return {}\n", ""),
            Line(CORES + "leader_core", "            lsn = min(lsn, follower.synced.get(partition, 0))\n", ""),
            Line(
                CORES + "standby.standby_core",
                "            if self._state.opened == epoch:  # else",
                "            if True:  # else",
            ),
        ], first=33,
    ),
    Mutant(
        "an epoch is promised to two claims", "R2",
        [
            Line(CORES + "standby.standby_core", 'and "" not in (known, message.term) and', "and False and"),
            Line(CORES + "standby.standby_core", "state.promise(epoch, message.term, ", 'state.promise(epoch, "", '),
        ], first=948,
    ),
    Mutant(
        "the voters are those of the record", "R2",
        [Line(CORES + "quorum", "    if latest is None or record.config > latest.config:\n", "    if True:\n")],
        first=1473,
    ),
    Mutant(
        "a change of members is noted before it is fenced", "R2",
        [
            Line(
                CORES + "leader_core", "        self.is_open = self.is_fenced = False\n",
                "        self.is_open = False\n        self._effects.append(fx.Fenced())\n",
            )
        ], first=2484,
    ),
    Mutant(
        "an old disk counts", "R11",
        [
            Line(
                HERE + "disk", "image.note._replace(opened=m.DOUBTED, opened_term=\"\", forgets=True, whole=None)",
                "image.note",
            )
        ], first=76,
    ),
    Mutant(
        "a copy that lacks records is whole at its next start", "R11",
        [Line(HERE + "standby", "        elif self.state.is_short:", "        if self.state.is_short:")],
        first=25,
    ),
    Mutant(
        "vanished directories count as empty copies", "R11",
        [Line(HERE + "standby", "if self.logs.restore_notes(self.state):", "if False:")],
        first=98,
    ),
    Mutant(
        "what is not committed is packed", "R5",
        [Line(HERE + "disk", "segment.base_lsn < segment.end_lsn <= below", "segment.base_lsn < segment.end_lsn")],
        first=1, packs=True,
    ),
    Mutant(
        "bytes of a packed file are taken for those of the file before", "R12",
        [
            Line(
                "commitlog.replica.differences",
                "    return 0 not in (our.salt, their.salt) and our.salt != their.salt\n", "    return False\n",
            )
        ], packs=True,
    ),
    Mutant(
        "a copy is sent the rest of a file that was packed meanwhile", "R12",
        [Line(HERE + "feed", "if at >= 0 and cursor.salt != segments[at].salt:", "if False:")],
        first=200, packs=True,
    ),
    Mutant(
        "a copy gives up what it has of a segment that is sent again", "R5",
        [
            Line(
                "commitlog.replica.differences",
                "        return Difference(drop, *cut, index, 0, our.salt, our.name, our.end_lsn)\n",
                "        return Difference([*drop, our.name], '', 0, 0, index, 0)\n",
            )
        ], packs=True,
    ),
    Mutant(
        "a segment that is sent again counts before all of it is there", "R5",
        [Line(HERE + "disk", "refill.segment.end_lsn >= refill.end_lsn:", "True:")],
        first=840, packs=True,
    ),
]  # fmt: skip


@contextmanager
def planted(mutant: Mutant) -> Iterator[None]:
    """The loaded modules have the mutant's lines; as they were afterwards."""
    saved = [(module, dict(vars(module))) for module in modules()]
    try:
        for line in mutant.lines:
            plant(line)
        yield
    finally:
        for module, names in saved:
            vars(module).update(names)
        SOURCES.clear()


SOURCES: dict[str, str] = {}  # of modules that have a planted line


def plant(line: Line) -> None:
    module = import_module(line.module)
    source = SOURCES.get(line.module) or text_of(module)
    assert source.count(line.right) == 1, f"{line.module}: bring the list up to date: {line.right!r}"
    SOURCES[line.module] = source = source.replace(line.right, line.wrong)
    before = dict(vars(module))
    exec(compile(source, str(module.__file__), "exec"), vars(module))
    after = vars(module)
    changed = {id(old): after[name] for name, old in before.items() if after[name] is not old and callable(old)}
    for other in modules():
        for name, value in list(vars(other).items()):
            if id(value) in changed and other is not module:
                setattr(other, name, changed[id(value)])


def text_of(module: ModuleType) -> str:
    assert module.__file__ is not None
    return (Path(module.__file__).parent / (module.__name__.rpartition(".")[2] + ".py")).read_text()


def modules() -> list[ModuleType]:
    return [module for name, module in sys.modules.items() if name.startswith((CORES, HERE, "commitlog.replica."))]
