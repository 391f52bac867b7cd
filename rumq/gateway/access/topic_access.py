"""Of which topics a token is told: those that its user may subscribe to and replay, by the rules of the gateway.

The role administer is told all names, which it needs to act, and no payload more. docs/guides/security.md, "Rules over
HTTP"."""

from __future__ import annotations

from msgspec import Struct

from rumq.admin import requests as q
from rumq.admin.operations import AskingUser
from rumq.admin.topic_names import Kind, Tells, leave_out
from rumq.auth.permit import Permit
from rumq.gateway.access.admission import Forbidden
from rumq.gateway.access.tokens import Token
from rumq.mqtt.errors import TopicFilterInvalid
from rumq.mqtt.topics import has_wildcard, parse_share
from rumq.session.protocol.replay_syntax import BadStart, split_replay

OTHER_TOPICS = "#"  # `rumq.session.state.drop_counters`: a row of the ledger for several topics, which names none
SHOWN_MAX = 200


class TopicAccess:
    """permit: of the token's user; None: it may read everything"""

    def __init__(self, token: Token, permit: Permit | None) -> None:
        self._token, self._permit = token, permit

    @property
    def reach(self) -> str:
        """Of all topics "all", "some" or "none" may be read."""
        return "all" if self._permit is None else self._permit.reach("replay", "#")

    def may_read(self, topic: str) -> bool:
        return self._permit is None or self._permit.past.may_receive(topic)

    def maybe_reader(self, tells: Tells) -> AskingUser | None:
        """For whom the shards leave rows out; None: for nobody."""
        if not tells.in_shards or self._is_told_all(tells):
            return None
        return AskingUser(user=self._token.user or None)

    def check(self, tells: Tells, asked: Struct) -> None:
        """raises: Forbidden for a request of which nothing could be told"""
        if self._is_told_all(tells):
            return
        if tells.anywhere and self.reach != "all":
            raise Forbidden(
                f"not permitted: this may name any topic, and the rules let {self._who} read {self.reach} of them: "
                "ask with a token that has the role administer, or whose user may read #"
            )
        place = tells.asked
        named = getattr(asked, place.path) if place is not None else None
        if place is None or named is None:
            if tells.places and tells.asked is not None and self.reach == "none":
                raise self._forbidden("#")
            return
        if isinstance(asked, q.TopicTree) and not named:
            named = "/#" if asked.below_empty else "#"
            if self._permit is not None and self._permit.reach("replay", named) == "none":
                raise self._forbidden(named)
        elif not self._knows(place.kind, named):
            raise self._forbidden(f"{named}/#" if place.kind == "level" else named)

    def leave_out(self, tells: Tells, answer: Struct) -> None:
        """Remove what the token may not be told from an answer."""
        if not self._is_told_all(tells):
            leave_out(answer, tells, self._knows)

    @property
    def _who(self) -> str:
        token = self._token
        return f"user {token.user}" if token.user else f"token {token.name}, which has no user,"

    def _is_told_all(self, tells: Tells) -> bool:
        return self._permit is None or (self._token.may("administer") and not tells.payloads)

    def _knows(self, kind: Kind, text: str) -> bool:
        permit = self._permit
        if permit is None:
            return True
        if kind == "filter":
            text = plain(text)
            if has_wildcard(text):
                return permit.reach("replay", text) != "none"
        elif kind == "level" and permit.reach("replay", f"{text}/#") != "none":
            return True
        return text == OTHER_TOPICS or permit.past.may_receive(text)

    def _forbidden(self, topic: str) -> Forbidden:
        shown = topic if len(topic) <= SHOWN_MAX else f"{topic[:SHOWN_MAX]}..."
        way_out = "ask with a token of a user that may subscribe to it and replay it (rumqd token add NAME --user USER)"
        return Forbidden(f"not permitted: the rules let {self._who} read nothing of {shown!r}: {way_out}")


def plain(written: str) -> str:
    """The topic filter in what a client wrote: without $share/ and $log/ and what belongs to them."""
    try:
        replay = split_replay(written)
        found = written if replay is None else replay[1]
        share = parse_share(found)
        return found if share is None else share[1]
    except (BadStart, TopicFilterInvalid):
        return written
