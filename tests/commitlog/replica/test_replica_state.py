"""What a replica promised outlives a power loss, and is never made up."""

import pytest

from commitlog import LogError, StoreError
from commitlog.replica.replica_state import DOUBTED, StoredReplicaState, load_state
from commitlog.testing.simulated_files import SimulatedFiles
from tests.commitlog.test_log_agrees_with_a_list import PowerLost, power_for

PATH = "data/_cluster/shard-3.json"


def loaded(files: SimulatedFiles, *, has_log: bool = True, disk: str = "3fa2b1c0") -> StoredReplicaState:
    return load_state(files, "data", 3, disk, has_log=has_log)


def new() -> tuple[SimulatedFiles, StoredReplicaState]:
    files = SimulatedFiles()
    files.make_directory("data")
    files.sync_directory("data")
    files.sync_directory("")
    return files, loaded(files, has_log=False)


def test_a_promise_is_on_disk_before_it_is_given() -> None:
    files, state = new()
    assert (state.promised, state.opened) == (0, 0)
    for promised, opened in ((4, 0), (4, 4), (9, 4), (9, 9)):
        state.promise(promised)
        state.open(opened or state.promised) if opened == promised else None
        again = loaded(files.after_power_loss(lambda n: 0))
        assert (again.promised, again.opened, again.disk) == (promised, opened, "3fa2b1c0")


def test_no_older_leader_is_promised_or_opened() -> None:
    _, state = new()
    state.promise(5)
    with pytest.raises(LogError, match="epoch 4 is asked for, and 5 was promised"):
        state.promise(4)
    with pytest.raises(LogError, match="epoch 4 cannot be opened"):
        state.open(4)
    state.promise(5)
    state.open(5)
    state.open(5)
    assert (state.promised, state.opened) == (5, 5)


def test_a_promise_that_is_known_costs_nothing() -> None:
    files, state = new()
    state.open(5)
    calls = len(files.calls)
    state.promise(5)
    state.open(5)
    assert len(files.calls) == calls


def test_a_log_in_doubt_is_nobodys() -> None:
    files, state = new()
    state.open(5)
    state.distrust()
    again = loaded(files.after_power_loss(lambda n: 0))
    assert (again.promised, again.opened) == (5, DOUBTED)


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b'{"promised": 1}', b'{"promised": 1, "opened": 2, "disk": "a"}']
)
def test_a_damaged_state_beside_a_log_is_refused_and_says_what_to_do(content: bytes) -> None:
    files, _ = new()
    files.put(PATH, content)
    with pytest.raises(StoreError, match=r"shard-3.json is damaged: .* start with an empty one"):
        loaded(files)


def test_a_missing_state_is_made_only_without_a_log() -> None:
    files = SimulatedFiles()
    files.make_directory("data")
    with pytest.raises(StoreError, match="is missing, and there is a log"):
        loaded(files)
    assert loaded(files, has_log=False).promised == 0


def test_the_state_of_another_disk_is_refused() -> None:
    files, _ = new()
    with pytest.raises(StoreError, match="is of disk 3fa2b1c0, and this is 00000000"):
        loaded(files, disk="00000000")


@pytest.mark.parametrize("choice", [0, 1])
def test_a_power_loss_leaves_the_old_state_or_the_new_one(choice: int) -> None:
    for calls in range(8):
        files, state = new()
        state.open(5)
        files.before_call = power_for(calls)
        done = False
        try:
            state.promise(6)
            done = True
        except PowerLost:
            assert state.promised == 5
        again = loaded(files.after_power_loss(lambda n: choice % n))
        assert again.promised in ((6,) if done else (5, 6)) and again.opened == 5
    assert done


JOURNAL = "data/_state/g1/p3"
BESIDE = f"{JOURNAL}/replica.json"


def in_two_places() -> tuple[SimulatedFiles, StoredReplicaState]:
    files, _ = new()
    for path in ("data/_state", "data/_state/g1", JOURNAL):
        files.make_directory(path)
        files.sync_directory(path.rpartition("/")[0])
    return files, again(files)


def again(files: SimulatedFiles) -> StoredReplicaState:
    return load_state(files, "data", 3, "3fa2b1c0", has_log=True, journal=JOURNAL)


def test_an_epoch_is_promised_to_one_claim() -> None:
    _, state = new()
    state.promise(5, "one")
    state.promise(5, "one")
    with pytest.raises(LogError, match="5 was promised to another claim"):
        state.promise(5, "other")
    state.promise(6, "other")
    state.open(6, "other", (6, 2, ["a", "b", "c"], None))
    assert (state.promised_term, state.opened_term, state.voters) == (
        "other",
        "other",
        (6, 2, ["a", "b", "c"], None),
    )


def test_marks_only_grow_and_what_is_held_may_be_cut() -> None:
    files, state = in_two_places()
    state.note_copies({"p": 7}, {"p": (9, "s1")})
    state.note_copies({"p": 5}, {"p": (8, "s2")})
    state = again(files.after_power_loss(lambda n: 0))
    assert state.marks == {"p": 7} and state.held == {"p": (8, "s2")}
    state.note_cut("p")
    assert state.marks == {"p": 7} and state.held == {}


def test_a_copy_that_ends_before_what_was_noted_or_with_another_segment_lacks_something() -> None:
    _, state = in_two_places()
    state.note_copies({"p": 7}, {"p": (9, "s2")})
    assert state.maybe_lack("p", 0, 9, ["s1", "s2"]) is None and state.maybe_lack("q", 0, 0, []) is None
    assert "ends at lsn 8, and had records up to 9" in str(state.maybe_lack("p", 0, 8, ["s1", "s2"]))
    assert "has no segment s2" in str(state.maybe_lack("p", 0, 12, ["s1", "other"]))
    assert state.maybe_lack("p", 9, 12, ["s3"]) is None, "retention has removed it"


