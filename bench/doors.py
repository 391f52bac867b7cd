"""`python -m bench doors`: what TLS handshakes and rules cost, rumq beside mosquitto, each figure with its ratio.

Handshakes: one client after another connects, does the whole handshake (no ticket), CONNECT and CONNACK, and leaves;
counted is the broker's CPU time, so that the client's does not matter. Rules: 1:1 QoS 0 through a broker with and
without a thousand rules, by the ordinary scenario. Everything is on loopback and ends by itself."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import socket
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.peers.peer import free_port
from bench.peers.rumq import rumqd
from bench.process import cpu_s

CONNECT = bytes.fromhex("101000044d5154540402003c000462656e63")  # client id "benc"
START_SECONDS = 15.0
KINDS = ("ECDSA", "RSA")


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench doors", description=__doc__)
    parser.add_argument("--runs", type=int, default=3, metavar="N", help="[3]")
    parser.add_argument("--seconds", type=float, default=3.0, metavar="S", help="of each run [3]")
    args = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="rumq-bench-") as name:
        folder = Path(name)
        for kind in KINDS:
            handshakes(folder, kind, args.runs, args.seconds)
        rules(folder, args.runs, args.seconds)
    return 0


def handshakes(folder: Path, kind: str, runs: int, seconds: float) -> None:
    certificates(folder, kind)
    found: dict[str, list[float]] = {"rumq": [], "mosquitto": []}
    for _ in range(runs):
        for peer, rates in found.items():
            if peer == "mosquitto" and shutil.which("mosquitto", path=paths()) is None:
                continue
            with running(peer, folder) as (pid, port):
                rates.append(rate(pid, port, folder / "ca.pem", seconds))
    middle = {peer: statistics.median(rates) for peer, rates in found.items() if rates}
    ratio = f"  {middle['rumq'] / middle['mosquitto']:.2f} x" if len(middle) == 2 else ""
    shown = "  ".join(f"{peer} {value:,.0f}" for peer, value in middle.items())
    print(f"handshakes per second of a core, {kind}: {shown}{ratio}")


def rate(pid: int, port: int, authority: Path, seconds: float) -> float:
    """Handshakes for each second of the broker's CPU time."""
    context = ssl.create_default_context(cafile=str(authority))
    before, until, count = cpu_s(pid), time.monotonic() + seconds, 0
    while time.monotonic() < until:
        with (
            socket.create_connection(("127.0.0.1", port)) as plain,
            context.wrap_socket(plain, server_hostname="localhost") as sock,
        ):
            sock.sendall(CONNECT)
            assert sock.recv(4)[:1] == b"\x20", "no CONNACK"
        count += 1
    return count / (cpu_s(pid) - before)


def certificates(folder: Path, kind: str) -> None:
    import trustme

    authority = trustme.CA(key_type=trustme.KeyType[kind])
    issued = authority.issue_cert("localhost", key_type=trustme.KeyType[kind])
    authority.cert_pem.write_to_path(folder / "ca.pem")
    (folder / "server.pem").write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
    issued.private_key_pem.write_to_path(folder / "server.key")
    (folder / "server.key").chmod(0o600)


def paths() -> str:
    return os.environ.get("PATH", "") + ":/usr/sbin"


@contextmanager
def running(peer: str, folder: Path, *more: str) -> Iterator[tuple[int, int]]:
    """(pid, port) of a broker that speaks TLS; with `more`, rumqd's settings, one that does not."""
    port, data = free_port(), Path(tempfile.mkdtemp(dir=folder))
    if peer == "mosquitto":
        conf = data / "mosquitto.conf"
        conf.write_text(
            f"user root\nlistener {port} 127.0.0.1\nallow_anonymous true\nlog_dest none\n"
            f"certfile {folder}/server.pem\nkeyfile {folder}/server.key\n"
        )
        command = [str(shutil.which("mosquitto", path=paths())), "-c", str(conf)]
    else:
        chosen = more or (
            "--set", f"listener.tls_certificate={folder}/server.pem", "--set", f"listener.tls_key={folder}/server.key",
            "--set", "events.level=warning",
        )  # fmt: skip
        command = [*rumqd(), "run", "--host", "127.0.0.1", "--port", str(port), "--data", str(data), *chosen]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until = time.monotonic() + START_SECONDS
        while True:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            if process.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"{peer} did not start")
            time.sleep(0.02)
        yield process.pid, port
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(START_SECONDS)


def rules(folder: Path, runs: int, seconds: float) -> None:
    """CPU time per message with 1,000 rules against none, in turn."""
    written = [f'[[rule]]\nusers = ["u{n}"]\nallow = ["publish"]\ntopics = ["a/{n}/#"]\n' for n in range(998)]
    written += ['[[rule]]\nallow = ["publish", "subscribe"]\ntopics = ["#", "bench/#"]\n'] * 2
    (folder / "rules.toml").write_text("\n".join(written))
    found: dict[str, list[float]] = {"none": [], "1,000": []}
    for _ in range(runs):
        for name, values in found.items():
            more = ["--set", "log.durability=process", "--set", "events.level=warning"]
            if name != "none":
                more += ["--set", f"auth.rules_file={folder}/rules.toml"]
            with running("rumq", folder, *more) as (pid, port):
                values.append(cpu_of_a_message(pid, port, folder / "out.json", seconds))
    none, many = (statistics.median(values) for values in found.values())
    print(f"CPU per message, 1:1 QoS 0: no rules {none:.0f} ns, 1,000 rules {many:.0f} ns  {many / none:.3f} x")


def cpu_of_a_message(pid: int, port: int, out: Path, seconds: float) -> float:
    """ns, by the ordinary scenario."""
    subprocess.run(
        [
            sys.executable, "-m", "bench", "--scenario", "one-to-one-qos0", "--peers", "rumq", "--runs", "1",
            "--seconds", str(seconds), "--broker-address", f"127.0.0.1:{port}", "--pid", str(pid), "--json", str(out),
        ],
        check=True, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    (result,) = json.loads(out.read_text())["results"]
    assert not result["median"]["lost"], "messages were lost: the rules of this scenario are wrong"
    return float(result["median"]["cpu_us_per_message"]) * 1000
