"""Listener policies from settings: authentication methods, limits and rules of each listener, with their files read.

SIGHUP reads the files again."""

from __future__ import annotations

import secrets
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from rumq.auth.credentials.authenticator import Authenticator
from rumq.auth.credentials.callout import CallOut
from rumq.auth.credentials.certificates import Certificates
from rumq.auth.credentials.files import exposed, read_rules, read_secrets
from rumq.auth.credentials.passwords import Passwords, parse
from rumq.auth.credentials.scram import Scram
from rumq.auth.credentials.verification_cache import VerificationCache
from rumq.auth.credentials.vouched import Vouched
from rumq.auth.errors import SecretsError
from rumq.auth.identity import Identity, Method
from rumq.auth.rules import RuleSet
from rumq.auth.rules import parse as parse_rules
from rumq.errors import ConfigError, Fault
from rumq.events.event_log import tell
from rumq.mosquitto.acl import parse_acl
from rumq.mosquitto.errors import MosquittoFileError
from rumq.net.http_post import post
from rumq.process.listeners.broker_secret import maybe_secret
from rumq.process.listeners.gateway_listener import is_gateway
from rumq.process.listeners.limits import limits
from rumq.process.listeners.listener_changes import name_of
from rumq.session.flow_control.listener_policy import ListenerPolicy
from rumq.session.flow_control.rate_limits import Quotas, Rate, Rates
from rumq.settings.loopback import is_loopback
from rumq.settings.table import Flight, Grpc, Kafka, Listener, Settings

if TYPE_CHECKING:
    from rumq.auth.credentials.tokens import TokenLogin

VERSIONS = {"3.1": 3, "3.1.1": 4, "5": 5}  # the protocol level of CONNECT
KNOWN = ("certificate", "token", "password", "http")
FLIGHT, GRPC, KAFKA = -1, -2, -3  # in place of a listener's index
SERVERS = {FLIGHT: "flight", GRPC: "grpc", KAFKA: "kafka"}


