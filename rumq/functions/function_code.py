"""Find a function by what the settings call it, `file.py:name` or `module:name`, and check that it takes a batch.

Imports the code of others: only in the worker, and where it is checked."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import sys
from collections.abc import Callable
from typing import Any

NAME = "transform"  # of the function, where none is given
MODULE = "rumq_function"  # what a file is called, once it is imported


class BadFunction(Exception):
    """The code is not there, or no function of one batch. A sentence"""


def split_code(code: str) -> tuple[str, str]:
    """File or module, and the name of the function."""
    place, colon, name = code.rpartition(":")
    if not colon:
        return code, NAME
    return place, name


def is_file(place: str) -> bool:
    return place.endswith(".py")


def maybe_problem(code: str) -> str | None:
    """What can be seen without importing it: a file that is missing, a name that is none."""
    place, name = split_code(code)
    if not name.isidentifier():
        return f"{name!r} is no name of a function: expected file.py, file.py:name or module:name"
    if is_file(place):
        return None if os.path.isfile(place) else f"{place}: there is no such file"
    if not all(each.isidentifier() for each in place.split(".")):
        return f"{place!r} is no module: expected file.py, file.py:name or module:name"
    return None


def load_function(code: str) -> Callable[[Any], Any]:
    """Import it. raises: BadFunction; whatever its module raises"""
    if (problem := maybe_problem(code)) is not None:
        raise BadFunction(problem)
    place, name = split_code(code)
    if is_file(place):
        # Bytecode is found by time and size: of a file that is edited twice in a second it may be the one of before.
        sys.dont_write_bytecode = True
        sys.path.insert(0, os.path.dirname(os.path.abspath(place)))  # what stands beside it can be imported
        spec = importlib.util.spec_from_file_location(MODULE, place)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[MODULE] = module
        spec.loader.exec_module(module)
    else:
        try:
            module = importlib.import_module(place)
        except ModuleNotFoundError as fault:
            if fault.name is not None and (place == fault.name or place.startswith(f"{fault.name}.")):
                raise BadFunction(f"there is no module {fault.name}") from None
            raise
    return checked(getattr(module, name, None), place, name)


def checked(found: object, place: str, name: str) -> Callable[[Any], Any]:
    """raises: BadFunction"""
    if found is None:
        raise BadFunction(f"{place} has no {name}")
    if not callable(found):
        raise BadFunction(f"{name} of {place} is a {type(found).__name__}, no function")
    if inspect.iscoroutinefunction(found):
        raise BadFunction(f"{name} of {place} is async: expected a plain function of one batch")
    try:
        inspect.signature(found).bind(None)
    except TypeError as fault:
        raise BadFunction(f"{name} of {place} does not take one batch: {fault}") from None
    except ValueError:
        pass  # of C, without a signature
    return found
