"""What a replica promised outlives a power loss, and is never made up."""

import pytest

from commitlog import LogError, StoreError
from commitlog.replica.replica_state import DOUBTED, ReplicaState, load_state
from commitlog.testing.simulated_files import SimulatedFiles
from tests.commitlog.test_log_agrees_with_a_list import PowerLost, power_for

PATH = "data/_cluster/shard-3.json"


def loaded(files: SimulatedFiles, *, has_log: bool = True, disk: str = "3fa2b1c0") -> ReplicaState:
    return load_state(files, "data", 3, disk, has_log=has_log)


def new() -> tuple[SimulatedFiles, ReplicaState]:
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
