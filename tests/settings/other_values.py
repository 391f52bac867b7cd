"""Another allowed value of each key."""

from __future__ import annotations

from typing import Any, Literal, get_args, get_origin

from rumq.settings.keys import Key


def other_value(key: Key, now: Any = None) -> object:
    """now: what the key has, where that is not the default"""
    value, plain = key.default if now is None else now, key.plain
    if isinstance(value, bool):
        return not value
    if get_origin(plain) is Literal:
        return next(each for each in get_args(plain) if each != value)
    if isinstance(value, str):
        return f"{value}x"
    if isinstance(value, list | tuple):
        return (*value, "x")
    return value + 1 if value + 1 <= (key.most or 0) else value - 1
