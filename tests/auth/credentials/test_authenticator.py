"""The methods of a listener are tried in order; the first that recognizes the client decides.

docs/guides/security.md."""

import pytest

from rumq.auth.credentials.authenticator import OPEN, Authenticator, outcome
from rumq.auth.errors import BAD_METHOD, BAD_USER_NAME_OR_PASSWORD, NOT_AUTHORIZED, Denied
from rumq.auth.identity import Certificate, Challenge, Credentials, Identity, Steps, Work


class Method:
    """Recognizes one user, after a piece of work."""

    def __init__(self, name: str, user: str) -> None:
        self.name, self._user = name, user

    def check(self, credentials: Credentials) -> Steps:
        if credentials.username != self._user:
            return None
        if (yield Work("hash", lambda: credentials.password == b"right")):
            return Identity(self._user, method=self.name)
        raise Denied(BAD_USER_NAME_OR_PASSWORD, "wrong password", guess=True)


class Enhanced:
    """MQTT 5.0, 4.12: challenges the client."""

    name = "CHALLENGE"

    def check(self, credentials: Credentials) -> Steps:
        reply = yield Challenge(b"who?")
        return Identity(reply.decode(), method=self.name) if reply else None


def authenticate(authenticator: Authenticator, credentials: Credentials, *replies: object) -> Identity:
    steps, answers = authenticator.authenticate(credentials), iter(replies)
    step = outcome(steps)
    while not isinstance(step, Identity):
        step = outcome(steps, step.run() if isinstance(step, Work) else next(answers))
    return step


METHODS = [Method("first", "anna"), Method("second", "anna"), Method("third", "ben")]


def test_the_first_method_that_recognizes_the_client_decides() -> None:
    found = [authenticate(Authenticator(METHODS), Credentials("c", user, b"right")).method for user in ("anna", "ben")]
    assert found == ["first", "third"]
    with pytest.raises(Denied) as denied:
        authenticate(Authenticator(METHODS), Credentials("c", "anna", b"wrong"))
    assert denied.value.guess, "the second method is not tried"


@pytest.mark.parametrize(
    ("credentials", "reason", "guess"),
    [
        (Credentials("c"), NOT_AUTHORIZED, False),
        (Credentials("c", "carl", b"x"), BAD_USER_NAME_OR_PASSWORD, True),
        (Credentials("c", "carl"), BAD_USER_NAME_OR_PASSWORD, True),
        (Credentials("c", method="unheard of"), BAD_METHOD, False),
    ],
)
def test_a_client_that_no_method_recognizes_is_refused(credentials: Credentials, reason: int, guess: bool) -> None:
    with pytest.raises(Denied) as denied:
        authenticate(Authenticator(METHODS), credentials)
    assert (denied.value.reason, denied.value.guess) == (reason, guess)


def test_anonymous_clients_are_accepted_where_the_listener_says_so() -> None:
    certificate = Certificate("cn", "CN=cn")
    for authenticator in (OPEN, Authenticator(METHODS, anonymous=True)):
        found = authenticate(authenticator, Credentials("c", certificate=certificate))
        assert (found.user, found.method, found.certificate) == (None, "anonymous", certificate)


def test_an_open_listener_without_methods_accepts_any_name_unverified() -> None:
    """No session and no quota counts for such a name: `rumq.session.state.session_owner`."""
    found = authenticate(OPEN, Credentials("c", "anna", b"anything"))
    assert (found.user, found.method) == ("anna", "unverified")


def test_a_listener_without_any_way_in_refuses_all() -> None:
    for credentials in (Credentials("c"), Credentials("c", "anna", b"right")):
        with pytest.raises(Denied) as denied:
            authenticate(Authenticator(), credentials)
        assert denied.value.reason == NOT_AUTHORIZED


def test_enhanced_authentication_is_by_the_method_that_the_client_names() -> None:
    """MQTT 5.0, 4.12; MQTT-4.12.0-1."""
    authenticator = Authenticator(METHODS, enhanced=[Enhanced()])
    credentials = Credentials("c", "anna", b"right", method="CHALLENGE")
    assert authenticate(authenticator, credentials, b"dora") == Identity("dora", method="CHALLENGE")
    with pytest.raises(Denied) as denied:
        authenticate(authenticator, credentials, b"")
    assert denied.value.reason == NOT_AUTHORIZED
