"""Load a kernel in both its forms, so that the same tests run compiled and as plain Python."""

import importlib
import importlib.util
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
    alias = f"{name}__as_python"
    if alias not in sys.modules:
        path = ROOT / (name.replace(".", "/") + ".py")
        spec = importlib.util.spec_from_file_location(alias, path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[alias] = module
        spec.loader.exec_module(module)
    return sys.modules[alias]
