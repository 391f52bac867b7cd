"""docs/reference/grpc.md is made of the comments of the proto files."""

import importlib.util
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_page_is_of_the_proto_files() -> None:
    spec = importlib.util.spec_from_file_location("grpc_page", ROOT / "docs/site/grpc_page.py")
    assert spec is not None and spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    assert (ROOT / "docs/reference/grpc.md").read_text() == tool.page(), (
        "python docs/site/grpc_page.py > docs/reference/grpc.md"
    )
