"""The short form of the fuzzing: the same inputs each time. The long one is `python -m tests.fuzz`."""

from collections import Counter

import pytest

from tests.fuzz.campaign import Target, campaign
from tests.fuzz.corpus import packets
from tests.fuzz.kernels import mutate
from tests.fuzz.targets import SHARES, TARGETS
from tests.kernel_forms import as_python

# Inputs, and what has to come of some of them: a target whose inputs are all refused at once tests nothing.
SHORT = {
    "codec": (100_000, ("taken", "refused 0x81", "refused 0x82", "refused by the connection", "streams: packets")),
    "session": (1_800, ("client.connected", "packets sent", "client.refused", "replay.started", "power losses")),
    "layers": (900, ("client.connected", "client.refused", "connection.refused", "answered", "TLS open")),
    "websocket": (12_000, ("open", "closed", "closed with 1002", "answered 101", "answered 403", "stream open")),
    "proxy": (20_000, ("taken", "waited for", "refused")),
    "tls": (400, ("open", "refused", "waits")),
    "auth": (12_000, ("SCRAM: in", "SCRAM: denied 0x86", "tokens: in", "tokens: denied", "files: taken",
                      "files: refused", "certificates: read", "certificates: refused")),
}  # fmt: skip


@pytest.mark.parametrize("name", TARGETS)
def test_nothing_comes_of_what_is_nearly_right(name: str) -> None:
    """No exception but those that are declared, no input that takes long, no memory that grows, no word not kept."""
    inputs, outcomes = SHORT[name]
    if mutate.__file__.endswith(".py"):
        inputs //= 20  # the kernels are not compiled: the same, and less of it
    target = TARGETS[name]()
    try:
        counts = campaign(target, 1, inputs=inputs).counts
    finally:
        target.close()
    if not mutate.__file__.endswith(".py"):
        assert not [outcome for outcome in outcomes if not counts[outcome]], counts


def test_the_shares_are_of_all_targets() -> None:
    assert set(SHARES) == set(TARGETS) == set(SHORT) and sum(SHARES.values()) == 1000


def test_the_same_seed_gives_the_same_inputs_in_both_forms() -> None:
    corpus = packets(1, 5, 50)
    plain = as_python("tests.fuzz.kernels.mutate").Mutator(corpus, True).inputs(300, 99, 4)
    assert plain == mutate.Mutator(corpus, True).inputs(300, 99, 4)
    assert len(set(plain)) > 250


class Faulty(Target):
    """A target with a fault that one input in a thousand finds."""

    name = "faulty"
    inputs = 10

    def __init__(self, fault: object) -> None:
        super().__init__()
        self.kept: list[bytes] = []
        self._fault = fault

    def run(self, seed: int) -> Counter[str]:
        for number in self.each([seed + n for n in range(self.inputs)]):
            if number % 1000 == 0:
                if isinstance(self._fault, Exception):
                    raise self._fault
                self.kept.append(b"x" * (50 << 20))
        return Counter(inputs=self.inputs)


@pytest.mark.parametrize("fault", [ValueError("x"), "memory"])
def test_a_fault_of_a_door_is_told_with_what_makes_it_again(fault: object) -> None:
    with pytest.raises(AssertionError, match="faulty, seed 5"):
        campaign(Faulty(fault), 5, inputs=20_000)
