"""Compile the kernels at install, if that is possible here.

Kernels are ordinary Python files (`*/kernels/*.py`) that Cython turns into C. Without a C compiler the
same files run as they are, slower: the install succeeds, and as pip hides what is said here, rumqd says it at each
start. `RUMQ_COMPILE=0` asks for that, `RUMQ_COMPILE=require` makes a failed compilation fail the install, and
`RUMQ_COMPILE=product` leaves out what only tests and the bench use.
"""

import hashlib
import os
import shutil
import sys
import threading
from pathlib import Path
from sysconfig import get_config_var

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import CompileError

WISH = os.environ.get("RUMQ_COMPILE", "1")
WARNING = (
    "rumq: kernels were not compiled ({}); they run as Python, about 50 times slower. "
    "Install gcc and Python's headers, then install again."
)


class OptionalBuild(build_ext):
    """Build the kernels; where Cython or the compiler fails, warn once and go on without any."""

    def run(self) -> None:
        self.parallel = self.parallel or os.cpu_count() or 1
        in_place = self.inplace or self.editable_mode
        if not in_place or WISH == "product":
            # What only tests and the bench use is built where they are.
            self.extensions = [wanted for wanted in self.extensions if not is_of_the_tree(wanted)]
        wanted, asked = list(self.extensions), (self.compiler, self.inplace)
        paths = [one.sources[0] for one in wanted]
        try:
            try:
                self._build(wanted, SHARED, in_place)
            except CompileError:
                # A Cython that shares what it should not, or no compiler at all.
                if not shutil.which(self.compiler.compiler[0]):
                    raise
                for one, path in zip(wanted, paths, strict=True):
                    one.sources = [path]
                self.compiler, self.inplace = asked  # a run that fails leaves others
                self._build([one for one in wanted if one.name != SHARED], None, in_place)
        except Exception as fault:
            if WISH == "require":
                raise
            print(WARNING.format(fault), file=sys.stderr)
            # A half-built set would mix compiled and plain kernels with different types.
            self.extensions = []
            for one in [] if in_place else wanted:
                Path(self.get_ext_fullpath(one.name)).unlink(missing_ok=True)

    def _build(self, wanted: list[Extension], shared: str | None, in_place: bool) -> None:
        translate(wanted, shared, self.parallel)
        # setuptools looks into build/ for what is up to date, and an editable install leaves nothing there.
        old = [one for one in wanted if is_old(one)] if in_place else wanted
        # The longest first, so that no core waits for the last one. The compiler's time grows with the C.
        self.extensions = sorted(old, key=lambda one: -Path(one.sources[0]).stat().st_size)
        self.progress = Progress(len(old))
        super().run()

    def build_extension(self, ext: Extension) -> None:
        super().build_extension(ext)
        self.progress.step()