class ListenerPolicies:
    """Policies in the order of the listeners; a file that several name is read once. raises: ConfigError"""

    def __init__(self, settings: Settings, *, says_exposed: bool = True) -> None:
        """says_exposed: report files of secrets that other users can read, if they are not refused"""
        self._settings = settings
        self._says_exposed = says_exposed
        # A data directory without a broker so far has no secret yet.
        self._secret = maybe_secret(settings.data.dir) or secrets.token_bytes(32)
        self._remembered: VerificationCache[bool] = VerificationCache(settings.auth.remember_seconds_max)
        self._answers: VerificationCache[Identity] = VerificationCache(settings.auth.http_remember_seconds_max)
        self._passwords: dict[str, Passwords] = {}
        self._rules: dict[str, RuleSet] = {}
        self.policies = [self._policy(number, each) for number, each in enumerate(settings.listeners)]

    def flight(self) -> ListenerPolicy:
        """The one of Flight: authentication and rules, as a listener's with the same keys. raises: ConfigError"""
        return self._policy(FLIGHT, as_listener(self._settings.flight))

    def grpc(self) -> ListenerPolicy:
        """The one of gRPC; its rules are those of users of tokens. raises: ConfigError"""
        listener = grpc_as_listener(self._settings.grpc)
        rules_file = self._settings.gateway.rules_file
        return self._policy(GRPC, msgspec.structs.replace(listener, rules_file=rules_file))

    def kafka(self) -> ListenerPolicy:
        """The one of Kafka: authentication and rules, as a listener's with the same keys. raises: ConfigError"""
        return self._policy(KAFKA, kafka_as_listener(self._settings.kafka))

    def _policy(self, number: int, listener: Listener) -> ListenerPolicy:
        broker_limits = limits(self._settings)
        own = msgspec.structs.replace(
            broker_limits,
            maximum_qos=min(broker_limits.maximum_qos, listener.maximum_qos),
            receive_maximum=min(broker_limits.receive_maximum, listener.receive_maximum),
            inflight_max=min(broker_limits.inflight_max, listener.inflight_max),
            subscriptions_max=min(broker_limits.subscriptions_max, listener.subscriptions_max),
            topic_alias_maximum=min(broker_limits.topic_alias_maximum, listener.topic_alias_maximum),
            connect_seconds_max=listener.connect_seconds_max,
        )
        return ListenerPolicy(
            number, self._authenticator(number, listener), own, rules=self._maybe_rules(number, listener),
            quotas=self._quotas(listener),
            certificate_as_user=listener.certificate_as_user,
            user_as_client_id=listener.user_as_client_id, client_id_prefixes=listener.client_id_prefixes,
            versions=versions_of(number, listener),
            assigned_prefix=listener.assigned_prefix, empty_client_id=listener.empty_client_id,
            exact_refusals=self._settings.auth.exact_refusals,
            name=name_of(listener), mount_point=listener.mount_point,
            is_gateway=is_gateway(self._settings, listener),
        )  # fmt: skip

    def _quotas(self, listener: Listener) -> Quotas:
        auth = self._settings.auth
        return Quotas(
            Rates(
                Rate(listener.client_messages_per_second_max, listener.client_bytes_per_second_max),
                Rate(auth.user_messages_per_second_max, auth.user_bytes_per_second_max),
                Rate(listener.messages_per_second_max, listener.bytes_per_second_max),
            ),
            Rates(
                Rate(0, listener.client_replay_bytes_per_second_max),
                Rate(0, auth.user_replay_bytes_per_second_max),
                Rate(0, listener.replay_bytes_per_second_max),
            ),
            auth.user_connections_max,
            auth.user_topics_max,
            auth.user_sessions_max,
        )

    def _maybe_rules(self, number: int, listener: Listener) -> RuleSet | None:
        of_gateway = number == GRPC or is_gateway(self._settings, listener)
        section = "gateway" if of_gateway else key_of(number)
        key = f"{section}.rules_file" if listener.rules_file else "auth.rules_file"
        path = listener.rules_file or self._settings.auth.rules_file
        if path and path not in self._rules:
            try:
                self._rules[path] = rules_in(path)
            except (SecretsError, MosquittoFileError) as fault:
                raise ConfigError(Fault("", key, "", str(fault))) from None
        return self._rules[path] if path else None

    def _authenticator(self, number: int, listener: Listener) -> Authenticator:
        if is_gateway(self._settings, listener):
            return Authenticator([Vouched()], anonymous=True)
        auth = self._settings.auth
        where = key_of(number) if listener.methods else "auth"
        names = listener.methods or auth.methods
        for name in names:
            if name not in KNOWN:
                allowed = ", ".join(f'"{known}"' for known in KNOWN)
                raise ConfigError(Fault("", f"{where}.methods", f'"{name}"', f"expected a list of {allowed}"))
        found = {
            name: method for name in KNOWN if (method := self._maybe_method(name, number, listener, name in names))
        }
        methods = [found[name] for name in names or KNOWN if name in found]
        users = self._users(number, listener)
        scram = Scram(users.users, self._secret) if users is not None else None
        return Authenticator(
            methods, anonymous=anonymous_allowed(self._settings, listener), enhanced=[scram] if scram else []
        )

    def _maybe_method(self, name: str, number: int, listener: Listener, wanted: bool) -> Method | None:
        auth = self._settings.auth
        if name == "certificate":
            if listener.tls_client_certificate != "no" and listener.certificate_as_user != "no":
                return Certificates(listener.certificate_as_user)
            return None
        made: Method | None = None
        if name == "password":
            needs = "password_file"
            made = self._users(number, listener)
        elif name == "token":
            needs = "token_keys_file"
            if auth.token_keys_file:
                made = self._tokens()
        else:
            needs = "http_url"
            if auth.http_url:
                made = CallOut(partial(post, auth.http_url, auth.http_seconds_max), self._answers)
        if made is None and wanted:
            raise ConfigError(Fault("", f"auth.{needs}", "", f'is missing, and methods has "{name}"'))
        return made

    def _users(self, number: int, listener: Listener) -> Passwords | None:
        key = f"{key_of(number)}.password_file" if listener.password_file else "auth.password_file"
        path = listener.password_file or self._settings.auth.password_file
        return self._password_file(key, path) if path else None

    def _tokens(self) -> TokenLogin:
        from rumq.auth.credentials.tokens import Claims, TokenLogin, parse_keys  # their libraries are 5 MB

        auth = self._settings.auth
        path = auth.token_keys_file
        claims = Claims(
            auth.token_issuer, auth.token_audience, auth.token_user_claim, auth.token_groups_claim,
            auth.token_client_id_claim, auth.token_expiry_required,
        )  # fmt: skip
        try:
            return TokenLogin(parse_keys(self._secrets(path), path), claims)
        except SecretsError as fault:
            raise ConfigError(Fault("", "auth.token_keys_file", "", str(fault))) from None

    def _secrets(self, path: str) -> str:
        strict = self._settings.auth.exposed_files == "refuse"
        if self._says_exposed and not strict and (problem := exposed(path)):
            tell("secrets.exposed", path=path, why=problem)
        return read_secrets(path, strict=strict)

    def _password_file(self, key: str, path: str) -> Passwords:
        if path not in self._passwords:
            try:
                users = parse(self._secrets(path), path)
            except SecretsError as fault:
                raise ConfigError(Fault("", key, "", str(fault))) from None
            self._passwords[path] = Passwords(users, self._remembered, self._secret)
        return self._passwords[path]


