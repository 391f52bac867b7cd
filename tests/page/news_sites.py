"""`examples/news.py` as a process: its lines say what runs where, and what was started again."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from tests.cluster.etcd_processes import free_ports
from tests.docs.blocks import ROOT
from tests.page.browser import Browser

WAIT_SECONDS = 120.0
OLDEST = "article:last-of-type .reply"
LINE = re.compile(r"(\w+) +(?:(\S+) +|started again, )pid (\d+)")


class NewsSites:
    """pids: of what runs, by name, and all that ever ran; addresses: of pages and nodes"""

    def __init__(self, data: Path, nodes: int = 1) -> None:
        ports = free_ports(2)
        # It ends with the tests, also when they are killed.
        before = ["setpriv", "--pdeathsig", "TERM"] if shutil.which("setpriv") else []
        command = [*before, sys.executable, "examples/news.py", "--data", str(data), "--nodes", str(nodes)]
        command += ["--news-port", str(ports[0]), "--comments-port", str(ports[1])]
        self.pids: dict[str, int] = {}
        self.all_pids: set[int] = set()
        self.addresses: dict[str, str] = {}
        self.said: list[str] = []
        self._heard = threading.Condition()
        # A group of its own: Ctrl-C of a terminal goes to all of it.
        self._process = subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, process_group=0
        )
        threading.Thread(target=self._hear, daemon=True).start()
        self._wait_said("Ctrl-C ends it")

    def _hear(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with self._heard:
                self.said.append(line.strip())
                if found := LINE.match(line):
                    name, address, pid = found.groups()
                    self.pids[name] = int(pid)
                    self.all_pids.add(int(pid))
                    self.addresses[name] = address or self.addresses[name]
                self._heard.notify_all()

    def _wait_said(self, what: str) -> None:
        until = time.monotonic() + WAIT_SECONDS
        with self._heard:
            while not any(what in line for line in self.said):
                left = until - time.monotonic()
                assert left > 0 and self._process.poll() is None, self.said
                self._heard.wait(left)

    def kill(self, name: str) -> None:
        """kill -9."""
        os.kill(self.pids[name], signal.SIGKILL)

    def wait_restarted(self, name: str, killed: int) -> None:
        """Until it runs again, not as process `killed`."""
        until = time.monotonic() + WAIT_SECONDS
        with self._heard:
            while self.pids[name] == killed:
                left = until - time.monotonic()
                assert left > 0, self.said
                self._heard.wait(left)

    def interrupt(self) -> int:
        """Ctrl-C: returns the exit status."""
        os.killpg(self._process.pid, signal.SIGINT)
        return self._process.wait(WAIT_SECONDS)

    def end(self) -> None:
        """Whatever its state, it is gone after this, and its processes with it."""
        if self._process.poll() is None:
            self._process.terminate()
            self._process.wait(WAIT_SECONDS)

    @property
    def left_over(self) -> list[int]:
        return [pid for pid in self.all_pids if Path(f"/proc/{pid}").exists()]


class Reader:
    """A person at one of the two pages. articles: texts of news, newest first; comments: oldest first"""

    def __init__(self, browser: Browser, sites: NewsSites, name: str) -> None:
        self.browser, self._address = browser, sites.addresses[name]
        self.open()
        browser.fill("[name=author]", f"reader of {name}")

    def open(self) -> None:
        self.browser.open(self._address)
        self.browser.sees("#state", "live")

    def post(self, text: str) -> None:
        """Type news and send them; returns at once."""
        self.browser.fill("textarea", text)
        self.browser.click("button", "Post")

    def comment(self, text: str) -> None:
        """About the oldest news. News that come live move it down the page, so a click may miss it: keys do not."""
        field = f"document.querySelector({OLDEST + ' [name=text]'!r})"
        self.browser.run(f"{field}.focus()")
        self.browser.type(text)
        self.browser.press("Enter")

    def sent(self, field: str) -> None:
        """Until the service has what was sent: then the field is empty."""
        self.patiently(f"document.querySelector({field!r}).value === ''")

    def patiently(self, script: str) -> None:
        """Longer than a page may take by itself: a node is away, and elections take their time."""
        until = time.monotonic() + WAIT_SECONDS
        while not self.browser.run(script):
            assert time.monotonic() < until, (script, self.browser.run("document.body.innerText"))
            time.sleep(0.05)

    @property
    def articles(self) -> list[str]:
        return self.browser.texts(".post p")

    @property
    def comments(self) -> list[str]:
        found = self.browser.run("[...document.querySelectorAll('.comments li')].map((e) => e.lastChild.textContent)")
        assert isinstance(found, list)
        return found