@pytest.mark.parametrize("older", [PATH, BESIDE])
def test_a_place_that_was_restored_from_an_old_copy_is_found_by_the_other(older: str) -> None:
    files, state = in_two_places()
    state.promise(4)
    old = files.content(older)
    state.promise(5)
    state.open(5)
    files.put(older, old)
    state = again(files)
    assert "do not fit each other" in state.doubt and state.opened == DOUBTED and state.forgets
    assert state.promised == 5, "the newer one counts"
    assert again(files).doubt == "", "told once; the doubt stays until a leader has repaired the copy"
    assert again(files).opened == DOUBTED
    state.open(6, "six")
    assert not state.forgets


def without_its_volume() -> tuple[SimulatedFiles, bytes]:
    """A copy that had opened epoch 5, and whose directories were away at the last start; its own notes beside them."""
    files, state = in_two_places()
    state.promise(5, "claim5")
    state.open(5, "claim5")
    state.note_copies({"p": 7}, {"p": (9, "s2")})
    volume = files.content(BESIDE)
    files.remove(BESIDE)
    state = again(files)
    assert not state.doubt and not state.is_short
    state.miss()
    state.note_copies({}, {"p": (0, "")})
    state.promise(8, "claim8")
    return files, volume


def test_a_volume_that_is_mounted_again_ends_the_doubt_that_its_absence_began() -> None:
    files, volume = without_its_volume()
    assert again(files).opened == DOUBTED and again(files).is_short, "as often as it starts without"
    files.put(BESIDE, volume)
    state = again(files)
    assert not state.doubt and state.opened == DOUBTED, "until somebody has looked at the copies"
    assert "ends at lsn 8" in str(state.maybe_lack("p", 0, 8, ["s1", "s2"]))
    assert state.maybe_lack("p", 0, 9, ["s1", "s2"]) is None
    state.find_again()
    for one in (state, again(files)):
        assert (one.opened, one.opened_term, one.forgets, one.is_short) == (5, "claim5", False, False)
        assert (one.promised, one.promised_term) == (8, "claim8"), "what was promised meanwhile stays promised"
        assert (one.marks, one.held) == ({"p": 7}, {"p": (9, "s2")})


@pytest.mark.parametrize(
    "whole",
    ["[1, 2]", '["1", 2, "", {}]', '[1, "2", "", {}]', "[1, 2, 3, {}]", '[1, 2, "", {"p": ["9", "s"]}]', "7"],
)
def test_notes_whose_memory_of_a_whole_copy_is_damaged_are_damaged(whole: str) -> None:
    files, _ = without_its_volume()
    note = files.content(PATH).decode()
    assert '"whole": [' in note
    begin = note.index('"whole": ') + len('"whole": ')
    files.put(PATH, (note[:begin] + whole + "}\n").encode())
    with pytest.raises(StoreError, match="is damaged"):
        again(files)


def test_a_volume_of_another_moment_does_not_end_the_doubt() -> None:
    files, state = in_two_places()
    state.promise(5)
    older = files.content(BESIDE)
    state.open(5)
    state.note_copies({"p": 7}, {"p": (9, "s2")})
    files.remove(BESIDE)
    again(files).miss()
    files.put(BESIDE, older)
    state = again(files)
    assert "do not fit each other" in state.doubt and state.forgets and not state.is_short


def test_a_copy_that_was_filled_again_does_not_go_back_to_its_old_volume() -> None:
    files, volume = without_its_volume()
    state = again(files)
    state.open(8, "claim8")
    assert not state.is_short
    files.put(BESIDE, volume)
    state = again(files)
    assert "do not fit each other" in state.doubt and state.forgets


@pytest.mark.parametrize("what", ["forced", "restored"])
def test_an_operators_word_or_an_old_disk_leaves_nothing_to_go_back_to(what: str) -> None:
    files, volume = without_its_volume()
    state = again(files)
    if what == "forced":
        state.promise(9, "claim9", 9)
    else:
        state.note_restored(1)
    files.put(BESIDE, volume)
    assert not again(files).is_short and again(files).opened == DOUBTED


def test_a_save_that_only_the_volume_has_is_of_the_same_moment() -> None:
    """The process died between the two places, so nobody was told of it."""
    files, state = in_two_places()
    state.promise(5)
    state.open(5)
    before = files.content(PATH)
    state.promise(6)
    files.put(PATH, before)
    volume = files.content(BESIDE)
    files.remove(BESIDE)
    state = again(files)
    state.miss()
    state.promise(7)
    files.put(BESIDE, volume)
    state = again(files)
    assert not state.doubt and state.is_short
    state.find_again()
    assert (state.opened, state.promised) == (5, 7)


def test_a_crash_between_the_two_places_is_no_doubt() -> None:
    files, state = in_two_places()
    before = files.content(PATH)
    state.promise(4, "four")
    files.put(PATH, before)  # the place beside the journal is written first
    state = again(files)
    assert state.doubt == "" and (state.promised, state.promised_term) == (4, "four")


def test_an_operator_who_has_chosen_a_leader_ends_the_marks_and_a_doubt_about_the_chosen_copy() -> None:
    _, chosen = in_two_places()
    _, other = in_two_places()
    for state in (chosen, other):
        state.open(3, "three")
        state.note_copies({"p": 7}, {"p": (9, "s")})
    chosen.distrust()
    chosen.trust(5)
    assert chosen.opened == 0 and chosen.marks == chosen.held == {}
    other.promise(6, "six", 5)
    assert other.marks == other.held == {} and other.forced == 5
