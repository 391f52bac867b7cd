"""Faults with details: google.rpc.Status and ErrorInfo; every reason is listed and used."""

import re
from pathlib import Path

import grpc
from google.rpc import error_details_pb2, status_pb2

from rumq.services.contract.faults import REASONS, CallFault

ROOT = Path(__file__).parents[3]


def test_details() -> None:
    fault = CallFault("ID_EXPIRED", "it has expired", topic="a", id=7)
    ((name, data),) = fault.trailing()
    status = status_pb2.Status.FromString(data)
    assert (name, status.code, status.message) == ("grpc-status-details-bin", 3, "it has expired")
    info = error_details_pb2.ErrorInfo()
    assert status.details[0].Unpack(info)
    assert (info.reason, info.domain, dict(info.metadata)) == ("ID_EXPIRED", "rumq", {"topic": "a", "id": "7"})
    assert len(status.details) == 1


def test_who_may_try_again_is_told_when() -> None:
    ((_, data),) = CallFault("BROKER_AWAY", "away").trailing()
    retry = error_details_pb2.RetryInfo()
    assert status_pb2.Status.FromString(data).details[1].Unpack(retry) and retry.retry_delay.seconds == 1


def test_every_reason_is_raised_somewhere_and_none_is_unlisted() -> None:
    files = [*(ROOT / "rumq/services").rglob("*.py"), ROOT / "rumq/process/grpc/parts.py"]
    source = "\n".join(path.read_text() for path in files)
    used = set(re.findall(r'"([A-Z]+(?:_[A-Z]+)+|INTERNAL)"', source))
    assert {each for each in REASONS if source.count(f'"{each}"') < 2} == set()
    assert used - REASONS.keys() <= {"GRPC_VERBOSITY"}
    assert all(isinstance(code, grpc.StatusCode) for code, _ in REASONS.values())
