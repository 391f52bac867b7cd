"""Make rumq/services/generated/ from the proto files: `python packaging/grpc_code.py [directory]`.

Needs grpcio-tools, of the extra dev. The files are those of protoc, but for the package that they import each other
from. tests/services/test_generated.py compares them."""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
PROTO = ROOT / "rumq/services/proto"
GENERATED = ROOT / "rumq/services/generated"
PACKAGE = "rumq.services.generated"


def make(into: Path) -> list[str]:
    """The names of the files that were made."""
    import grpc_tools
    from grpc_tools import protoc

    wanted = sorted(str(path.relative_to(PROTO)) for path in PROTO.rglob("*.proto"))
    well_known = Path(grpc_tools.__file__).parent / "_proto"
    with tempfile.TemporaryDirectory() as made:
        status = protoc.main(
            ["protoc", f"-I{PROTO}", f"-I{well_known}", f"--python_out={made}", f"--pyi_out={made}", *wanted]
        )
        if status:
            raise SystemExit(status)
        found = sorted(Path(made).rglob("*_pb2.py*"))
        for path in found:
            text = re.sub(r"^from rumq\.v1 import ", f"from {PACKAGE} import ", path.read_text(), flags=re.M)
            (into / path.name).write_text(text)
        return [path.name for path in found]


if __name__ == "__main__":
    print(*make(Path(sys.argv[1]) if len(sys.argv) > 1 else GENERATED), sep="\n")
