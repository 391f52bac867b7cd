"""A network namespace for each member of a cluster, with a router between them that can drop one direction of a link.

    root (clients) 10.P.0.2 -- router -- 10.P.N.2 (member N); P is of this process

A cut is a rule of the router: packets from one address to another go nowhere, and nobody is told. Needs root.
ip-rule(8)"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence

from examples.cluster import Place


class Network:
    """Made with `make`, removed with `remove`. Its names and its addresses hold this process's number, so that two runs
    at one time hardly meet."""

    def __init__(self, names: Sequence[str]) -> None:
        self._prefix = f"rq{os.getpid() % 100_000}"
        self._network = f"10.{60 + os.getpid() % 190}"
        self._numbers = {name: number + 1 for number, name in enumerate(names)}
        self._cuts: list[tuple[str, str]] = []
        self._delayer: subprocess.Popen[bytes] | None = None

    @staticmethod
    def why_not() -> str:
        """Why there can be none here; empty if it works."""
        if os.geteuid() != 0:
            return "network namespaces need root"
        return "" if shutil.which("ip") else "ip is not installed: apt-get install iproute2"

    def address(self, name: str) -> str:
        return f"{self._network}.{self._numbers[name]}.2"

    def place(self, name: str) -> Place:
        return Place(self.address(name), ("ip", "netns", "exec", self.space(name)))

    def make(self) -> None:
        router = self.space("r")
        self._ip("netns add", router)
        self._run("ip", "netns", "exec", router, "sysctl", "-qw", "net.ipv4.ip_forward=1")
        self._link(f"{self._prefix}u", 0, None)
        self._ip("route add", f"{self._network}.0.0/16", "via", f"{self._network}.0.1")
        for name, number in self._numbers.items():
            self._ip("netns add", self.space(name))
            self._link(f"{self._prefix}v{number}", number, self.space(name))
            self._ip("-n", self.space(name), "link set lo up")
            self._ip("-n", self.space(name), "route add default via", f"{self._network}.{number}.1")

    def _link(self, device: str, number: int, space: str | None) -> None:
        """Device `device` in `space` (None: the root one), its other end in the router."""
        other = f"{device}r"[-15:]
        self._ip("link add", device, "type veth peer name", other)
        self._ip("link set", other, "netns", self.space("r"))
        self._ip("-n", self.space("r"), "addr add", f"{self._network}.{number}.1/24", "dev", other)
        self._ip("-n", self.space("r"), "link set", other, "up")
        inside: tuple[str, ...] = ()
        if space is not None:
            self._ip("link set", device, "netns", space)
            inside = ("-n", space)
        self._ip(*inside, "addr add", f"{self._network}.{number}.2/24", "dev", device)
        self._ip(*inside, "link set", device, "up")

    def cut(self, source: str, target: str) -> None:
        """What `source` sends to `target` is lost."""
        self._rule("add", source, target)
        self._cuts.append((source, target))

    def heal(self) -> None:
        while self._cuts:
            self._rule("del", *self._cuts.pop())

    def delay(self, pairs: Mapping[tuple[str, str], float]) -> None:
        """What one member sends to another arrives so many seconds later, until `remove`. Once for a network."""
        device, router = f"{self._prefix}d", self.space("r")
        words = [f"{self.address(one)},{self.address(other)},{seconds}" for (one, other), seconds in pairs.items()]
        command = [
            "ip",
            "netns",
            "exec",
            router,
            sys.executable,
            "-m",
            "tests.cluster.live.delay",
            device,
            *words,
        ]
        self._delayer = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert self._delayer.stdout is not None
        assert self._delayer.stdout.readline(), "no TUN device"
        self._ip("-n", router, "link set", device, "up")
        self._run("ip", "netns", "exec", router, "sysctl", "-qw", f"net.ipv4.conf.{device}.rp_filter=0")
        self._run("ip", "netns", "exec", router, "sysctl", "-qw", "net.ipv4.conf.all.rp_filter=0")
        self._ip("-n", router, "route add default dev", device, "table 100")
        self._ip("-n", router, "rule add iif", device, "lookup main pref 100")
        for one, other in pairs:
            addresses = ("from", self.address(one), "to", self.address(other))
            self._ip("-n", router, "rule add", *addresses, "lookup 100 pref 200")

    def _rule(self, verb: str, source: str, target: str) -> None:
        self._ip(
            "-n",
            self.space("r"),
            "rule",
            verb,
            "from",
            self.address(source),
            "to",
            self.address(target),
            "blackhole pref 50",
        )

    def remove(self) -> None:
        if self._delayer is not None:
            self._delayer.kill()
            self._delayer.wait()
        for name in ["r", *self._numbers]:
            self._run("ip", "netns", "del", self.space(name), check=False)
        self._run("ip", "link", "del", f"{self._prefix}u", check=False)

    def space(self, name: str) -> str:
        return f"{self._prefix}{name}"

    def _ip(self, *words: str) -> None:
        self._run("ip", *(part for word in words for part in word.split()))

    @staticmethod
    def _run(*command: str, check: bool = True) -> None:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
        assert not check or done.returncode == 0, f"{' '.join(command)}: {done.stderr}"
