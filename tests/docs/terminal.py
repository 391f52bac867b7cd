"""The commands of one page, run in order as they stand: `unshare ... python -m tests.docs.terminal FOLDER < steps`.

It runs in namespaces of its own for network, processes and mounts: every port is free, /etc/rumq, /var/lib/rumq and
/mnt are empty and nobody else's, and nothing outlives it. One shell is the reader's terminal; a command that does not
end by itself (a broker, a subscriber) gets a terminal of its own, and the next command waits until it serves or has
subscribed. Who is asked for a password types "secret".

Steps are JSON: [[kind, name, text]...]. Exit status 0: every command ended with 0, and every output was seen."""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rumq.cli.main import build_parser, normalize_arguments
from rumq.cli.page_access import add_page
from rumq.cli.setting_flags import loaded_settings
from rumq.errors import RumqError
from rumq.settings.table import Settings
from tests.docs.blocks import OUTPUT, PYTHON, ROOT, commands_in

SECONDS_MAX = 60.0  # for one thing that is waited for
PRIVATE = ("/etc", "/var/lib", "/mnt", "/opt")  # what is written there is seen by this page alone
SHIMS = Path(__file__).parent / "bin"


class Failed(Exception):
    pass


class Background:
    """A command in a terminal of its own."""

    def __init__(self, line: str, process: subprocess.Popen[bytes], output: Path) -> None:
        self.line, self.process, self.output = line, process, output

    def said(self) -> str:
        return self.output.read_text(errors="replace")

    def wait(self, seen: Callable[[str], bool]) -> None:
        until = time.monotonic() + SECONDS_MAX
        while not seen(self.said()):
            if self.process.poll() is not None or time.monotonic() > until:
                raise Failed(f"{self.line}\n{self.said()}")
            time.sleep(0.02)


class Broker(Background):
    settings: Settings

    def wait_until_it_serves(self) -> None:
        self.wait(lambda said: '"broker.ready"' in said)
        for port, protocol in ((self.settings.gateway.port, "http"), (self.settings.flight.port, "flight")):
            if port:
                self.wait(lambda said, protocol=protocol: f'"protocol": "{protocol}"' in said.replace('":"', '": "'))  # type: ignore[misc]

    def collides(self, settings: Settings) -> bool:
        ports = {listener.port for listener in self.settings.listeners}
        return settings.data.dir == self.settings.data.dir or bool(
            ports & {listener.port for listener in settings.listeners}
        )

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.wait_until_ended()

    def wait_until_ended(self) -> None:
        if self.process.wait(SECONDS_MAX) not in (0, -signal.SIGKILL):  # which only a page sends
            raise Failed(f"{self.line}: ended with {self.process.returncode}\n{self.said()}")


class Terminal:
    """The reader's shell, and what else is running. folder: the working directory"""

    def __init__(self, folder: Path) -> None:
        self.folder, self.number, self.last = folder, 0, ""
        self.lasting: list[Background] = []
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("RUMQ_")}
        self.environment |= {
            "HOME": str(folder), "PATH": f"{SHIMS}:{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT), "COLUMNS": "120",
        }  # fmt: skip
        (folder / ".typed").write_text("secret\n" * 9)
        self.shell = subprocess.Popen(
            ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail"], cwd=folder, env=self.environment,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, bufsize=1,
        )  # fmt: skip

    def run(self, text: str) -> None:
        """The commands of a block."""
        self.last = ""
        together: list[str] = []
        for command in commands_in(text):
            first, lasting = split_lasting(command)
            if command.startswith("rumqd passwd"):  # it reads all that is typed
                self.last += self.ended("\n".join(together)) + self.ended(command)
                together = []
            elif first:
                together.append(first)
            if lasting:
                self.last += self.ended("\n".join(together))
                together = []
                self.start(lasting)
        self.last += self.ended("\n".join(together))
        if re.search(r"^kill (?!-HUP)", text, re.M):
            for each in self.lasting:
                if isinstance(each, Broker) and each.process.poll() is None and each.settings.data.dir in text:
                    each.wait_until_ended()

    def ended(self, text: str) -> str:
        """What commands print that end by themselves."""
        if not text:
            return ""
        self.number += 1
        script, mark = self.folder / f".step-{self.number}", f"@@ended {self.number}"
        script.write_text(f"{text}\n")
        assert self.shell.stdin is not None and self.shell.stdout is not None
        self.shell.stdin.write(f". ./{script.name} <.typed; echo; echo '{mark}'\n")
        self.shell.stdin.flush()
        said: list[str] = []
        for line in self.shell.stdout:
            if line.rstrip() == mark:
                return "".join(said).removesuffix("\n")
            said.append(line)
        raise Failed(f"{text}\n{''.join(said)}status {self.shell.wait()}\n{self.others()}")

    def start(self, line: str) -> None:
        """A command with a terminal of its own."""
        self.number += 1
        output = self.folder / f".terminal-{self.number}"
        words = words_of(line)
        kind = Broker if is_broker(words) else Background
        if kind is Broker:
            settings = self.settings_of(words)
            for other in self.lasting:
                if isinstance(other, Broker) and other.collides(settings):
                    other.stop()
        before = self.subscriptions()
        variables = self.ended("export -p")
        (self.folder / ".variables").write_text(variables)
        with output.open("wb") as file:
            process = subprocess.Popen(
                ["bash", "-c", f". ./.variables; exec {line}"], cwd=self.ended("pwd").strip(), env=self.environment,
                stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT,
            )  # fmt: skip
        made = kind(line, process, output)
        self.lasting.append(made)
        if isinstance(made, Broker):
            made.settings = settings
            made.wait_until_it_serves()
        elif is_subscriber(words):
            made.wait(lambda _: self.subscriptions() > before)

    def settings_of(self, words: list[str]) -> Settings:
        here = os.getcwd()
        os.chdir(self.ended("pwd").strip())
        try:
            args = parsed(words)
            if args.page:
                add_page(args)
            return loaded_settings(args).settings
        finally:
            os.chdir(here)

    def subscriptions(self) -> int:
        """Subscribers of all running brokers."""
        count = 0
        for each in self.lasting:
            if isinstance(each, Broker) and each.process.poll() is None:
                asked = subprocess.run(
                    ["rumqd", "ask", "clients", "--json", "--data", each.settings.data.dir], cwd=self.folder,
                    env=self.environment, capture_output=True, text=True, timeout=SECONDS_MAX, check=False,
                )  # fmt: skip
                if asked.returncode == 0:
                    count += len(re.findall(r'"client(?:_id)?"', asked.stdout))
        return count

    def expect(self, text: str) -> None:
        """The output of the block before: of its commands, or at last of one that is still running."""
        lines = (".*".join(map(re.escape, line.rstrip().split("..."))) for line in text.splitlines())
        pattern = re.compile(f"^{chr(10).join(lines)}$", re.M)
        if pattern.search(trimmed(self.last)):
            return
        until = time.monotonic() + (SECONDS_MAX if self.lasting else 0)
        while time.monotonic() < until:
            if any(pattern.search(trimmed(each.said())) for each in self.lasting):
                return
            time.sleep(0.02)
        raise Failed(f"expected:\n{text}\nprinted:\n{self.last}\n{self.others()}")

    def python(self, text: str) -> None:
        (self.folder / ".block.py").write_text(text)
        self.last = self.ended("python .block.py")

    def others(self) -> str:
        return "\n".join(f"== {each.line}\n{each.said()[-4000:]}" for each in self.lasting)

    def end(self) -> None:
        """All that still runs ends, brokers by SIGTERM and well."""
        for each in self.lasting:
            if not isinstance(each, Broker):
                each.process.kill()
        for each in self.lasting:
            if isinstance(each, Broker) and each.process.poll() is None:
                each.stop()


