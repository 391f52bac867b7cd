"""Reload and shutdown of the node that is asked, by signals to its main process; a shutdown may want a token first."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from hmac import compare_digest

import trio

from rumq.admin import requests as q

SIGNAL_SECONDS = 0.05  # until then the answer is on its way
TOKEN_BYTES = 8


class NodeSignals:
    """send: a signal to the node's main process"""

    def __init__(self, send: Callable[[signal.Signals], None]) -> None:
        self._send = send
        self._prepared: tuple[str, float] | None = None  # token of a shutdown, and until when it is good

    def reload(self) -> None:
        trio.lowlevel.spawn_system_task(self._later, signal.SIGHUP)

    def prepare(self, asked: q.Prepare) -> str:
        """A token for `shutdown`; a later one replaces it."""
        token = os.urandom(TOKEN_BYTES).hex()
        self._prepared = token, trio.current_time() + asked.seconds
        return token

    def shutdown(self, asked: q.Shutdown) -> None:
        """raises: ValueError for a token that is not the one of `prepare`"""
        if asked.token is not None:
            prepared, self._prepared = self._prepared, None
            if prepared is None or not compare_digest(prepared[0].encode(), asked.token.encode()):
                raise ValueError("the token is not that of the last `prepare`: nothing was stopped")
            if trio.current_time() > prepared[1]:
                raise ValueError("the token is too old: `prepare` again; nothing was stopped")
        trio.lowlevel.spawn_system_task(self._later, signal.SIGTERM if asked.graceful else signal.SIGKILL)

    async def _later(self, number: signal.Signals) -> None:
        await trio.sleep(SIGNAL_SECONDS)
        self._send(number)
