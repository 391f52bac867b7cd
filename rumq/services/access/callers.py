"""Who calls: a user with rules, and the roles of a token. The checks are those of MQTT, REST and Flight.

A token of the gateway has its roles; a user (password, JSON Web Token, client certificate, or anonymous where that is
allowed) may publish, read and follow what the rules allow, and nothing that concerns others. Failed logins are slowed
by network. Logins that were right a moment ago are remembered, so that a call costs no hash.

Blocking checks run on threads of their own. docs/guides/services.md"""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple

from rumq.admin.operations import Role
from rumq.auth.errors import SERVER_BUSY, Denied
from rumq.auth.identity import Certificate, Identity
from rumq.auth.permit import Permit
from rumq.auth.rules import RuleSet
from rumq.flight.serving.call_authorization import CallAuthorization
from rumq.gateway.access.admission import RequestAdmission, Unauthorized
from rumq.gateway.access.tokens import PREFIX, Token
from rumq.services.contract.faults import CallFault

REMEMBERED_SECONDS, REMEMBERED_MAX = 5.0, 10_000
THREADS_MAX = 160  # more than refusals that may be delayed (rumq.flight.serving.login_turns), so that right logins run
USER_ROLES: frozenset[Role] = frozenset(("publish", "read"))
BEARER = f"bearer {PREFIX}"


class GrpcCaller(NamedTuple):
    """user: as whom it publishes, None: anonymous; permit: None: everything is allowed

    token: of the gateway, if it is one; expires_us: µs since 1970, None: never"""

    user: str | None
    permit: Permit | None
    roles: frozenset[Role]
    token: Token | None = None
    expires_us: int | None = None

    @property
    def name(self) -> str:
        """For quotas, and for people."""
        if self.token is not None:
            return f"token {self.token.name}"
        return f"user {self.user}" if self.user is not None else "an anonymous caller"

    @property
    def holder(self) -> str:
        """For whom calls are counted; empty: an anonymous caller, who has only a network."""
        return "" if self.user is None and self.token is None else self.name

    def check_role(self, role: Role, *, of_token: bool = False) -> None:
        """of_token: what a user may not do without a token. raises: CallFault"""
        if role in self.roles and (self.token is not None or not of_token):
            return
        if self.token is None:
            raise CallFault(
                "ROLE_MISSING",
                f"{self.name} may not: the call needs a token of the gateway with the role {role}; "
                f"rumqd token add NAME --role {role} makes one",
                role=role,
            )
        has = ", ".join(sorted(self.roles)) or "none"
        raise CallFault("ROLE_MISSING", f"{self.name} may not {role}: its roles are {has}", role=role)

    def check_token_role(self, role: Role) -> None:
        """Where rules decide of users, as of MQTT clients: a token needs a role besides. raises: CallFault"""
        if self.token is not None:
            self.check_role(role)

    def may_read(self, topic: str) -> bool:
        return self.permit is None or self.permit.past.may_receive(topic)

    def may_read_any(self, topic_filter: str) -> bool:
        return self.permit is None or self.permit.reach("replay", topic_filter) != "none"

    def may_publish(self, topic: str, *, retain: bool) -> bool:
        """The broker asks again, as it knows the user. This one also knows groups and certificates of the login."""
        permit = self.permit
        return permit is None or (permit.may("publish", topic) and (not retain or permit.may("retain", topic)))


