"""Load a kernel in both its forms, so that the same tests run compiled and as plain Python."""

import importlib
import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]


def forms(name: str) -> list[object]:
    """The kernel `name` (dotted) as Python source, and compiled where this install has it: pytest params."""
    params = [pytest.param(as_python(name), id="python")]
    module = importlib.import_module(name)
    if not str(module.__file__).endswith(".py"):
        params.append(pytest.param(module, id="compiled"))
    return list(params)


def as_python(name: str) -> ModuleType:
    """The kernel `name` as Python, with the kernels that it imports as Python under it."""
    alias = f"{name}__as_python"
    if alias not in sys.modules:
        path = ROOT / (name.replace(".", "/") + ".py")
        spec = importlib.util.spec_from_file_location(alias, path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[alias] = module
        needed = re.findall(r"^ *from (\S+\.kernels\.\S+) import", path.read_text(), re.MULTILINE)
        compiled = {each: importlib.import_module(each) for each in needed if "cimports" not in each}
        sys.modules.update({each: as_python(each) for each in compiled})
        try:
            spec.loader.exec_module(module)
        finally:
            sys.modules.update(compiled)
    return sys.modules[alias]
