"""Compile the kernels and the hot modules at install, if that is possible here.

Kernels are ordinary Python files (`*/kernels/*.py`) that Cython turns into C, and so is a module with a line
`# compiled: hot` or `# compiled: warm` below its docstring. Without a C compiler the same files run as they are,
slower: the install succeeds, and as pip hides what is said here, rumqd says it at each start. `RUMQ_COMPILE=0` asks
for that, `RUMQ_COMPILE=require` makes a failed compilation fail the install. In a clone `RUMQ_COMPILE=product` leaves
out what only tests and the bench use, what runs once a connection or less, and wings that are off until a setting turns
them on: a first look at rumq waits for none of them.
"""

import hashlib
import multiprocessing
import os
import re
import runpy
import shutil
import sys
import threading
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import CompileError

ROOT = Path(__file__).parent
WISH = os.environ.get("RUMQ_COMPILE", "1")
WARNING = (
    "rumq: kernels were not compiled ({}); they run as Python, about 50 times slower. "
    "Install gcc and Python's headers, then install again."
)
COMPILED = runpy.run_path(str(ROOT / "rumq/compiled_modules.py"))
FLOORS, SUFFIX, BUILD_ID = COMPILED["FLOORS"], COMPILED["SUFFIX"], COMPILED["build_id"]

# Whole modules, plain Python that Cython translates as it is: at low rates a turn serves one message, and the
# interpreter is what it costs (docs/decisions/0004-compiled-hot-modules.md). hot: what each message meets; warm: what
# runs once a turn, a connection, a session or a minute, and is two thirds of the compiler's work.
MARK = re.compile(r"^# compiled: (hot|warm)$", re.M)
LEVELS = {"kernel": "-O3", "hot": "-O2", "warm": "-O1"}

# What Cython would otherwise repeat in each module, compiled once: function objects, views of memory. A fifth of the C.
# It lies in `rumq` because that package's __init__ is empty, so that who imports a kernel imports no more than that.
SHARED, SHARED_C = "rumq.cython_shared", "rumq/cython_shared.c"
# Without it: Cython 3.3 forgets what bytearray.append needs. And what also runs beside a copy of the product that is
# not compiled, so that there is none.
ALONE = ("rumq/mqtt/kernels/filters.py", "bench/", "tests/")

# Nothing pickles an object of a compiled class; what Cython writes for it is a tenth of the C of such a module.
COMMON = {
    "language_level": 3, "binding": True, "embedsignature": True, "auto_pickle": False,
    "show_performance_hints": False, "warn.unreachable": False,  # nobody acts on them
}  # fmt: skip
FAST = {**COMMON, "boundscheck": False, "wraparound": False, "cdivision": True, "initializedcheck": False}
# Annotations of plain modules are for mypy: taken as C types they would refuse what Python accepts.
PLAIN = {**COMMON, "annotation_typing": False}
# Folders whose services are off by default. Nothing else is compiled against them.
OFF_BY_DEFAULT = ("rumq/queues/", "rumq/services/", "rumq/kafka/", "rumq/cluster/", "rumq/shards/replication/")

# No debug information and no warnings: nobody steps through the C or edits it, and they take a third of the time.
FLAGS = ["-g0", "-Wno-all", "-Wno-sign-compare", "-fno-strict-aliasing"]
# A function that Cython forgot to write is an error of the compiler, not one of an import later.
ERRORS = ["-Werror=implicit-function-declaration"]
# The C of other options lies elsewhere: Cython and setuptools see by times alone what is up to date.
MADE_SO = hashlib.sha256(repr((FAST, PLAIN, FLAGS, LEVELS, SHARED)).encode()).hexdigest()[:8]
BUILD = f"build/kernels/{MADE_SO}"


