"""Read mosquitto's ACL file into rules. mosquitto.conf(5), acl_file."""

from __future__ import annotations

import re

from rumq.auth.permit import Action
from rumq.auth.rules import File, Rule, RuleSet, checked
from rumq.mosquitto.errors import MosquittoFileError

READ: tuple[Action, ...] = ("subscribe",)
WRITE: tuple[Action, ...] = ("publish", "retain", "will")
ACCESS: dict[str, tuple[tuple[Action, ...], tuple[Action, ...]]] = {
    "read": (READ, ()), "write": (WRITE, ()), "readwrite": (READ + WRITE, ()), "deny": ((), READ + WRITE),
}  # fmt: skip


def parse_acl(text: str, path: str) -> RuleSet:
    """raises: MosquittoFileError, SecretsError"""
    return RuleSet(checked(file_of(text, path), path))


def file_of(text: str, path: str) -> File:
    """What the file says, in our words. Lines before the first user are for anonymous clients, patterns for all."""
    rules: list[Rule] = []
    user: str | None = None
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        key, _, value = line.partition(" ")
        value = value.strip()
        if key == "user":
            if not value:
                raise MosquittoFileError(path, number, "user: expected a name")
            user = value
        elif key in ("topic", "pattern"):
            rules.append(rule(key, value, user, path, number))
        else:
            raise MosquittoFileError(path, number, f"{key!r}: expected user, topic or pattern")
    return File(forbidden_subscriptions="grant", rule=tuple(rules))


def rule(key: str, value: str, user: str | None, path: str, number: int) -> Rule:
    word, _, rest = value.partition(" ")
    if word in ACCESS and rest.strip():
        allow, deny = ACCESS[word]
        topic = rest.strip()
    else:
        (allow, deny), topic = ACCESS["readwrite"], value
    if not topic:
        raise MosquittoFileError(path, number, f"{key}: expected a topic filter")
    if key == "pattern":
        return Rule(allow=allow, deny=deny, topics=(re.sub("%(?![uc])", "%%", topic),))
    topic = topic.replace("%", "%%")
    if user is None:
        return Rule(anonymous=True, allow=allow, deny=deny, topics=(topic,))
    return Rule(users=(literal(user),), allow=allow, deny=deny, topics=(topic,))


def literal(name: str) -> str:
    """A pattern that fits this name alone."""
    return re.sub(r"([*?[])", r"[\1]", name)
