"""The broker is asked at a socket in its data directory, however deep that lies and whatever comes of a question."""

import os
from pathlib import Path
from typing import Any

import pytest
import trio

from rumq.admin.socket.admin_socket import serve
from tests.admin_questions import ask


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_a_path_too_long_for_a_socket_leaves_no_descriptor_behind(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 100) / ("e" * 100)
    deep.mkdir(parents=True)
    before = descriptors()
    for _ in range(3):
        with pytest.raises(FileNotFoundError):
            ask(str(deep), {"ask": "status"})
    assert descriptors() == before


def test_a_question_that_nobody_can_answer_ends_nothing_but_itself(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 100)
    deep.mkdir()
    failed: list[str] = []

    def answer(question: dict[str, Any]) -> Any:
        if question["ask"] == "bug":
            raise KeyError("bug")
        if question["ask"] == "late":
            return late
        if question["ask"] == "odd":
            return {"what": object()}
        if question["ask"] == "wrong":
            raise ValueError("no such question")
        return {"said": question["ask"]}

    def late(done: Any) -> None:
        raise AttributeError("a bug behind the question")

    async def main() -> list[dict[str, Any]]:
        async with trio.open_nursery() as nursery:
            await nursery.start(serve, str(deep), answer, "ask.sock", failed.append)
            replies = []
            for what in ("bug", "odd", "late", "wrong", "status"):
                replies.append(await trio.to_thread.run_sync(ask, str(deep), {"ask": what}))
            nursery.cancel_scope.cancel()
        return replies

    bug, odd, late_, wrong, status = trio.run(main)
    assert "failed to answer" in bug["error"] and "failed to answer" in odd["error"]
    assert "failed to answer: AttributeError" in late_["error"]
    assert wrong == {"error": "no such question"} and status == {"said": "status"}
    assert failed == ["answer"] * 3
