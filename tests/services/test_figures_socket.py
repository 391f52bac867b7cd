"""Figures of the gRPC server at the gateway's /metrics: calls by method and status, subscribers, durations."""

import re
import urllib.request
from pathlib import Path

import grpc
import pytest

from tests.cli.conftest import rumqd
from tests.services.conftest import LATEST, SECONDS, grpc_broker
from tests.services.generated_client import pb


def test_a_known_load_is_counted(tmp_path: Path) -> None:
    """GOR-10, over gRPC."""
    ended = rumqd("token", "add", "scrape", "--data", str(tmp_path / "data"))
    token = next(word for word in ended.out.split() if word.startswith("rumq_"))
    with grpc_broker(tmp_path / "data", "--set", "gateway.port=-1") as broker:
        for _ in range(7):
            broker.publish("t")
        for _ in range(3):
            with pytest.raises(grpc.RpcError):
                broker.stub.Fetch(pb.FetchRequest(topic="t", id=99), timeout=SECONDS)
        calls = [broker.subscribe({"t": LATEST}) for _ in range(2)]
        for call in calls:
            next(call)
        bound = next(each for each in broker.process.named("listener.bound") if each["protocol"] == "http")
        request = urllib.request.Request(
            f"http://127.0.0.1:{bound['port']}/metrics", headers={"authorization": f"Bearer {token}"}
        )
        text = urllib.request.urlopen(request, timeout=SECONDS).read().decode()
        found = dict(re.findall(r"^(rumq_grpc_\S+) (\S+)$", text, re.M))
        service = "rumq.v1.BrokerService"
        assert found[f'rumq_grpc_calls_total{{code="OK",method="{service}/Publish"}}'] == "7.0"
        assert found[f'rumq_grpc_calls_total{{code="INVALID_ARGUMENT",method="{service}/Fetch"}}'] == "3.0"
        assert found[f'rumq_grpc_open_calls{{method="{service}/Subscribe"}}'] == "2.0"
        assert found[f'rumq_grpc_call_seconds_count{{method="{service}/Publish"}}'] == "7.0"
        assert found["rumq_grpc_published_total"] == "7.0" and found["rumq_grpc_refused_logins_total"] == "0.0"
        for call in calls:
            call.cancel()
