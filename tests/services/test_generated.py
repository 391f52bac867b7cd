"""The generated code is what protoc makes of the proto files, and these are as buf asks for."""

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from rumq.services.calls.broker_service import broker_service
from rumq.services.calls.call import Service
from rumq.services.generated import broker_service_pb2, queues_pb2
from rumq.services.queues.queue_service import queue_service
from tests.services.node_client import in_node_modules

ROOT = Path(__file__).parents[2]
GENERATED = ROOT / "rumq/services/generated"
PROTO = ROOT / "rumq/services/proto"
# The name rumq.v1.Queues is the middleware's, whose clients go on.
RULES = (
    '{"version":"v2","lint":{"use":["STANDARD","COMMENTS"],"ignore_only":{"SERVICE_SUFFIX":["rumq/v1/queues.proto"]}}}'
)


def test_generating_again_gives_the_same(tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location("grpc_code", ROOT / "packaging/grpc_code.py")
    assert spec is not None and spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    made = tool.make(tmp_path)
    assert {path.name for path in GENERATED.glob("*_pb2.*")} == set(made)
    for name in made:
        assert (GENERATED / name).read_text() == (tmp_path / name).read_text(), (
            f"{name} is not of the proto files, or of another grpcio-tools: python packaging/grpc_code.py"
        )


class Anything:
    def __getattr__(self, name: str) -> object:
        return lambda call: None


@pytest.mark.parametrize(
    ("descriptor", "made"),
    [(broker_service_pb2.DESCRIPTOR, broker_service(*[Anything()] * 3)),  # type: ignore[list-item]
     (queues_pb2.DESCRIPTOR, queue_service(*[Anything()] * 5))],  # type: ignore[list-item]
)  # fmt: skip
def test_every_call_of_the_proto_file_is_in_the_table(descriptor: Any, made: Service) -> None:
    [service] = descriptor.services_by_name.values()
    assert service.full_name == made.name
    table = {each.name: each for each in made.methods}
    assert {each.name for each in service.methods} == table.keys()
    for each in service.methods:
        assert (each.client_streaming, each.server_streaming) == (
            table[each.name].takes_stream,
            table[each.name].gives_stream,
        )


@pytest.mark.node
@pytest.mark.usefixtures("node_packages")
def test_buf_finds_nothing_to_say() -> None:
    ended = in_node_modules("buf", "lint", "--config", RULES, cwd=PROTO)
    assert (ended.returncode, ended.stdout) == (0, ""), ended.stdout + ended.stderr


@pytest.mark.node
@pytest.mark.usefixtures("node_packages")
def test_buf_sees_what_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "bad.proto").write_text('syntax = "proto3"; package bad; message nolint { string A = 1; }')
    assert in_node_modules("buf", "lint", "--config", RULES, cwd=tmp_path).returncode
