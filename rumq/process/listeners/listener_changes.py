"""Which listeners of new settings are those of the settings in force: by address, protocol and whether there is TLS.

A listener has a number for as long as the broker runs; it keeps it wherever it stands in the file."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from typing import NamedTuple

import msgspec

from rumq.process.listeners.gateway_listener import is_gateway
from rumq.settings.table import Listener, Settings


class Pair(NamedTuple):
    """A listener there is to be. before, after: its place in the settings in force, in the new ones; None: not there"""

    before: int | None
    after: int | None


def name_of(listener: Listener) -> str:
    return listener.path or f"{listener.host}:{listener.port}"


def identity_of(listener: Listener) -> str:
    """Of two listeners with the same, the first is the first."""
    return f"{name_of(listener)} {listener.protocol}{' over TLS' if listener.tls_certificate else ''}"


def identities(settings: Settings) -> Counter[str]:
    """Of all listeners but the gateway's."""
    return Counter(identity_of(each) for each in settings.listeners if not is_gateway(settings, each))


def are_fixed(settings: Settings) -> bool:
    """Whether listeners come and go only at a start: leaders on other nodes know a listener by its place."""
    return bool(settings.cluster.name)


def paired(old: Settings, new: Settings) -> list[Pair]:
    """The listeners after a reload, in the order of the new settings. Old ones that are in no pair are removed.

    The gateway's own follows the gateway, which begins and ends with the broker. Of a node all stay, and none come."""
    free: defaultdict[str, deque[int]] = defaultdict(deque)
    for number, listener in enumerate(old.listeners):
        free[identity_of(listener)].append(number)
    pairs = []
    for number, listener in enumerate(new.listeners):
        known = free[identity_of(listener)]
        before = known.popleft() if known else None
        if before is not None or not (are_fixed(old) or is_gateway(new, listener)):
            pairs.append(Pair(before, number))
    left = sorted(number for numbers in free.values() for number in numbers)
    if are_fixed(old):
        return sorted([*pairs, *(Pair(number, None) for number in left)], key=lambda pair: pair.before or 0)
    return pairs + [Pair(number, None) for number in left if is_gateway(old, old.listeners[number])]


def removed(old: Settings, pairs: list[Pair]) -> list[int]:
    """Places in the settings in force of those that are no more."""
    stay = {before for before, _ in pairs}
    return [number for number in range(len(old.listeners)) if number not in stay]


def with_listeners(settings: Settings, listeners: list[Listener]) -> Settings:
    return msgspec.structs.replace(settings, listener=listeners[0], more_listeners=tuple(listeners[1:]))
