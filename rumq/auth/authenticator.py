"""The way in through one listener: its methods in their order, and whether one may come in without any.

Knows no packet: what a CONNECT brought comes in as `Credentials`, steps and an `Identity` go out."""

from __future__ import annotations

from collections.abc import Sequence

from rumq.auth.errors import BAD_METHOD, BAD_USER_NAME_OR_PASSWORD, NOT_AUTHORIZED, Denied
from rumq.auth.identity import Credentials, Identity, Method, Steps


class Authenticator:
    """methods: asked in this order, the first that knows the client decides

    anonymous: whether a client that shows nothing comes in
    enhanced: methods of MQTT 5.0, 4.12, by the name that a client asks for
    """

    def __init__(
        self, methods: Sequence[Method] = (), *, anonymous: bool = False, enhanced: Sequence[Method] = ()
    ) -> None:
        self.methods = tuple(methods)
        self.anonymous = anonymous
        self.enhanced = {method.name: method for method in enhanced}

    @property
    def closed(self) -> bool:
        """Whether nobody can come in here."""
        return not (self.anonymous or self.methods or self.enhanced)

    def enter(self, shown: Credentials) -> Steps:
        """Who the client is. raises: Denied"""
        if shown.method is not None:
            method = self.enhanced.get(shown.method)
            if method is None:
                known = ", ".join(self.enhanced) or "none"
                raise Denied(BAD_METHOD, f"authentication method {shown.method!r}; served here: {known}")
            found = yield from method.check(shown)
            if found is None:
                raise Denied(NOT_AUTHORIZED, f"{method.name} did not tell who the client is", guess=True)
            return found
        for method in self.methods:
            found = yield from method.check(shown)
            if found is not None:
                return found
        if shown.anonymous:
            if self.anonymous:
                return Identity(certificate=shown.certificate)
            raise Denied(
                NOT_AUTHORIZED, "no user name and no password, and anonymous clients may not come in"
            )
        if not self.methods:
            if self.anonymous:
                # Nobody can check the name; who opened the door to everybody has it as the client says it.
                return Identity(shown.username, method="unverified", certificate=shown.certificate)
            raise Denied(NOT_AUTHORIZED, "no user is set up for this listener")
        if shown.password is None and shown.username is not None:
            raise Denied(BAD_USER_NAME_OR_PASSWORD, f"user {shown.username!r} gave no password", guess=True)
        raise Denied(BAD_USER_NAME_OR_PASSWORD, f"user {shown.username!r} is not known", guess=True)


OPEN = Authenticator(anonymous=True)


def outcome(steps: Steps, answer: object = None) -> object:
    """The next step, or the `Identity` that ended them. raises: Denied"""
    try:
        return steps.send(answer)
    except StopIteration as end:
        found: object = end.value
        return found