class Progress:
    """A bar of the modules that are compiled, on a terminal. Their compilers run in several threads."""

    WIDTH = 30

    def __init__(self, total: int) -> None:
        self._total, self._done, self._lock = total, 0, threading.Lock()
        self._is_shown = sys.stderr.isatty() and total > 0
        self._draw()

    def step(self) -> None:
        with self._lock:
            self._done += 1
            self._draw()

    def _draw(self) -> None:
        if self._is_shown:
            bar = "#" * (self.WIDTH * self._done // self._total)
            end = "\n" if self._done == self._total else ""
            sys.stderr.write(f"\rcompiling [{bar:<{self.WIDTH}}] {self._done} of {self._total} modules{end}")
            sys.stderr.flush()


# Whole modules of the hot path, plain Python that Cython translates as it is: at low rates a turn serves one message,
# and the interpreter is what it costs (docs/decisions/0004-compiled-hot-modules.md).
HOT = [
    "commitlog/chunk.py",
    "commitlog/chunk_layout.py",
    "commitlog/partition.py",
    "commitlog/segment_writer.py",
    "commitlog/write_group.py",
    "router/backlog.py",
    "router/commands.py",
    "router/delivery.py",
    "router/effects.py",
    "router/feed.py",
    "router/group_membership.py",
    "router/topic_matching.py",
    "router/remote_feed.py",
    "router/sorted_topics.py",
    "router/reader_turns.py",
    "router/groups.py",
    "router/reader.py",
    "router/retained.py",
    "router/routes.py",
    "router/scatter.py",
    "router/shard.py",
    "rumq/cluster/edge/edge_turn.py",
    "rumq/cluster/links/frames.py",
    "rumq/cluster/node/frame_link.py",
    "rumq/mqtt/wire.py",
    "rumq/net/connection.py",
    "rumq/net/pump.py",
    "rumq/net/relay.py",
    "rumq/session/connection/client_state.py",
    "rumq/session/connection/pending_acks.py",
    "rumq/session/connection/transport.py",
    "rumq/session/protocol/connected.py",
    "rumq/session/protocol/deliveries.py",
    "rumq/session/flow_control/delivery_window.py",
    "rumq/shards/bus/bus_link.py",
    "rumq/shards/bus/peer.py",
    "rumq/shards/bus/peers.py",
    "rumq/shards/bus/publish_receiver.py",
    "rumq/shards/bus/publish_sender.py",
    "rumq/shards/bus/record_forwarder.py",
    "rumq/shards/bus/remote_partition.py",
    "rumq/shards/delivery/fan_out_cache.py",
    "rumq/shards/recovery/journal_writer.py",
    "rumq/shards/replication/copied_partition.py",
    "rumq/shards/replication/feeder.py",
    "rumq/shards/replication/follower_link.py",
    "rumq/shards/replication/follower_links.py",
    "rumq/shards/replication/piece_frames.py",
    "rumq/shards/replication/replication.py",
    "rumq/shards/turn/effect_dispatch.py",
    "rumq/shards/delivery/fan_out.py",
    "rumq/shards/turn/housekeeping.py",
    "rumq/shards/turn/loop.py",
    "rumq/shards/turn/queues.py",
    "rumq/shards/turn/scheduler.py",
    "rumq/shards/turn/turn.py",
    "rumq/shards/write_path/backpressure.py",
    "rumq/shards/write_path/free_space.py",
    "rumq/shards/write_path/group_commit.py",
    "rumq/shards/write_path/retained_quota.py",
    "rumq/session/journal/recorder.py",
    "rumq/session/state/deadlines.py",
    "rumq/session/state/histogram.py",
    "rumq/session/state/keep_alive.py",
    "rumq/session/state/registry.py",
    "rumq/session/state/session.py",
    "rumq/shards/delivery/retained_delivery.py",
]

# Modules of the same kind that run once a connection, a session or a minute: half the compiler's time, at -O1.
SELDOM = [
    "rumq/mqtt/connect.py",
    "rumq/net/listener.py",
    "rumq/net/pending_logins.py",
    "rumq/session/handshake/authentication.py",
    "rumq/session/handshake/connect.py",
    "rumq/session/handshake/first_packet.py",
    "rumq/session/handshake/handshake.py",
    "rumq/session/state/shard_totals.py",
    "rumq/shards/recovery/journal_snapshot.py",
    "rumq/shards/retention/disk_space.py",
]

# What Cython would otherwise repeat in each module, compiled once: function objects, views of memory. A fifth of the C.
# It lies in `rumq` because that package's __init__ is empty, so that who imports a kernel imports no more than that.
SHARED, SHARED_C = "rumq.cython_shared", "rumq/cython_shared.c"
# Without it: Cython 3.3 forgets what bytearray.append needs. And what also runs beside a copy of the product that is
# not compiled, so that there is none.
ALONE = ("rumq/mqtt/kernels/filters.py", "bench/", "tests/")

# Nothing pickles an object of a compiled class; what Cython writes for it is a tenth of the C of such a module.
COMMON = {"language_level": 3, "binding": True, "embedsignature": True, "auto_pickle": False}
FAST = {**COMMON, "boundscheck": False, "wraparound": False, "cdivision": True, "initializedcheck": False}
# Annotations of plain modules are for mypy: taken as C types they would refuse what Python accepts.
PLAIN = {**COMMON, "annotation_typing": False}
# No debug information and no warnings: nobody steps through the C or edits it, and they take a third of the time.
FLAGS = ["-g0", "-Wno-all", "-fno-strict-aliasing"]
# A function that Cython forgot to write is an error of the compiler, not one of an import later.
ERRORS = ["-Werror=implicit-function-declaration"]
# The C of other options lies elsewhere: Cython and setuptools see by times alone what is up to date.
MADE_SO = hashlib.sha256(repr((FAST, PLAIN, FLAGS, SHARED, SELDOM)).encode()).hexdigest()[:8]
BUILD = f"build/kernels/{MADE_SO}"


def extensions() -> list[Extension]:
    """All of them, in Python: `translate` makes C of them when they are built."""
    if WISH == "0":
        return []
    root = Path(__file__).parent
    kernels = sorted(
        str(path.relative_to(root))
        for floor in ("commitlog", "router", "rumq", "bench", "tests/fuzz")
        for path in (root / floor).rglob("kernels/*.py")
        if path.name != "__init__.py"
    )
    return [extension(path) for path in (SHARED_C, *kernels, *HOT, *SELDOM)]


def extension(path: str) -> Extension:
    name = path.rpartition(".")[0].replace("/", ".")
    level = "-O1" if path in SELDOM else "-O3"
    return Extension(name, [path], extra_compile_args=[level, *FLAGS, *ERRORS])


def is_of_the_tree(one: Extension) -> bool:
    return one.name.startswith(("tests.", "bench."))


def is_old(one: Extension) -> bool:
    """Whether the compiled module beside its source is missing, or older than the C that it is made from."""
    made = Path(*one.name.split(".")).with_suffix(get_config_var("EXT_SUFFIX"))
    return not made.exists() or made.stat().st_mtime < Path(one.sources[0]).stat().st_mtime


def translate(wanted: list[Extension], shared: str | None, at_once: int) -> None:
    """Have each consist of C. shared: the module of what they share, or None. raises: Cython's errors, as exceptions"""
    from Cython.Build import cythonize

    modules = {*HOT, *SELDOM}
    alone = [one for one in wanted if shared is None or one.sources[0].startswith(ALONE)]
    for some, module in (([one for one in wanted if one not in alone], shared), (alone, None)):
        for directives, part in (
            (PLAIN, [one for one in some if one.sources[0] in modules]),
            (FAST, [one for one in some if one.sources[0] not in modules]),
        ):
            made = cythonize(
                [extension(one.sources[0]) for one in part],
                build_dir=BUILD if module else f"{BUILD}-alone",
                nthreads=at_once,
                compiler_directives=directives,
                quiet=sys.stderr.isatty(),  # there a bar says it
                shared_utility_qualified_name=module,
            )
            sources = {one.name: one.sources for one in made}
            for one in part:
                one.sources = sources[one.name]


setup(ext_modules=extensions(), cmdclass={"build_ext": OptionalBuild})
