"""Access rules: the actions that clients may take on topics. docs/guides/security.md, "Authorization".

    [groups]
    operators = ["anna", "ben"]

    [[rule]]
    groups = ["operators"]
    allow = ["publish", "subscribe", "replay", "retain"]
    topics = ["plant/#"]

    [[rule]]                     # a rule without users, groups, client_ids and certificates applies to all
    allow = ["publish", "will"]
    topics = ["device/%c/#"]     # %c is the client id, %u the user name

With a rules file, nothing is allowed without a rule that allows it, and a deny takes precedence over every allow: the
order of rules has no meaning."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Literal, NamedTuple

import msgspec

from rumq.auth.errors import SecretsError
from rumq.auth.filters import overlap
from rumq.auth.identity import Identity
from rumq.auth.permit import Action, Permit
from rumq.auth.permits import Granted, Permits
from rumq.mqtt.errors import TopicFilterInvalid
from rumq.mqtt.topics import check_topic_filter

PLACEHOLDER = re.compile("%[%uc]")


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """users, groups, client_ids, certificates: names, or patterns with * and ?; a client must match each list that is
    present. anonymous: applies only to clients without a user name. allow, deny: actions"""

    users: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    client_ids: tuple[str, ...] = ()
    certificates: tuple[str, ...] = ()
    anonymous: bool = False
    allow: tuple[Action, ...] = ()
    deny: tuple[Action, ...] = ()
    topics: tuple[str, ...]

    def applies_to(self, who: Identity, groups: frozenset[str], client_id: str) -> bool:
        if self.anonymous and who.user is not None:
            return False
        if self.users and (who.user is None or not matches_any(self.users, (who.user,))):
            return False
        if self.groups and not matches_any(self.groups, groups):
            return False
        if self.client_ids and not matches_any(self.client_ids, (client_id,)):
            return False
        if self.certificates:
            shown = who.certificate
            return shown is not None and matches_any(
                self.certificates, (shown.common_name, shown.subject, *shown.names)
            )
        return True


class File(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """forbidden_subscriptions: "refuse", or "grant" without any message, as mosquitto does"""

    forbidden_subscriptions: Literal["refuse", "grant"] = "refuse"
    groups: dict[str, tuple[str, ...]] = {}
    rule: tuple[Rule, ...] = ()


class AppliedRule(NamedTuple):
    """A rule that applies. number: in the file, from 1; effect: "allows" or "denies"; topic_filter: as written"""

    number: int
    effect: str
    topic_filter: str


class RuleSet:
    """The rules of one file, and the permits made from them."""

    def __init__(self, file: File) -> None:
        self._file = file
        self._permits = Permits(quiet=file.forbidden_subscriptions == "grant")

    def groups_of(self, who: Identity) -> frozenset[str]:
        named = {name for name, users in self._file.groups.items() if who.user in users}
        return who.groups | named

    def permit(self, who: Identity, client_id: str) -> Permit:
        """The permissions of a client; clients with equal ones share the object. Cost: a check of every rule"""
        granted, groups = Granted(), self.groups_of(who)
        for rule in self._file.rule:
            if rule.applies_to(who, groups, client_id):
                shared = [topic for topic in rule.topics if "%" not in topic]
                marked = [topic for topic in rule.topics if "%" in topic]
                for actions, denies in ((rule.allow, False), (rule.deny, True)):
                    own = [expanded(topic, who.user, client_id, denies=denies) for topic in marked]
                    granted.add(actions, denies, shared, [topic for topic in own if topic is not None])
        return self._permits.permit_for(granted)

    def explain(self, who: Identity, client_id: str, action: Action, topic: str) -> list[AppliedRule]:
        """All rules that apply to this client, action and topic or filter."""
        groups, found = self.groups_of(who), []
        for number, rule in enumerate(self._file.rule, start=1):
            if not rule.applies_to(who, groups, client_id):
                continue
            for written in rule.topics:
                for actions, effect in ((rule.allow, "allows"), (rule.deny, "denies")):
                    denies = effect == "denies"
                    topic_filter = expanded(written, who.user, client_id, denies=denies)
                    if action in actions and topic_filter is not None and overlap(topic_filter, topic):
                        found.append(AppliedRule(number, effect, written))
        return found


def matches_any(patterns: Iterable[str], names: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns for name in names)


def expanded(topic_filter: str, user: str | None, client_id: str, *, denies: bool = False) -> str | None:
    """The filter for one client, %% as %; None where it does not apply to the client.

    Names with + # / would change the meaning of the filter: an allow is dropped, a deny is widened to everything from
    the level with the name on. A name that begins with $ would make it a filter of the broker's own topics (`$SYS/#`),
    which no wildcard matches: an allow is dropped, a deny holds as it is."""
    names = {"%%": "%", "%u": user, "%c": client_id}
    for found in PLACEHOLDER.finditer(topic_filter):
        name = names[found[0]]
        if name is None:
            return None
        if name.startswith("$") and not denies:
            return None
        if not name or any(sign in name for sign in "+#/"):
            return widened(topic_filter[: found.start()], name) if denies else None
    return PLACEHOLDER.sub(lambda found: names[found[0]] or "", topic_filter)


def widened(before: str, name: str) -> str:
    """A filter for everything below the whole levels of `before`, with + for a level that has a placeholder.

    name: what follows; # at the begin would not match what begins with $"""
    levels = before.split("/")[:-1]
    first = name.partition("/")[0]
    if not before and first.startswith("$") and not set(first) & set("+#"):
        levels = [first]
    return "/".join(["+" if PLACEHOLDER.search(level) else level for level in levels] + ["#"])


def parse(text: str, path: str) -> RuleSet:
    """raises: SecretsError"""
    try:
        tree = tomllib.loads(text)
    except ValueError as fault:
        raise SecretsError(path, 0, f"is not TOML: {fault}") from None
    try:
        file = msgspec.convert(tree, File)
    except msgspec.ValidationError as fault:
        raise SecretsError(path, 0, f"is no file of rules: {fault}") from None
    return RuleSet(checked(file, path))


def checked(file: File, path: str) -> File:
    """The same. raises: SecretsError for a rule that cannot be meant"""
    for number, rule in enumerate(file.rule, start=1):
        if not rule.allow and not rule.deny:
            raise SecretsError(path, 0, f"rule {number}: neither allow nor deny, so it says nothing")
        for name in rule.groups:
            if name not in file.groups and "*" not in name and "?" not in name and file.groups:
                raise SecretsError(path, 0, f"rule {number}: no group {name!r}; there are {', '.join(file.groups)}")
        for topic_filter in rule.topics:
            try:
                check_topic_filter(expanded(topic_filter, "u", "c") or "")
            except TopicFilterInvalid as fault:
                raise SecretsError(path, 0, f"rule {number}: {fault.message}") from None
    return file
