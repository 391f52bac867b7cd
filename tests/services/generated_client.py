"""A client in Python as a stranger makes it: protoc's own code from the proto files, in a directory of its own."""

import importlib.util
import sys
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

from grpc_tools import protoc

PROTO = Path(__file__).parents[2] / "rumq/services/proto"
PACKAGE = "rumq.v1"
FOLDER = Path(tempfile.mkdtemp(prefix="rumq-grpc-client-"))


def made(name: str) -> tuple[Any, Any]:
    """The modules of the messages, and of the stub. name: of the proto file"""
    folder = FOLDER
    status = protoc.main(
        ["protoc", f"-I{PROTO}", f"--python_out={folder}", f"--grpc_python_out={folder}", f"rumq/v1/{name}.proto"]
    )
    assert status == 0
    package = sys.modules.setdefault(PACKAGE, ModuleType(PACKAGE))
    messages = loaded(f"{name}_pb2", folder)
    setattr(package, f"{name}_pb2", messages)
    return messages, loaded(f"{name}_pb2_grpc", folder)


def loaded(name: str, folder: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"{PACKAGE}.{name}", folder / "rumq/v1" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


pb, stubs = made("broker_service")
queues_pb, queue_stubs = made("queues")
