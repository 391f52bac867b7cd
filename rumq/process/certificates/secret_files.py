"""Secret files of [cluster]: refused, or told, if other users of this machine can read them, as a listener's key is."""

from __future__ import annotations

from collections.abc import Iterator

from rumq.auth.credentials.files import exposed
from rumq.auth.errors import SecretsError
from rumq.errors import ConfigError, Fault
from rumq.events.event_log import tell
from rumq.process.listeners.transports import holds_key
from rumq.settings.table import Settings


def check_secret_files(settings: Settings, *, says_exposed: bool = False) -> None:
    """says_exposed: tell of those that are not refused, by auth.exposed_files. raises: ConfigError"""
    strict = settings.auth.exposed_files == "refuse"
    for key, path in secret_files(settings):
        if not (problem := exposed(path)):
            continue
        if strict:
            raise ConfigError(Fault("", f"cluster.{key}", "", str(SecretsError(path, 0, problem))))
        if says_exposed:
            tell("secrets.exposed", path=path, why=problem)


def secret_files(settings: Settings) -> Iterator[tuple[str, str]]:
    """Keys of [cluster], with the paths that they name."""
    cluster = settings.cluster
    for key, path in (
        ("tls_key", cluster.tls_key or cluster.tls_certificate),
        ("etcd_key", cluster.etcd_key or cluster.etcd_certificate),
    ):
        if path and holds_key(path):
            yield key, path
    if cluster.etcd_password_file:
        yield "etcd_password_file", cluster.etcd_password_file
