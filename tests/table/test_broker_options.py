"""The options that name a broker to read from: what is missing, contradicts itself or would give a secret away."""

import pickle

import pytest

from rumq.errors import RumqError
from rumq.table.errors import BadOption, UnknownOption
from rumq.table.flight_location import FlightLocation
from rumq.table.options import parse

BROKER = {"broker": "grpc+tls://log.plant.example"}


def test_a_broker_is_read_as_its_options_say() -> None:
    options = parse(
        {
            **BROKER, "username": "anna", "passwordFile": "/run/secret", "tlsCa": "ca.pem", "tlsCertificate": "c.pem",
            "tlsKey": "c.key", "readTimeoutMs": "500", "awayTimeoutMs": "250", "fetchOffset.numRetries": "0",
            "fetchOffset.retryIntervalMs": "10",
        }, now_us=0,
    )  # fmt: skip
    assert options.flight_location == FlightLocation(
        "grpc+tls://log.plant.example:8815",
        "anna",
        "/run/secret",
        None,
        "ca.pem",
        "c.pem",
        "c.key",
        0.5,
        0,
        0.01,
        0.25,
    )
    assert pickle.loads(pickle.dumps(options)) == options  # it travels to the workers
    assert parse({"path": "d"}, now_us=0).flight_location is None


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({}, r"""path = "": expected a data directory.* or .option\("broker", "grpc://host:8815"\)"""),
        ({**BROKER, "path": "d"}, "it or a path"),
        ({"broker": "mqtt://h:1883"}, r"grpc://host:8815 .*\(MQTT is for writing\)"),
        ({"broker": "h:8815"}, r"expected grpc://host:8815 or grpc\+tls://host:8815"),
        ({"path": "d", "username": "anna"}, "username: it is for reading from a broker"),
        ({**BROKER, "username": "anna"}, "passwordFile as well"),
        ({**BROKER, "passwordFile": "f"}, "username as well"),
        ({**BROKER, "tlsKey": "f"}, "tlsCertificate as well"),
        ({**BROKER, "username": "anna", "passwordFile": "f", "tokenFile": "t"}, "not both"),
        ({"broker": "grpc://h", "tlsCa": "f"}, r"TLS: broker = grpc\+tls://"),
        ({**BROKER, "readTimeoutMs": "0"}, "a whole number, 1 or more"),
        ({**BROKER, "fetchOffset.numRetries": "-1"}, "a whole number, 0 or more"),
        ({**BROKER, "fetchOffset.numRetry": "1"}, r"did you mean fetchOffset.numRetries\?"),
    ],
)
def test_what_does_not_fit_is_refused(given: dict[str, str], says: str) -> None:
    with pytest.raises((BadOption, UnknownOption), match=says):
        parse(given, now_us=0)


@pytest.mark.parametrize("name", ["password", "token"])
def test_a_secret_as_an_option_is_refused_and_not_repeated(name: str) -> None:
    with pytest.raises(RumqError, match=f"put it in a file, {name}File") as caught:
        parse({**BROKER, name: "hunter2"}, now_us=0)
    assert "hunter2" not in str(caught.value)
