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
WARNING = "rumq: kernels were not compiled ({}); they run as Python, about 50 times slower. Install gcc and Python's headers."


class OptionalBuild(build_ext):
    """Build the kernels; where that fails, warn once and go on without."""

    def run(self) -> None:
        try:
            super().run()
        except Exception as fault:
            if WISH == "require":
                raise
            print(WARNING.format(fault), file=sys.stderr)
            # A half-built set would mix compiled and plain kernels with different types.
            self.extensions = []


def kernels() -> list[Extension]:
    if WISH == "0":
        return []
    from Cython.Build import cythonize

    root = Path(__file__).parent
    paths = sorted(
        path.relative_to(root)
        for floor in ("commitlog", "router", "rumq", "bench")
        for path in (root / floor).rglob("kernels/*.py")
        if path.name != "__init__.py"
    )
    extensions = [
        Extension(".".join(path.with_suffix("").parts), [str(path)], extra_compile_args=["-O3", "-fno-strict-aliasing"])
        for path in paths
    ]
    return cythonize(  # type: ignore[no-any-return]
        extensions,
        build_dir="build/kernels",
        compiler_directives={
            "language_level": 3, "boundscheck": False, "wraparound": False,
            "cdivision": True, "initializedcheck": False, "binding": True, "embedsignature": True,
        },
    )


setup(ext_modules=kernels(), cmdclass={"build_ext": OptionalBuild})
