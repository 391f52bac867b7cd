"""How often messages failed that are not done, as every engine tells the others. docs/reference/queues.md, "Tries"

`$queues/$tries/<label>/<channel id>/<process>`, retained: JSON, message id -> [tries, µs since 1970 until which the
message is of use]. A message's number of tries is the highest that an engine tells: each counts on from the others."""

from __future__ import annotations

import msgspec

from rumq.queues.rules.names import TRIES, MessageId

TOLD_MAX = 1000  # messages of one engine; of more the oldest are not told
TOLD_BYTES_MAX = 64 * 1024
OVERHEAD_BYTES = 32  # of one in JSON

Told = dict[str, tuple[int, int]]


class Tries:
    """Of all channels and engines. bad: what could not be read"""

    def __init__(self) -> None:
        self._told: dict[str, dict[str, Told]] = {}  # channel -> process -> what it told
        self.bad = 0

    def apply(self, topic: str, payload: bytes) -> bool:
        """returns: whether it is of this kind"""
        if not topic.startswith(TRIES):
            return False
        parts = topic.removeprefix(TRIES).split("/")
        if len(parts) != 3:
            return False
        _, channel_id, process = parts
        if not payload:
            of_channel = self._told.get(channel_id, {})
            of_channel.pop(process, None)
            if not of_channel:
                self._told.pop(channel_id, None)
            return True
        try:
            self._told.setdefault(channel_id, {})[process] = msgspec.json.decode(payload, type=Told)
        except ValueError:
            self.bad += 1
        return True

    def are_known(self, channel_id: str) -> bool:
        """Whether any message of the channel has failed, as far as is known."""
        return channel_id in self._told

    def of(self, channel_id: str, message_id: MessageId) -> int:
        of_channel = self._told.get(channel_id)
        if not of_channel:
            return 0
        name = str(message_id)
        return max((told[name][0] for told in of_channel.values() if name in told), default=0)

    def told_by(self, channel_id: str, process: str) -> Told:
        return dict(self._told.get(channel_id, {}).get(process, {}))

    def processes(self, channel_id: str) -> list[str]:
        return list(self._told.get(channel_id, {}))

    def clear(self) -> None:
        self._told.clear()


class OwnTries:
    """What one engine tells. told: as of `Tries`"""

    def __init__(self, told: Told) -> None:
        self._told = told
        self._size = sum(OVERHEAD_BYTES + len(name) for name in told)
        self.changed = False

    def __len__(self) -> int:
        return len(self._told)

    def put(self, message_id: MessageId, tries: int, until_us: int) -> None:
        """tries: 0: it is done"""
        name = str(message_id)
        if self._told.pop(name, None) is not None:
            self._size -= OVERHEAD_BYTES + len(name)
            self.changed = True
        if tries:
            self._told[name] = tries, until_us
            self._size += OVERHEAD_BYTES + len(name)
            self.changed = True
        while len(self._told) > TOLD_MAX or self._size > TOLD_BYTES_MAX:
            self._drop(next(iter(self._told)))

    def encoded(self, now_us: int) -> bytes:
        """Without what is of no use any more; empty: nothing."""
        for name in [name for name, (_, until_us) in self._told.items() if until_us <= now_us]:
            self._drop(name)
        self.changed = False
        return msgspec.json.encode(self._told) if self._told else b""

    def _drop(self, name: str) -> None:
        del self._told[name]
        self._size -= OVERHEAD_BYTES + len(name)


def tries_topic(label: str, channel_id: str, process: str) -> str:
    return f"{TRIES}{label}/{channel_id}/{process}"