def rules_in(path: str) -> RuleSet:
    """A rules file, rumq's (.toml) or mosquitto's. raises: SecretsError, MosquittoFileError"""
    text = read_rules(path)
    return parse_rules(text, path) if path.endswith(".toml") else parse_acl(text, path)


def as_listener(flight: Flight) -> Listener:
    """Flight's settings as a listener. A client certificate admits but names no user: gRPC reports only one of its
    names, and not which."""
    return Listener(
        host=flight.host, tls_certificate=flight.tls_certificate, tls_key=flight.tls_key,
        tls_authority=flight.tls_authority, tls_client_certificate="required" if flight.tls_authority else "no",
        anonymous=flight.anonymous, password_file=flight.password_file, rules_file=flight.rules_file,
        certificate_as_user="no",
    )  # fmt: skip


def grpc_as_listener(grpc: Grpc) -> Listener:
    """gRPC's settings as a listener."""
    return Listener(
        host=grpc.host, tls_certificate=grpc.tls_certificate, tls_key=grpc.tls_key, tls_authority=grpc.tls_authority,
        tls_client_certificate="required" if grpc.tls_authority else "no", anonymous=grpc.anonymous,
        password_file=grpc.password_file, certificate_as_user=grpc.certificate_as_user,
    )  # fmt: skip


def kafka_as_listener(kafka: Kafka) -> Listener:
    """Kafka's settings as a listener."""
    return Listener(
        host=kafka.host, tls_certificate=kafka.tls_certificate, tls_key=kafka.tls_key,
        tls_authority=kafka.tls_authority, tls_client_certificate="required" if kafka.tls_authority else "no",
        anonymous=kafka.anonymous, password_file=kafka.password_file, rules_file=kafka.rules_file,
        certificate_as_user=kafka.certificate_as_user,
    )  # fmt: skip


def versions_of(number: int, listener: Listener) -> frozenset[int]:
    """raises: ConfigError"""
    for name in listener.mqtt_versions:
        if name not in VERSIONS:
            allowed = ", ".join(f'"{known}"' for known in VERSIONS)
            raise ConfigError(Fault("", f"{key_of(number)}.mqtt_versions", f'"{name}"', f"expected some of {allowed}"))
    return frozenset(VERSIONS[name] for name in listener.mqtt_versions or VERSIONS)


def key_of(number: int) -> str:
    if number in SERVERS:
        return SERVERS[number]
    return "listener" if number == 0 else f"listener number {number + 1}"


def anonymous_allowed(settings: Settings, listener: Listener) -> bool:
    """Whether a client without user name is admitted."""
    asked = settings.auth.anonymous if listener.anonymous == "auth" else listener.anonymous
    if asked != "auto":
        return asked == "yes"
    users = listener.password_file or settings.auth.password_file or listener.tls_client_certificate == "required"
    return not users and (bool(listener.path) or is_loopback(listener.host))
