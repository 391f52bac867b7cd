"""Compile the kernels at install, if that is possible here.

Kernels are ordinary Python files (`*/kernels/*.py`) that Cython turns into C. Without a C compiler the
same files run as they are, slower: the install succeeds, and as pip hides what is said here, rumqd says it at each
start. `RUMQ_COMPILE=0` asks for that, `RUMQ_COMPILE=require` makes a failed compilation fail the install.
"""

import os
import sys
from pathlib import Path
from sysconfig import get_config_var

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

WISH = os.environ.get("RUMQ_COMPILE", "1")
WARNING = (
    "rumq: kernels were not compiled ({}); they run as Python, about 50 times slower. "
    "Install gcc and Python's headers, then install again."
)


class OptionalBuild(build_ext):
    """Build the kernels; where Cython or the compiler fails, warn once and go on without any."""

    def run(self) -> None:
        self.parallel = self.parallel or os.cpu_count()
        in_place = self.inplace or self.editable_mode
        if not in_place:
            # What only tests and the bench use is built where they are.
            self.extensions = [
                wanted for wanted in self.extensions if not wanted.name.startswith(("tests.", "bench."))
            ]
        wanted = list(self.extensions)
        try:
            translate(wanted)
            if in_place:
                # setuptools looks into build/ for what is up to date, and an editable install leaves nothing there.
                self.extensions = [one for one in wanted if is_old(one)]
            super().run()
        except Exception as fault:
            if WISH == "require":
                raise
            print(WARNING.format(fault), file=sys.stderr)
            # A half-built set would mix compiled and plain kernels with different types.
            self.extensions = []
            for one in [] if in_place else wanted:
                Path(self.get_ext_fullpath(one.name)).unlink(missing_ok=True)


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
    "rumq/mqtt/connect.py",
    "rumq/mqtt/wire.py",
    "rumq/net/connection.py",
    "rumq/net/listener.py",
    "rumq/net/pending_logins.py",
    "rumq/net/pump.py",
    "rumq/net/relay.py",
    "rumq/session/connection/client_state.py",
    "rumq/session/connection/pending_acks.py",
    "rumq/session/handshake/authentication.py",
    "rumq/session/handshake/connect.py",
    "rumq/session/handshake/first_packet.py",
    "rumq/session/handshake/handshake.py",
    "rumq/session/connection/transport.py",
    "rumq/session/protocol/connected.py",
    "rumq/session/state/shard_totals.py",
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
    "rumq/shards/recovery/journal_snapshot.py",
    "rumq/shards/delivery/retained_delivery.py",
    "rumq/shards/retention/disk_space.py",
]


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
    return [extension(path) for path in [*kernels, *HOT]]


def extension(path: str) -> Extension:
    name = path.removesuffix(".py").replace("/", ".")
    # No debug information: nobody steps through the C, and it is a third of the compiler's time.
    return Extension(name, [path], extra_compile_args=["-O3", "-g0", "-fno-strict-aliasing"])


def is_old(one: Extension) -> bool:
    """Whether the compiled module beside its source is missing, or older than the C that it is made from."""
    made = Path(*one.name.split(".")).with_suffix(get_config_var("EXT_SUFFIX"))
    return not made.exists() or made.stat().st_mtime < Path(one.sources[0]).stat().st_mtime


def translate(wanted: list[Extension]) -> None:
    """Have each consist of C. raises: Cython's errors, as exceptions"""
    from Cython.Build import cythonize

    common = {"language_level": 3, "binding": True, "embedsignature": True}
    fast = {"boundscheck": False, "wraparound": False, "cdivision": True, "initializedcheck": False}
    # Annotations of plain modules are for mypy: taken as C types they would refuse what Python accepts.
    plain = {"annotation_typing": False}
    for directives, some in (
        (fast, [one for one in wanted if one.sources[0] not in HOT]),
        (plain, [one for one in wanted if one.sources[0] in HOT]),
    ):
        fresh = [extension(one.sources[0]) for one in some]
        made = cythonize(fresh, build_dir="build/kernels", compiler_directives={**common, **directives})
        sources = {one.name: one.sources for one in made}
        for one in some:
            one.sources = sources[one.name]


setup(ext_modules=extensions(), cmdclass={"build_ext": OptionalBuild})