class OptionalBuild(build_ext):
    """Build the kernels; where Cython or the compiler fails, warn once and go on without any."""

    def run(self) -> None:
        self.parallel = self.parallel or os.cpu_count() or 1
        self.is_in_place = bool(self.inplace or self.editable_mode)
        if self.is_in_place:
            remove_unwanted({one.name for one in self.extensions})
        if not self.is_in_place or WISH == "product":
            # What only tests and the bench use is built where they are.
            self.extensions = [wanted for wanted in self.extensions if not is_of_the_tree(wanted)]
        if self.is_in_place and WISH == "product":
            self.extensions = [wanted for wanted in self.extensions if not can_wait(wanted.sources[0])]
        wanted, asked = list(self.extensions), (self.compiler, self.inplace)
        paths = {one.name: one.sources[0] for one in wanted}
        try:
            try:
                self._build(wanted, SHARED)
            except CompileError:
                # A Cython that shares what it should not, or no compiler at all.
                if not shutil.which(self.compiler.compiler[0]):
                    raise
                for one in wanted:
                    one.sources = [paths[one.name]]
                self.compiler, self.inplace = asked  # a run that fails leaves others
                self._build([one for one in wanted if one.name != SHARED], None)
        except Exception as fault:
            if WISH == "require":
                raise
            print(WARNING.format(fault), file=sys.stderr)
            # A half-built set would mix compiled and plain kernels with different types.
            self.extensions = []
            for one in [] if self.is_in_place else wanted:
                Path(self.get_ext_fullpath(one.name)).unlink(missing_ok=True)

    def _build(self, wanted: list[Extension], shared: str | None) -> None:
        """shared: the module of what they share, or None"""
        # The longest first, so that no core waits for the last one.
        self.extensions = sorted(wanted, key=lambda one: -size_of(one.sources[0]))
        self._shared, self._made, self._has_failed = shared, list[Extension](), False
        import Cython.Build  # noqa: F401 - here, and not in each process

        with ProcessPoolExecutor(self.parallel, multiprocessing.get_context("fork")) as self._translators:
            self._translators.submit(os.getpid).result()  # they begin before there are threads
            self._progress = Progress(len(wanted))
            super().run()

    def build_extension(self, ext: Extension) -> None:
        """Translate one, and compile the C unless that was done: in a thread for each core."""
        if self._has_failed:
            return  # what comes after would not be kept
        try:
            self._translate(ext)
            if not self.is_in_place or is_old(ext):
                super().build_extension(ext)
                self._made.append(ext)
        except BaseException:
            self._has_failed = True
            raise
        self._progress.step()

    def _translate(self, ext: Extension) -> None:
        """Have it consist of C, which Cython makes if what is there is not up to date. raises: Cython's CompileError"""
        from Cython.Build import cythonize

        (path,) = ext.sources
        module = None if path.startswith(ALONE) else self._shared
        folder = BUILD if module else f"{BUILD}-alone"
        noted, wanted = Path(folder, path).with_suffix(".source"), BUILD_ID(Path(path)).hex()
        made = self._translators.submit(
            cythonize, [Extension(ext.name, [path])],
            build_dir=folder,
            # Cython goes by times, which say nothing of files that were copied here.
            force=noted.exists() and noted.read_text() != wanted,
            compiler_directives=FAST if kind_of(path) == "kernel" else PLAIN,
            quiet=True,
            shared_utility_qualified_name=module,
        )  # fmt: skip
        ext.sources = made.result()[0].sources
        noted.write_text(wanted)

    def copy_extensions_to_source(self) -> None:
        # setuptools looks into build/ for what is up to date, and an editable install leaves nothing there.
        self.extensions = self._made
        super().copy_extensions_to_source()


class Progress:
    """How many modules are compiled: a bar on a terminal, elsewhere a line for each fifth. Threads count."""

    WIDTH = 30

    def __init__(self, total: int) -> None:
        self._total, self._done, self._lock = total, 0, threading.Lock()
        self._is_terminal = sys.stderr.isatty()

    def step(self) -> None:
        with self._lock:
            self._done += 1
            if self._is_terminal:
                bar = "#" * (self.WIDTH * self._done // self._total)
                end = "\n" if self._done == self._total else ""
                print(f"\rcompiling [{bar:<{self.WIDTH}}] {self._counted()}", end=end, file=sys.stderr, flush=True)
            elif self._done * 5 // self._total > (self._done - 1) * 5 // self._total:
                print(f"compiled: {self._counted()}", file=sys.stderr, flush=True)

    def _counted(self) -> str:
        return f"{self._done} of {self._total} modules"


def extensions() -> list[Extension]:
    """All of them, in Python: C is made of them when they are built."""
    if WISH == "0":
        return []
    sources = [
        str(path.relative_to(ROOT))
        for floor in (*FLOORS, "bench", "tests/fuzz")
        for path in sorted((ROOT / floor).rglob("*.py"))
        if path.name != "__init__.py"
    ]
    return [extension(path, kind) for path in (SHARED_C, *sources) if (kind := kind_of(path)) is not None]


def kind_of(path: str) -> str | None:
    """A key of LEVELS; None: it is not compiled"""
    if path == SHARED_C or Path(path).parent.name == "kernels":
        return "kernel"
    mark = MARK.search(Path(ROOT, path).read_text())
    return mark[1] if mark else None


def extension(path: str, kind: str) -> Extension:
    name = path.rpartition(".")[0].replace("/", ".")
    # By which rumqd sees that a source was edited since.
    link = [] if path == SHARED_C else [f"-Wl,--build-id=0x{BUILD_ID(Path(path)).hex()}"]
    return Extension(name, [path], extra_compile_args=[LEVELS[kind], *FLAGS, *ERRORS], extra_link_args=link)


def size_of(path: str) -> int:
    return Path(path).stat().st_size if path != SHARED_C else 0


def is_of_the_tree(one: Extension) -> bool:
    return one.name.startswith(("tests.", "bench."))


def can_wait(path: str) -> bool:
    """Whether the product runs nearly as fast without it compiled. A hot module may be compiled against a .pxd."""
    if path.startswith(OFF_BY_DEFAULT):
        return True
    return kind_of(path) == "warm" and not Path(ROOT, path).with_suffix(".pxd").exists()


def remove_unwanted(names: set[str]) -> None:
    """Delete compiled modules that are not to be compiled any more, or were moved: Python would import them."""
    for module, source in COMPILED["compiled_under"](Path()):
        if names and ".".join(source.with_suffix("").parts) not in names:
            module.unlink()


def is_old(one: Extension) -> bool:
    """Whether the compiled module beside its source is missing, of another source, or older than the C of it."""
    path = Path(*one.name.split("."))
    made = path.with_name(path.name + SUFFIX)
    if not made.exists() or made.stat().st_mtime < Path(one.sources[0]).stat().st_mtime:
        return True
    return one.name != SHARED and COMPILED["maybe_build_id"](made) != BUILD_ID(path.with_suffix(".py"))


setup(ext_modules=extensions(), cmdclass={"build_ext": OptionalBuild})
