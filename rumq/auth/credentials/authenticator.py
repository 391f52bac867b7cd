"""Authentication for one listener: its methods in their order, and whether anonymous clients are accepted.

`Credentials` of a CONNECT come in; steps and an `Identity` go out."""
# compiled: warm

from __future__ import annotations

from collections.abc import Sequence

from rumq.auth.errors import BAD_METHOD, BAD_USER_NAME_OR_PASSWORD, NOT_AUTHORIZED, Denied
from rumq.auth.identity import ANONYMOUS, Credentials, Identity, Method, Steps


class Authenticator:
    """methods: tried in this order; the first that recognizes the client decides

    anonymous: whether a client without credentials is accepted
    enhanced: methods of MQTT 5.0, 4.12, by their names
    """

    def __init__(
        self, methods: Sequence[Method] = (), *, anonymous: bool = False, enhanced: Sequence[Method] = ()
    ) -> None:
        self.methods = tuple(methods)
        self.anonymous = anonymous
        self.enhanced = {method.name: method for method in enhanced}

    def authenticate(self, credentials: Credentials) -> Steps:
        """The client's identity. raises: Denied"""
        if credentials.method is not None:
            method = self.enhanced.get(credentials.method)
            if method is None:
                known = ", ".join(self.enhanced) or "none"
                raise Denied(BAD_METHOD, f"authentication method {credentials.method!r}; served here: {known}")
            found = yield from method.check(credentials)
            if found is None:
                raise Denied(NOT_AUTHORIZED, f"{method.name} did not tell who the client is", guess=True)
            return found
        for method in self.methods:
            found = yield from method.check(credentials)
            if found is not None:
                return found
        if credentials.anonymous:
            if self.anonymous:
                if credentials.certificate is None:
                    return ANONYMOUS
                return Identity(certificate=credentials.certificate)
            raise Denied(NOT_AUTHORIZED, "no user name and no password, and anonymous clients may not come in")
        if not self.methods:
            if self.anonymous:
                # No method checks the name: an open listener accepts it as the client gives it.
                return Identity(credentials.username, method="unverified", certificate=credentials.certificate)
            raise Denied(NOT_AUTHORIZED, "no user is set up for this listener")
        if credentials.password is None and credentials.username is not None:
            raise Denied(BAD_USER_NAME_OR_PASSWORD, f"user {credentials.username!r} gave no password", guess=True)
        raise Denied(BAD_USER_NAME_OR_PASSWORD, f"user {credentials.username!r} is not known", guess=True)


OPEN = Authenticator(anonymous=True)


def outcome(steps: Steps, answer: object = None) -> object:
    """The next step, or the `Identity` that ended them. raises: Denied"""
    try:
        return steps.send(answer)
    except StopIteration as end:
        found: object = end.value
        return found
