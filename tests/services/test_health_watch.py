"""The health service hears of changes."""

import asyncio

import pytest

from rumq.services import health_watch


def test_only_changes_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health_watch, "SECONDS", 0.0)
    story = iter([True, True, False, False, True])
    said: list[bool] = []

    async def answers() -> bool:
        found = next(story, None)
        if found is None:
            raise EOFError
        return found

    async def say(is_up: bool) -> None:
        said.append(is_up)

    with pytest.raises(EOFError):
        asyncio.run(health_watch.watch_health(answers, say))
    assert said == [True, False, True]
