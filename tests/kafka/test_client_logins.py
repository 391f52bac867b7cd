"""Clients of Kafka as their makers ship them log in by PLAIN and SCRAM-SHA-256, and see what the rules let them see.

kcat is not among them for SCRAM: Debian's has a librdkafka that sends its nonce twice (docs/reference/kafka.md)."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rumq.auth.credentials import hashes
from tests.kafka.conftest import KafkaBroker, kafka_broker
from tests.kafka.test_clients import module

PASSWORD, SECONDS = "secret", 20.0
RULES = '[[rule]]\nusers = ["plain", "scram"]\nallow = ["subscribe", "replay"]\ntopics = ["plant/#"]\n'
LOGINS = [("PLAIN", "plain"), ("SCRAM-SHA-256", "scram")]
Listing = Callable[[str, str, str, str], set[str]]  # address, mechanism, user, password


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    folder: Path = tmp_path_factory.mktemp("logins")
    salt = b"salt of sixteen."
    users = {
        "plain": hashes.argon2id(PASSWORD.encode(), salt),
        "scram": hashes.scram(PASSWORD.encode(), salt),
        "none": hashes.argon2id(PASSWORD.encode(), salt),
    }
    (folder / "users").touch(mode=0o600)
    (folder / "users").write_text("".join(f"{user}:{found}\n" for user, found in users.items()))
    (folder / "rules.toml").write_text(RULES)
    settings = {
        "auth.anonymous": "no", "auth.password_file": folder / "users", "auth.rules_file": folder / "rules.toml",
    }  # fmt: skip
    flags = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    with kafka_broker(folder / "data", *flags) as found:
        yield found


def by_confluent(address: str, mechanism: str, user: str, password: str) -> set[str]:
    kafka = module("confluent_kafka")
    client = kafka.Consumer({
        "bootstrap.servers": address, "group.id": "none", "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism, "sasl.username": user, "sasl.password": password,
    })  # fmt: skip
    try:
        return set(client.list_topics(timeout=SECONDS).topics)
    finally:
        client.close()


def by_aiokafka(address: str, mechanism: str, user: str, password: str) -> set[str]:
    kafka = module("aiokafka")

    async def run() -> set[str]:
        client = kafka.AIOKafkaConsumer(
            bootstrap_servers=address, security_protocol="SASL_PLAINTEXT", sasl_mechanism=mechanism,
            sasl_plain_username=user, sasl_plain_password=password,
        )  # fmt: skip
        try:
            await client.start()
            return set(await client.topics())
        finally:
            await client.stop()

    return asyncio.run(asyncio.wait_for(run(), SECONDS))


def by_kafka_python(address: str, mechanism: str, user: str, password: str) -> set[str]:
    kafka = module("kafka")
    client = kafka.KafkaConsumer(
        bootstrap_servers=address, security_protocol="SASL_PLAINTEXT", sasl_mechanism=mechanism,
        sasl_plain_username=user, sasl_plain_password=password,
    )  # fmt: skip
    try:
        return set(client.topics())
    finally:
        client.close()


CLIENTS = [by_confluent, by_aiokafka, by_kafka_python]


@pytest.mark.parametrize(("mechanism", "user"), LOGINS)
@pytest.mark.parametrize("listing", CLIENTS)
def test_a_client_logs_in_and_sees_what_it_may_read(
    listing: Listing, mechanism: str, user: str, broker: KafkaBroker
) -> None:
    assert listing(broker.address, mechanism, user, PASSWORD) == {"main"}


@pytest.mark.parametrize("listing", CLIENTS)
def test_a_user_without_a_rule_sees_nothing(listing: Listing, broker: KafkaBroker) -> None:
    assert listing(broker.address, "PLAIN", "none", PASSWORD) == set()


def test_a_wrong_password_is_refused(broker: KafkaBroker) -> None:
    """By one client, which says so at once; others try again until their time is over."""
    kafka = module("aiokafka")
    with pytest.raises(kafka.errors.KafkaError):
        by_aiokafka(broker.address, "SCRAM-SHA-256", "scram", "wrong")
