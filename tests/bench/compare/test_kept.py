"""What is lost and what comes twice after a kill is counted: both are planted."""

import dataclasses
import tempfile
from pathlib import Path

import pytest

from bench.compare import kept as measured
from bench.compare.kept import LOAD, came_back, cut, killed_once, message, number_of
from bench.connections import BenchFault, connect_packet, opened, read_exactly
from bench.load.load import Load
from bench.peers.peer import Broker, running
from bench.peers.rumq import Rumq

MESSAGES = 400
PUBLISH = message(7)


@pytest.fixture(autouse=True)
def quick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(measured, "SILENCE_S", 0.3)


class Broken(Rumq):
    name = "broken"

    def command(self, load: Load, folder: Path, port: int) -> list[str]:
        return ["sh", "-c", "echo this is why; exit 3"]


def test_rumq_keeps_what_it_acknowledged() -> None:
    found = measured.kept(Rumq(), MESSAGES)
    assert (found.why_not, found.lost) == ("", 0) and found.acknowledged >= MESSAGES and found.restart_s > 0


def test_what_is_gone_is_counted() -> None:
    """Somebody takes some of the messages before the session comes back."""
    with running(Rumq(), LOAD) as broker:

        def again() -> Broker:
            assert broker.again is not None
            restarted = broker.again()
            with opened(restarted.address) as thief:
                thief.sendall(connect_packet("kept", lasting=True))
                read_exactly(thief, 4)
                stolen = b""
                while len(numbers := cut(stolen)[1]) < 5:
                    stolen += thief.recv(len(PUBLISH))
                thief.sendall(cut(stolen)[2])
                taken.extend(numbers)
                thief.sendall(b"\xe0\x00")
                while thief.recv(1 << 16):
                    pass
            return restarted

        taken: list[int] = []
        found = killed_once("rumq", "disk", dataclasses.replace(broker, again=again), MESSAGES)
    assert 5 <= found.lost == len(taken) < found.acknowledged


def test_a_session_that_is_gone_has_lost_everything() -> None:
    with running(Rumq(), LOAD) as broker:
        assert not came_back(broker)


def test_a_broker_that_does_not_start_says_why() -> None:
    assert "this is why" in measured.kept(Broken(), MESSAGES).why_not


def test_packets_are_cut_whatever_their_parts() -> None:
    whole = message(1) + message(2) + message(3)
    assert cut(whole) == (b"", [1, 2, 3], b"\x40\x02\x00\x02\x40\x02\x00\x03\x40\x02\x00\x04")
    for size in range(len(whole)):
        left, first, _ = cut(whole[:size])
        assert first + cut(left + whole[size:])[1] == [1, 2, 3]
    with pytest.raises(BenchFault, match="e0 00"):
        cut(message(1) + b"\xe0\x00")


@pytest.mark.parametrize(("number", "sent"), [(0, 1), (65_534, 65_535), (65_535, 65_536), (131_070, 131_571)])
def test_a_packet_id_is_that_of_its_last_message(number: int, sent: int) -> None:
    packet_id = int.from_bytes(message(number)[-10:-8], "big")
    assert number_of(packet_id, sent) == number