class Callers:
    """now: monotonic seconds; now_us: µs since 1970"""

    def __init__(
        self, authorization: CallAuthorization, admission: RequestAdmission, rules: RuleSet | None, *,
        now: Callable[[], float], now_us: Callable[[], int], sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:  # fmt: skip
        self._authorization, self.admission, self.rules = authorization, admission, rules
        self._now, self._now_us, self._sleep = now, now_us, sleep
        self._known: OrderedDict[bytes, tuple[float, GrpcCaller]] = OrderedDict()
        self._threads = ThreadPoolExecutor(THREADS_MAX, "login")
        self.generation = 0  # raised by each reload
        self.refused = 0

    def replace(self, rules: RuleSet | None, tokens: dict[str, Token]) -> None:
        """Rules and tokens have changed, and users with them: who logged in is asked again, also within a call."""
        self.rules, self.admission.tokens = rules, tokens
        self._known.clear()
        self.generation += 1

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def login(self, header: str | None, peer: str, certificate: Certificate | None) -> CallerLogin:
        """raises: CallFault, after a delay for who guesses"""
        generation = self.generation
        return CallerLogin(
            self,
            partial(self.caller, header, peer, certificate),
            generation,
            await self.caller(header, peer, certificate),
        )

    async def caller(self, header: str | None, peer: str, certificate: Certificate | None) -> GrpcCaller:
        """header: of the metadata `authorization`; peer: address without port. raises: CallFault, after a delay"""
        if header is not None and header[: len(BEARER)].lower() == BEARER:
            return await self._of_token(header, peer)
        key = hashlib.sha256(repr((header, certificate)).encode(errors="surrogatepass")).digest()
        until, caller = self._known.get(key, (0.0, None))
        if caller is not None and until > self._now():
            return caller
        generation = self.generation
        found = await self._of_user(header, peer, certificate)
        if generation == self.generation:
            self._known[key] = self._until(found), found
            if len(self._known) > REMEMBERED_MAX:
                self._known.popitem(last=False)
        return found

    def has_ended(self, caller: GrpcCaller) -> str:
        """Why a login is good no more, for calls that last; empty: it is."""
        if caller.token is not None:
            try:
                self.admission.check(caller.token)
            except Unauthorized as fault:
                return fault.why
        if caller.expires_us is not None and caller.expires_us <= self._now_us():
            return "the token has expired: log in with another one"
        return ""

    def _until(self, caller: GrpcCaller) -> float:
        seconds = REMEMBERED_SECONDS
        if caller.expires_us is not None:
            seconds = min(seconds, (caller.expires_us - self._now_us()) / 1e6)
        return self._now() + seconds

    async def _of_token(self, header: str, peer: str) -> GrpcCaller:
        try:
            token = self.admission.token_of(header, peer, self._now())
        except Unauthorized as fault:
            self.refused += 1
            if fault.seconds:
                if not self.admission.has_room(peer):
                    raise too_many_logins() from None
                with self.admission.delayed(peer):
                    await self._sleep(fault.seconds)
            raise CallFault("LOGIN_REQUIRED", fault.why) from None
        permit = None if self.rules is None else self.rules.permit(Identity(token.user or None), "")
        return GrpcCaller(token.user or None, permit, token.roles, token, token.expires_us or None)

    async def _of_user(self, header: str | None, peer: str, certificate: Certificate | None) -> GrpcCaller:
        check = partial(self._authorization.authorize, header, peer, certificate)
        try:
            found = await asyncio.get_running_loop().run_in_executor(self._threads, check)
        except Denied as denied:
            self.refused += 1
            if denied.reason == SERVER_BUSY:
                raise too_many_logins() from None
            why = self._authorization.refusal_text(denied)
            way_out = "give metadata authorization: Basic with user and password, or Bearer with a token"
            raise CallFault("LOGIN_REQUIRED", f"{why}: {way_out}") from None
        return GrpcCaller(found.user, found.permit, USER_ROLES, expires_us=found.expires_us)


class CallerLogin:
    """Of one call that lasts. caller: as it was when it was looked at last"""

    def __init__(
        self, callers: Callers, again: Callable[[], Awaitable[GrpcCaller]], generation: int, caller: GrpcCaller
    ) -> None:
        self._callers, self._again, self._generation = callers, again, generation
        self.caller = caller

    async def look_again(self) -> GrpcCaller:
        """Anew, if users, tokens or rules have changed. raises: CallFault when the login is good no more"""
        if why := self._callers.has_ended(self.caller):
            raise CallFault("LOGIN_ENDED", why)
        generation = self._callers.generation
        if generation != self._generation:
            try:
                self.caller = await self._again()
            except CallFault as fault:
                raise CallFault("LOGIN_ENDED", fault.detail) from None
            self._generation = generation
        return self.caller


def too_many_logins() -> CallFault:
    return CallFault("TOO_MANY_LOGINS", "too many wrong logins from there wait already: try again later")
