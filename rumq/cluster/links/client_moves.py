"""Messages between a leader and an edge that relays clients to it, over a link of its own (greeting "edge").

A leader that hands its shard over has the edges send nothing more of their clients (`Hold`), learns how much they have
sent (`Held`), and gives each client's state back (`Moved`), with which the edge goes to the next leader. A leader that
goes on after all says `ResumeRelays`."""

from __future__ import annotations

import msgspec

MOVED = "moved"  # of `Greeting.handover` and of descriptors: a connection that goes on, with the state of its client


class Hold(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """Send nothing more of these clients. relays: by the number in their greetings; answered by `Held`"""

    relays: list[int]


class Held(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """sent: relay -> bytes of the client that were sent behind the greeting, in all"""

    sent: dict[int, int]


class ResumeRelays(msgspec.Struct, frozen=True, tag="Resume", array_like=True):
    """Nothing comes of the hand-over: send again."""

    relays: list[int]


class Moved(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """The client goes on at the next leader; its state is the raw bytes behind this.

    sent: bytes for the client that this leader has sent in all; they come before what is in the state"""

    relay: int
    sent: int


class Leave(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """The edge is stopping: end all its clients. reference: of another node, for MQTT 5; empty: none"""

    reference: str = ""


EdgeMessage = Hold | Held | ResumeRelays | Moved | Leave
