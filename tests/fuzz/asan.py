"""Kernels that AddressSanitizer watches, built apart from the others, with Python's own bounds checks switched on.

The whole of the broker is copied into a folder under build/, so that no other compiled module is found there."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "build" / "asan"
FLOORS = ("commitlog", "router", "rumq", "tests")
FLAGS = ["-fsanitize=address", "-fno-omit-frame-pointer", "-O1", "-g", "-fno-strict-aliasing"]
PLANTED = """
import cython

@cython.boundscheck(False)
def read_behind(data: cython.const[cython.uchar][::1], at: cython.Py_ssize_t) -> int:
    return data[at]
"""


def built() -> dict[str, str]:
    """Build them, where they are not up to date; returns the environment in which they run."""
    folders = list(FLOORS)
    for name in folders:
        ignored = shutil.ignore_patterns("*.so", "__pycache__", "node_modules", ".hypothesis")
        shutil.copytree(ROOT / name, FOLDER / name, ignore=ignored, dirs_exist_ok=True)
    (FOLDER / "planted.py").write_text(PLANTED)
    script = FOLDER / "build_watched.py"
    script.write_text(f"from tests.fuzz.asan import build\nbuild({str(FOLDER)!r})\n")
    environment = {**os.environ, "PYTHONPATH": str(FOLDER), "PYTHONSAFEPATH": "1"}
    print(f"building in {FOLDER}", flush=True)
    subprocess.run(
        [sys.executable, str(script), "build_ext", "--inplace", "-q"],
        cwd=FOLDER,
        env=environment,
        check=True,
        stdout=subprocess.DEVNULL,
    )
    runtime = subprocess.run(["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True)
    return {
        **environment, "LD_PRELOAD": runtime.stdout.strip(), "PYTHONMALLOC": "malloc", "RUMQ_FUZZ_ASAN": "1",
        "ASAN_OPTIONS": "detect_leaks=0:quarantine_size_mb=16:abort_on_error=0:allocator_may_return_null=1",
    }  # fmt: skip


def build(folder: str) -> None:
    """In `folder`: what setup.py builds, otherwise."""
    from Cython.Build import cythonize
    from setuptools import Extension, setup

    os.chdir(folder)
    kernels = sorted(
        str(path)
        for floor in ("commitlog", "router", "rumq", "tests/fuzz")
        for path in Path(floor).rglob("kernels/*.py")
        if path.name != "__init__.py"
    )
    checked = {
        "language_level": 3,
        "binding": True,
        "boundscheck": True,
        "wraparound": False,
        "cdivision": True,
        "show_performance_hints": False,
    }
    setup(
        ext_modules=cythonize(
            [
                Extension(
                    path.removesuffix(".py").replace("/", "."), [path], extra_compile_args=FLAGS,
                    extra_link_args=FLAGS[:1],
                )
                for path in (*kernels, "planted.py")
            ],
            build_dir="c", compiler_directives=checked, quiet=True,
        )
    )  # fmt: skip


def is_caught(environment: dict[str, str]) -> str:
    """Read behind the end of some bytes, and see it caught. raises: AssertionError if it is not"""
    script = "import planted, sys; print(planted.__file__); planted.read_behind(bytes(100), 100 + 1)"
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=environment,
        cwd=FOLDER,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode and "AddressSanitizer: heap-buffer-overflow" in done.stderr, done.stdout + done.stderr
    return f"active, a read of one byte behind the end of 100 was caught in {Path(done.stdout.split()[0]).name}"
