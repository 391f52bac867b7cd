"""What a replica of a shard has promised, whose log it has, and what of it is committed. docs/reference/log-format.md.

On disk before anybody is told of it: a replica that forgot a promise, or claims a log that it does not have, breaks the
majority that acknowledged a record. So a file that is lost is not made anew beside a log, and each note is in two
places, <data>/_cluster/shard-<n>.json and beside the shard's journal: one that was restored from an old copy is found
by the other."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from threading import Lock
from typing import Any

from commitlog.disk.files import Files, make_durable_directory, replace_file, whole_file
from commitlog.errors import LogError
from commitlog.replica.replica_note import (
    DOUBTED,
    Holding,
    Note,
    Voters,
    Whole,
    decoded,
    encoded,
    joined,
    refusal,
)

DIRECTORY = "_cluster"
BESIDE = "replica.json"  # in the directory of the shard's journal


class StoredReplicaState:
    """promised, promised_term: the newest term that was promised: its epoch, and its claim, "" where that is not known

    opened, opened_term: the term of the last leader whose log is completely here; opened may be `DOUBTED`
    voters: as noted when it was opened; forced: the last epoch that an operator forced
    marks: by partition, the lsn up to which it is known to be committed; it only grows
    held: by partition, how far the copy here was synced, and in which segment, at the last note; of a copy that lacks
    records, at the note before
    forgets: promises may be missing here too, until the doubt is over
    disk: the id of the disk that these are true of; restored: the last time that the disk was an old copy
    doubt: why the two places do not fit each other, "" if they do. One thread changes it, another may note marks"""

    def __init__(self, files: Files, paths: list[str], note: Note) -> None:
        """paths: where it is noted, in this order"""
        self._files, self._paths, self._note, self._lock = files, paths, note, Lock()
        self.doubt = ""
        self._saves_found = note.saves  # at the start, before what is missing was written again

    @property
    def promised(self) -> int:
        return self._note.promised

    @property
    def promised_term(self) -> str:
        return self._note.promised_term

    @property
    def opened(self) -> int:
        return self._note.opened

    @property
    def opened_term(self) -> str:
        return self._note.opened_term

    @property
    def voters(self) -> Voters | None:
        return self._note.voters

    @property
    def marks(self) -> Mapping[str, int]:
        return self._note.marks

    @property
    def held(self) -> Mapping[str, Holding]:
        return self._note.held if self._note.whole is None else self._note.whole.held

    @property
    def is_short(self) -> bool:
        """It is doubted because records are missing, and for no other reason."""
        return self._note.whole is not None and not self.forgets

    @property
    def forced(self) -> int:
        return self._note.forced

    @property
    def disk(self) -> str:
        return self._note.disk

    @property
    def restored(self) -> int:
        return self._note.restored

    @property
    def forgets(self) -> bool:
        return self._note.forgets

    def maybe_lack(self, partition: str, first_lsn: int, end_lsn: int, segments: Collection[str]) -> str | None:
        """What the copy of a partition here lacks of what was noted; None: nothing. segments: their names

        first_lsn: retention has removed what is below"""
        held, name = self.held.get(partition, (0, ""))
        known = max(held, self.marks.get(partition, 0))
        if end_lsn < known:
            return f"{partition} ends at lsn {end_lsn}, and had records up to {known}"
        if name and held > first_lsn and name not in segments:
            return f"{partition} has no segment {name}, with which it ended"
        return None

    def promise(self, epoch: int, term: str = "", forced: int = 0) -> None:
        """Listen to no other leader of this or an older epoch; durable when it returns. forced: of the term

        raises: OSError; LogError if another term of this epoch, or a higher one, is promised"""
        known = self.promised_term if epoch == self.promised else ""
        if epoch < self.promised or (known and term and term != known):
            raise LogError(
                f"{self._paths[0]}: epoch {epoch} is asked for, and {self.promised} was promised"
                + (" to another claim" if epoch == self.promised else "")
            )
        change: dict[str, Any] = {}
        if epoch > self.promised or (term and not known):
            change |= {"promised": epoch, "promised_term": term}
        if forced > self.forced:  # the operator's word: what was committed before may be cut
            change |= {"forced": forced, "marks": {}, "held": {}, "whole": None}
        self._save(change)

    def open(self, epoch: int, term: str = "", voters: Voters | None = None) -> None:
        """The log of this term's leader is completely here, and synced; durable when it returns. voters: of the term

        raises: OSError; LogError if a higher one is promised or was opened"""
        if epoch < self.promised or epoch < self.opened:
            raise LogError(
                f"{self._paths[0]}: epoch {epoch} cannot be opened, {max(self.promised, self.opened)} is known"
            )
        change: dict[str, Any] = {}
        if epoch > self.opened or term != self.opened_term:
            change |= {"opened": epoch, "opened_term": term, "forgets": False, "whole": None}
        if epoch > self.promised:
            change |= {"promised": epoch, "promised_term": term}
        if voters is not None and voters != self.voters:
            change["voters"] = voters
        self._save(change)

    def note_voters(self, voters: Voters) -> None:
        """The voters of the opened term have changed; durable when it returns. raises: OSError"""
        if voters != self.voters:
            self._save({"voters": voters})

    def note_copies(self, marks: Mapping[str, int], held: Mapping[str, Holding]) -> None:
        """By partition, what is committed, of which lower lsns change nothing, and what is synced here.

        Durable when it returns. raises: OSError"""
        higher = {key: lsn for key, lsn in marks.items() if lsn > self.marks.get(key, 0)}
        known = self._note.held
        other = {key: holding for key, holding in held.items() if holding != known.get(key, (0, ""))}
        if higher or other:
            self._save({"marks": {**self.marks, **higher}, "held": {**known, **other}})

    def note_cut(self, partition: str) -> None:
        """Before what is not committed of a copy is cut: it is not missed later. raises: OSError"""
        held = self._note.held
        if partition in held:
            self._save({"held": {key: holding for key, holding in held.items() if key != partition}})

    def trust(self, forced: int) -> None:
        """An operator has chosen this copy in this epoch: it counts as it is. raises: OSError"""
        if forced > self.forced:
            chosen = {"forced": forced, "opened": max(self.opened, 0), "forgets": False, "whole": None}
            self._save({"marks": {}, "held": {}, **chosen})

    def distrust(self, *, forgets: bool = False) -> None:
        """The log here may lack records that this replica acknowledged: it is nobody's. raises: OSError

        forgets: ... and promises that it gave"""
        if self.opened != DOUBTED or (forgets and not self.forgets):
            self._save({"opened": DOUBTED, "opened_term": "", "forgets": forgets or self.forgets})

    def miss(self) -> None:
        """At the start: records that were noted are not there. Doubted until a leader has filled the copy, or they are
        there again. raises: OSError"""
        if self.opened != DOUBTED:
            note = self._note
            whole = Whole(self._saves_found, note.opened, note.opened_term, note.held)
            self._save({"opened": DOUBTED, "opened_term": "", "whole": whole})

    def find_again(self) -> None:
        """All is there again that was missing: what the copy was opened for, it is again. raises: OSError"""
        whole = self._note.whole
        if whole is not None:
            self._save({"opened": whole.opened, "opened_term": whole.opened_term, "held": whole.held, "whole": None})

    def note_restored(self, restored: int) -> bool:
        """The disk is an old copy; restored: which time, ever higher. returns: whether that is news. raises: OSError"""
        if restored <= self.restored:
            return False
        old = {"opened": DOUBTED, "opened_term": "", "forgets": True, "whole": None}
        self._save({"restored": restored, **old})
        return True

    def _save(self, change: Mapping[str, Any]) -> None:
        if not change:
            return
        with self._lock:
            note = self._note._replace(**change, saves=self._note.saves + 1)
            # The place that is read first is written last: what it says, the other one says too.
            for path in reversed(self._paths):
                replace_file(self._files, path, encoded(note))
            self._note = note


def load_state(
    files: Files, root: str, shard: int, disk: str, *, has_log: bool, journal: str = ""
) -> StoredReplicaState:
    """The state of a shard's replica; made when it is missing and there is no log yet.

    root: the data directory; disk: its id; has_log: a partition of the shard has a segment
    journal: the directory of the shard's journal, which exists; "": only one place
    raises: OSError; StoreError when the file is missing or damaged beside a log, or of another disk"""
    path = f"{root}/{DIRECTORY}/shard-{shard}.json"
    paths = [path, f"{journal}/{BESIDE}"] if journal else [path]
    beside = maybe_note(files, paths[1]) if journal else None
    if not files.exists(path):
        if has_log:
            raise refusal(root, path, "is missing, and there is a log")
        make_durable_directory(files, f"{root}/{DIRECTORY}", known=root)
        state = StoredReplicaState(files, paths, Note(disk=disk))
        state._save({"promised": 0})
        return state
    note = decoded(whole_file(files, path))
    if note is None:
        raise refusal(root, path, "is damaged")
    if note.disk != disk:
        raise refusal(root, path, f"is of disk {note.disk}, and this is {disk}")
    doubt, kept = "", note
    if beside is not None:
        kept, doubt = joined(note, beside)
    state = StoredReplicaState(files, paths, kept)
    state.doubt = doubt
    if doubt:
        state.distrust(forgets=True)
    if kept != note or beside != kept:
        state._save({"disk": disk})
    return state


def maybe_note(files: Files, path: str) -> Note | None:
    return decoded(whole_file(files, path)) if files.exists(path) else None
