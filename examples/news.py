"""Two web services, news and comments, that talk only through queues of a broker: open them in a browser.

python examples/news.py [--nodes 3] [--data DIR] [--news-port 8081] [--comments-port 8080]

Starts a broker with queues, or three nodes of a cluster (which needs etcd), and the services of examples/news, each a
process of its own. What dies, by kill -9 for instance, is started again after two seconds, and nothing that was posted
is lost or shown twice. Ends with Ctrl-C, and leaves nothing behind but --data."""

import argparse
import contextlib
import http.client
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from cluster import RUMQD, Cluster, data_directory
from cluster_members import Member, NotStarted, Ports

HERE = Path(__file__).parent / "news"
START_SECONDS_MAX, STOP_SECONDS_MAX, RESTART_SECONDS = 60.0, 20.0, 2.0
ROLES = ("read", "publish", "consume", "administer")


class Sites:
    """The broker or cluster, and the two services."""

    def __init__(self, data: Path, nodes: int, ports: dict[str, int]) -> None:
        """ports: of the services, by their names"""
        data.mkdir(parents=True, exist_ok=True)
        self._tokens, token_file = data / "tokens", data / "token.txt"
        if not token_file.exists():
            roles = [word for role in ROLES for word in ("--role", role)]
            made = subprocess.run(
                [*RUMQD, "token", "add", "site", *roles, "--file", str(self._tokens)],
                stdout=subprocess.PIPE,
                check=True,
            )
            token_file.touch(mode=0o600)
            token_file.write_bytes(made.stdout)
        names = [f"n{number + 1}" for number in range(nodes)]
        own = Ports(data / "gateway-ports.json", dict.fromkeys(names, 2))
        gateways = {name: own.numbers[name] for name in names}
        self.cluster: Cluster | None = None
        if nodes > 1:
            self.cluster = Cluster(data / "cluster", nodes, settings=self._settings(), restart_seconds=RESTART_SECONDS)
            self.brokers = self.cluster.nodes
        else:
            command = [*RUMQD, "run", "--data", str(data / "n1"), "--host", "127.0.0.1"]
            command += ["--port", str(gateways["n1"] + 1), *flags(*self._settings())]
            self.brokers = [Member("n1", command, f"127.0.0.1:{gateways['n1'] + 1}", data / "n1")]
        for each in self.brokers:
            each.command += flags(f"gateway.port={gateways[each.name]}")
        addresses = [f"http://127.0.0.1:{port}" for port in gateways.values()]
        urls = {name: f"http://localhost:{port}" for name, port in ports.items()}
        self.services = []
        for name, other in (("news", "comments"), ("comments", "news")):
            command = [sys.executable, str(HERE / f"{name}_service.py"), str(HERE / f"{name}.toml")]
            command += ["--port", str(ports[name]), "--other", urls[other], "--token-file", str(token_file)]
            command += [word for each in addresses for word in ("--gateway", each)]
            self.services.append(Member(name, command, urls[name], data / name))

    def _settings(self) -> list[str]:
        return ["queues.enabled=true", "gateway.host=127.0.0.1", f"gateway.tokens_file={self._tokens}"]

    def start(self) -> None:
        """Return once both services serve. raises: NotStarted"""
        if self.cluster is not None:
            self.cluster.start()
        else:
            self.brokers[0].start()
        for each in self.services:
            each.start()
        until = time.monotonic() + START_SECONDS_MAX
        for each in self.services:
            while not serves(each.address):
                for member in (each, *self.brokers):
                    if member.has_ended:
                        raise NotStarted(f"{member.name} has ended: {member.last_words()}")
                if time.monotonic() > until:
                    raise NotStarted(f"{each.name}: not within {START_SECONDS_MAX:g} s: {each.last_words()}")
                time.sleep(0.05)

    def restart_dead(self, now: float) -> list[Member]:
        """now: monotonic seconds"""
        members, started = self.services, []
        if self.cluster is not None:
            started += self.cluster.restart_dead(now)
        else:
            members = [*self.brokers, *members]
        for each in members:
            if each.is_alive:
                continue
            each.died_at = now if each.died_at is None else each.died_at
            if now - each.died_at >= RESTART_SECONDS:
                each.start()
                started.append(each)
        return started

    def stop(self) -> None:
        """The services first: they go without waiting for a broker."""
        alone = [] if self.cluster is not None else self.brokers
        for group in (self.services, alone):
            until = time.monotonic() + STOP_SECONDS_MAX
            for each in group:
                each.stop()
            for each in group:
                each.end(until)
        if self.cluster is not None:
            self.cluster.stop()


def flags(*settings: str) -> list[str]:
    return [word for each in settings for word in ("--set", each)]


def serves(url: str) -> bool:
    """Whether there is a page."""
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=5)
    with contextlib.closing(connection), contextlib.suppress(OSError, http.client.HTTPException):
        connection.request("GET", "/")
        return connection.getresponse().status == 200
    return False


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1, metavar="N", help="1, or 3: a cluster [1]")
    parser.add_argument("--news-port", type=int, default=8081, metavar="P", help="[8081]")
    parser.add_argument("--comments-port", type=int, default=8080, metavar="P", help="[8080]")
    parser.add_argument("--data", metavar="DIR", help="keep everything here [temporary, removed at the end]")
    args = parser.parse_args()
    stopping = threading.Event()

    def stop(number: int, frame: object) -> None:
        if not stopping.is_set():
            stopping.set()
            raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    with data_directory(args.data) as data, contextlib.suppress(KeyboardInterrupt):
        try:
            sites = Sites(data, args.nodes, {"news": args.news_port, "comments": args.comments_port})
            try:
                sites.start()
                for each in (*sites.brokers, *sites.services):
                    print(f"{each.name:9} {each.address:24} pid {each.pid}", flush=True)
                print("Ctrl-C ends it", flush=True)
                while not stopping.wait(0.1):
                    for each in sites.restart_dead(time.monotonic()):
                        print(f"{each.name:9} started again, pid {each.pid}", flush=True)
            finally:
                sites.stop()
        except NotStarted as fault:
            print(f"news: {fault}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
