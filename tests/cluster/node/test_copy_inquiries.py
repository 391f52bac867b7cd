"""Questions about a node's copy: bad ones are answered with their fault, and only a few wait.

What the answers say of copies is in `tests/cli/cluster/test_verify.py`."""

import threading
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from commitlog.testing.simulated_files import SimulatedFiles
from rumq.cluster.node import copy_inquiries
from rumq.cluster.node.copy_inquiries import WAITING_MAX, CopyAnswer, CopyInquiries

KEY = "main/g1/p0"


@pytest.fixture
def inquiries() -> Iterator[CopyInquiries]:
    made = CopyInquiries(SimulatedFiles(), "data", [KEY])
    yield made
    made.close()


def said(line: bytes) -> CopyAnswer:
    assert line.endswith(b"\n")
    return msgspec.json.decode(line, type=CopyAnswer)


@pytest.mark.parametrize("question", [b"", b"{", b"[]", b'{"partition": 1}', b'{"from": 2}'])
def test_what_is_no_question_is_answered_with_what_is_wrong(inquiries: CopyInquiries, question: bytes) -> None:
    assert said(inquiries.ask(question).result(10)).error


def test_partitions_of_others_are_not_here(inquiries: CopyInquiries) -> None:
    answer = said(inquiries.ask(b'{"partition": "../../etc"}').result(10))
    assert answer.error == "there is no ../../etc here"


def test_a_few_questions_wait_and_more_are_answered_at_once(
    inquiries: CopyInquiries, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = threading.Event()

    def view(*where: Any) -> None:
        assert free.wait(10)

    monkeypatch.setattr(copy_inquiries, "marked_view", view)
    waiting = [inquiries.ask(b"{}") for _ in range(WAITING_MAX)]
    assert "are under way" in said(inquiries.ask(b"{}").result(0)).error
    free.set()
    assert all(said(each.result(10)) == CopyAnswer() for each in waiting)
    assert not said(inquiries.ask(b"{}").result(10)).error
