"""A class with a `.pxd` has the fields that its module assigns, else the first assignment fails once it is compiled."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TYPED = sorted(
    path.relative_to(ROOT)
    for floor in ("commitlog", "router", "rumq")
    for path in (ROOT / floor).rglob("*.pxd")
    if path.parent.name != "kernels"
)
CLASS = re.compile(r"^cdef class (\w+)(?:\((\w+)\))?:\n((?:    .*\n|\n)*)", re.MULTILINE)
TAKEN = re.compile(r"^from (\S+) cimport (.+)$", re.MULTILINE)
FIELDS = re.compile(r"^    cdef (?:public |readonly )?(?:(?:unsigned |long )*\w+)(?:\[::1\])? ([\w, ]+)$", re.MULTILINE)


def declared(pxd: str) -> dict[str, set[str]]:
    """Class -> its fields, with those of its bases, here or in another file that it takes them from."""
    found: dict[str, set[str]] = {}
    for module, names in TAKEN.findall(pxd):
        path = ROOT / f"{module.replace('.', '/')}.pxd"
        bases = {base for _, base, _ in CLASS.findall(pxd)} & set(names.split(", "))
        if bases and path.exists():
            found.update({name: fields for name, fields in declared(path.read_text()).items() if name in bases})
    taken = set(found)
    for name, base, body in CLASS.findall(pxd):
        own = {field for names in FIELDS.findall(body) for field in names.split(", ")}
        found[name] = own | found.get(base, set())
    return {name: fields for name, fields in found.items() if name not in taken}


def assigned(source: str, name: str) -> set[str]:
    """What the methods of a class assign to `self`."""
    tree = ast.parse(source)
    node = next(each for each in ast.walk(tree) if isinstance(each, ast.ClassDef) and each.name == name)
    return {
        target.attr
        for target in ast.walk(node)
        if isinstance(target, ast.Attribute)
        and isinstance(target.ctx, ast.Store)
        and isinstance(target.value, ast.Name)
        and target.value.id == "self"
    }


@pytest.mark.parametrize("pxd", TYPED, ids=str)
def test_every_attribute_is_a_field(pxd: Path) -> None:
    source = (ROOT / pxd).with_suffix(".py").read_text()
    classes = declared((ROOT / pxd).read_text())
    assert classes or "cpdef" in (ROOT / pxd).read_text()
    for name, fields in classes.items():
        assert assigned(source, name) - fields == set(), name


def test_fields_and_assignments_are_found() -> None:
    pxd = "cdef class A:\n    cdef public int a, b\n\ncdef class B(A):\n    cdef public unsigned long long c\n"
    assert declared(f"{pxd}\n    cpdef d(self)\n") == {"A": {"a", "b"}, "B": {"a", "b", "c"}}
    source = "class A:\n    def f(self):\n        self.a, self.z = 1, 2\n        self.y: int = 3\n"
    assert assigned(f"{source}        self.b.c = 4\n", "A") == {"a", "z", "y"}
