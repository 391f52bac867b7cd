"""Compile the kernels at install, if that is possible here.

Kernels are ordinary Python files (`*/kernels/*.py`) that Cython turns into C. Without a C compiler the
same files run as they are, slower: the install succeeds and says so once. `RUMQ_COMPILE=0` asks for that,
`RUMQ_COMPILE=require` makes a failed compilation fail the install.
"""

import os
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

WISH = os.environ.get("RUMQ_COMPILE", "1")
WARNING = (
    "rumq: kernels were not compiled ({}); they run as Python, about 50 times slower. "
    "Install gcc and Python's headers, then install again."
)


class OptionalBuild(build_ext):
    """Build the kernels; where that fails, warn once and go on without."""

    def run(self) -> None:
        self.parallel = self.parallel or os.cpu_count()
        if not (self.inplace or self.editable_mode):
            # What only the tests use is built where they are.
            self.extensions = [built for built in self.extensions if not built.name.startswith("tests.")]
        try:
            super().run()
        except Exception as fault:
            if WISH == "require":
                raise
            print(WARNING.format(fault), file=sys.stderr)
            # A half-built set would mix compiled and plain kernels with different types.
            self.extensions = []


# Whole modules of the hot path, plain Python that Cython translates as it is: at low rates a turn serves one message,
# and the interpreter is what it costs (docs/decisions/0004-compiled-hot-modules.md).
HOT = [
    "commitlog/chunk.py",
    "commitlog/group.py",
    "commitlog/partition.py",
    "commitlog/writing.py",
    "router/delivery.py",
    "router/feed.py",
    "router/grouping.py",
    "router/mirror.py",
    "router/ordered.py",
    "router/readers.py",
    "router/retained.py",
    "router/routes.py",
    "router/shard.py",
    "router/trie.py",
    "rumq/net/connection.py",
    "rumq/net/pump.py",
    "rumq/session/link.py",
    "rumq/session/outflow.py",
    "rumq/shards/blobs.py",
    "rumq/shards/carrying.py",
    "rumq/shards/delivering.py",
    "rumq/shards/driver.py",
    "rumq/shards/writing.py",
]


def extensions() -> list[Extension]:
    if WISH == "0":
        return []
    from Cython.Build import cythonize

    root = Path(__file__).parent
    kernels = sorted(
        str(path.relative_to(root))
        for floor in ("commitlog", "router", "rumq", "bench", "tests/fuzz")
        for path in (root / floor).rglob("kernels/*.py")
        if path.name != "__init__.py"
    )
    common = {"language_level": 3, "binding": True, "embedsignature": True}
    fast = {"boundscheck": False, "wraparound": False, "cdivision": True, "initializedcheck": False}
    built: list[Extension] = cythonize(
        [extension(path) for path in kernels],
        build_dir="build/kernels",
        compiler_directives={**common, **fast},
    )
    # Annotations of plain modules are for mypy: taken as C types they would refuse what Python accepts.
    built += cythonize(
        [extension(path) for path in HOT], build_dir="build/kernels",
        compiler_directives={**common, "annotation_typing": False},
    )  # fmt: skip
    return built


def extension(path: str) -> Extension:
    name = path.removesuffix(".py").replace("/", ".")
    return Extension(name, [path], extra_compile_args=["-O3", "-fno-strict-aliasing"])


setup(ext_modules=extensions(), cmdclass={"build_ext": OptionalBuild})
