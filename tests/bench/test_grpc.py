"""`python -m bench grpc` in its shortest form: it measures, and notices an id that is wrong."""

from typing import Any

import pytest

from bench.grpc import command, streams
from bench.grpc.caller import requests
from rumq.services.generated import broker_service_pb2 as pb


def test_messages_are_made_for_topics_in_turns() -> None:
    found = [each for request in requests(5, 2, 3, b"x") for each in request.messages]
    assert [each.topic for each in found] == ["bench/0", "bench/1", "bench/2", "bench/0", "bench/1"]


def test_an_unknown_part_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.main(["nothing"])
    assert "expected of streams, beside, beside-all" in capsys.readouterr().err


class Lying:
    """A server that gives an id twice."""

    def publish_stream(self, given: Any) -> Any:
        return [pb.PublishStreamResponse(ids=[1] * len(each.messages)) for each in given]


def test_an_id_that_is_given_twice_is_seen() -> None:
    with pytest.raises(RuntimeError, match="are not those of the messages"):
        streams.measured(Lying(), server=1, count=1_000)  # type: ignore[arg-type]


def test_one_client_is_measured() -> None:
    found = streams.streams(runs=1, seconds=0.2)
    assert found["streamed publish, msg/s"] > 0 and found["Subscribe from 0, msg/s"] > 0
