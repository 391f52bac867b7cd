"""Beats of a leader that is still opening its log: without them its followers would choose another."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from rumq.cluster.node.frame_link import FrameLink
from rumq.cluster.replication.leader_core import BEAT_SECONDS
from rumq.cluster.replication.messages import Beat
from rumq.net.frames import encoded


class OpeningBeats:
    """A thread that sends a beat over each link, until `stop`."""

    def __init__(self, epoch: int, links: Sequence[FrameLink]) -> None:
        self._beat = encoded(Beat(epoch, {}))
        self._links = [link for link in links if not link.closed]
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="rumq-beats", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stopped.wait(BEAT_SECONDS):
            for link in self._links:
                try:
                    link.sock.send(self._beat)
                    link.sock.recv(1 << 16)  # answers, which nobody needs
                except OSError:
                    pass  # full, empty or gone
        for link in self._links:
            link.close()

    def stop(self) -> None:
        """The leader's own links have taken over."""
        self._stopped.set()