def trimmed(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.splitlines())


def words_of(line: str) -> list[str]:
    return shlex.split(line.replace("\\\n", " "), comments=True)


def parsed(words: list[str]) -> argparse.Namespace:
    with contextlib.redirect_stderr(io.StringIO()):
        return build_parser().parse_args(normalize_arguments(words[1:]))


def is_broker(words: list[str]) -> bool:
    """A `rumqd run` that serves."""
    if words[0] != "rumqd" or {"--check", "--help", "-h", "--version"} & set(words):
        return False
    return len(words) == 1 or words[1] == "run" or words[1].startswith("-")


def is_subscriber(words: list[str]) -> bool:
    """One that waits for messages, until somebody ends it."""
    if words[0] == "rumqd":
        return words[1:2] == ["sub"] and not {"-C", "--count", "-W", "--wait"} & set(words)
    return words[0] == "mosquitto_sub" and not any(word.startswith(("-C", "-W")) for word in words)


def is_lasting(words: list[str]) -> bool:
    """Others that run until somebody ends them."""
    return words[0] == "prometheus" or words[1:2] == ["mirror"] or (words[1:2] == ["top"] and "--once" not in words)


def split_lasting(command: str) -> tuple[str, str]:
    """(what ends by itself, what does not) of `first && second`; one of them may be empty."""
    first, _, second = command.rpartition(" && ")
    line = second.split("  #")[0].rstrip().removesuffix("&").rstrip()
    try:
        words = words_of(line)
    except ValueError:  # a here-document with a quote
        return command, ""
    if not words or not (is_broker(words) or is_subscriber(words) or is_lasting(words)):
        return command, ""
    if re.search(r"[|;]", re.sub(r"'[^']*'|\"[^\"]*\"", "", line)):
        return command, ""
    return first, line


def private_places(folder: Path) -> None:
    """What the page writes to /etc, /var/lib, /mnt and /opt is its own."""
    for each in {"/tmp", str(folder)}:
        subprocess.run(["mount", "--bind", each, each], check=True)
    subprocess.run(["mount", "-o", "remount,bind,ro", "/"], check=True)  # the machine and the tree stay as they are
    layers = folder / ".layers"
    layers.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", layers], check=True)
    for number, place in enumerate(PRIVATE):
        upper, work = layers / f"u{number}", layers / f"w{number}"
        upper.mkdir()
        work.mkdir()
        options = f"lowerdir={place},upperdir={upper},workdir={work}"
        subprocess.run(["mount", "-t", "overlay", "overlay", "-o", options, place], check=True)


def main() -> int:
    folder = Path(sys.argv[1])
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    private_places(folder)
    for name in ("examples", "packaging", "ops", "docs", "tests", "pyproject.toml", "bench"):
        (folder / name).symlink_to(ROOT / name)
    terminal, name = Terminal(folder), ""
    steps: list[Any] = json.load(sys.stdin)
    try:
        for kind, name, text in steps:
            began = time.monotonic()
            {OUTPUT: terminal.expect, PYTHON: terminal.python}.get(kind, terminal.run)(text)
            print(f"{time.monotonic() - began:6.2f} s  {name}")
        terminal.end()
    except (Failed, RumqError) as fault:
        print(f"{name}:\n{fault}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
